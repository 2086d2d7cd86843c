"""A small library to ask, with vectors that a test can foresee."""

from pathlib import Path
from typing import Any

from libraryfs.ask.retrieval import Retrieval, retrieve
from libraryfs.ingest.embed import embed_missing
from libraryfs.library.resolver import Library
from libraryfs.models.cancel import Cancel
from libraryfs.models.protocols import Embedder
from libraryfs.store import access, edges, keywords, namespaces
from tests.ask.fake_embedder import WordEmbedder
from tests.store.build import Builder


class Shelf(Builder):
    """A Builder that grants, links, embeds and asks."""

    def __init__(self, path: Path, embedder: WordEmbedder | None = None) -> None:
        super().__init__(path)
        self.embedder = embedder or WordEmbedder()

    def grant(self, principal: str, *paths: str) -> None:
        with self.snapshot.transaction():
            for path in paths:
                access.grant(self.db, principal, namespaces.ensure(self.db, path))

    def edge(self, source: str, kind: str, target: str) -> None:
        """Ends are namespace and id, `/ring/dev:d1`."""
        ends = [
            (namespaces.ensure(self.db, path).id, name) for path, name in (end.split(":") for end in (source, target))
        ]
        with self.snapshot.transaction():
            edges.put(self.db, edges.Edge(*ends[0], kind, *ends[1]), None)

    def index(self) -> None:
        with self.snapshot.transaction():
            keywords.index_queued(self.db)

    def embed(self, embedder: WordEmbedder | None = None) -> None:
        embed_missing(self.snapshot, embedder or self.embedder, Cancel())

    def library(self, principal: str = "me") -> Library:
        return Library(self.snapshot, principal)

    def ask(self, question: str, *paths: str, principal: str = "me", **options: Any) -> Retrieval:
        library = self.library(principal)
        embedder: Embedder | None = options.pop("embedder", self.embedder)
        options.setdefault("retrieval", "vector")  # what a test can foresee
        return retrieve(library, embedder, question, [library.resolve(path) for path in paths or ("/",)], **options)


def ids(found: Retrieval) -> list[str]:
    return [one.id for one in found.evidence]


def plain(found: Retrieval) -> dict[str, Any]:
    """All of a retrieval but its times."""
    return found.model_dump(exclude={"milliseconds"}) | {"starts": [one.start for one in found.evidence]}
