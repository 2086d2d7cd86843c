"""Question and scope → evidence: nearest items, expanded over edges, merged, current before superseded."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Final, Literal, NamedTuple

from libraryfs.ask import fusion
from libraryfs.ask.evidence import WORDS_LEAD_BELOW, Evidence, Near, Origin, Retrieval
from libraryfs.ask.graph import Graph
from libraryfs.ask.scope import search_scope
from libraryfs.errors import Cancelled, ModelError, PathNotFound
from libraryfs.library.resolver import Library
from libraryfs.models import defaults
from libraryfs.models.cancel import Cancel, within
from libraryfs.models.protocols import Embedder
from libraryfs.nodes import Entry
from libraryfs.store import evals, keywords, texts, vectors, words
from libraryfs.store.search_scope import SearchScope

__all__ = ["NEAREST", "Evidence", "Retrieval", "retrieve"]

NEAREST: Final = 5
"""Items that a search gives for each path (fixed)."""
KEYWORD_SCORE: Final = 0.5
"""Score of an item that keywords found where there is no vector search."""
HOP: Final = 0.05
"""An item over an edge scores this much less than the one that it was reached from."""
MAX_GRAPH: Final = 50
"""Items over edges, at most."""
NEAR_CHUNKS: Final = 8
"""Chunks of each file that are told as near."""
LEG: Final = 25
"""Items of each leg that hybrid retrieval fuses, at most."""
BACKGROUND: Final = 32
"""Files that have only the question's commonest words, or none: how near these are says whether the model reads."""

RESERVE_SECONDS: Final = 0.15
RESERVE_SHARE: Final = 0.3
"""Of the time that is left, what is kept for a search by keywords when the question's vector is late: the lesser."""

Mode = Literal["vector", "hybrid"]


class _Hit(NamedTuple):
    """An item on its way to the evidence. `share` orders hits of one score that have no cosine."""

    ino: int
    score: float
    origin: Origin
    similarity: float | None = None
    share: float = 0.0

    @property
    def order(self) -> tuple[float, float, float, int]:
        """Best first: by score, then by closeness to the question."""
        return -self.score, -(self.similarity or 0.0), -self.share, self.ino


def retrieve(
    library: Library,
    embedder: Embedder | None,
    question: str,
    scopes: Sequence[Entry],
    *,
    retrieval: Mode = "hybrid",
    cancel: Cancel | None = None,
) -> Retrieval:
    """The evidence for `question` in the folders and files `scopes`, as the library's principal sees it.

    Without an embedder, with one that fails or is late, or without vectors in the library, keywords are searched and
    `degraded` says so. Raises Cancelled, SnapshotError; a failing model raises nothing.
    """
    run = _Run(library, question, cancel or Cancel())
    with run.timed("embed"):
        run.embed(embedder)
    with library.snapshot.db:  # one moment of the snapshot for all that follows
        with run.timed("search"):
            run.search(scopes, retrieval)
        with run.timed("graph"):
            run.expand()
        with run.timed("load"):
            evidence = run.load()
    return Retrieval(
        evidence=evidence,
        degraded=tuple(run.degraded),
        left_out=run.left_out,
        sources=run.sources,
        vector=run.vector,
        readable=run.reads,
        notes=run.notes(),
        milliseconds=run.milliseconds,
    )


class _Run:
    """The state of one retrieval between its steps."""

    def __init__(self, library: Library, question: str, cancel: Cancel) -> None:
        self.library = library
        self.db = library.snapshot.db
        self.question = question
        self.cancel = cancel
        self._reserve = min(RESERVE_SECONDS, RESERVE_SHARE * (cancel.remaining() or 0.0))
        self.vector: bytes | None = None
        self.hits: dict[int, _Hit] = {}
        self.paths: dict[int, str | None] = {}
        self.asked: frozenset[int] = frozenset()
        self.sets: frozenset[int] = frozenset()
        self.graph = Graph(library)
        self.degraded: list[str] = []
        self.near: dict[int, tuple[Near, ...]] = {}
        self.reads: float | None = None
        self.left_out = 0
        self.sources = 0
        self.milliseconds: dict[str, float] = {}

    @contextmanager
    def timed(self, step: str) -> Iterator[None]:
        """Notes the step's milliseconds; stops before it when the asker is gone."""
        if self.cancel.cancelled:
            raise Cancelled()
        began = time.perf_counter()
        yield
        self.milliseconds[step] = round((time.perf_counter() - began) * 1000, 3)

    def embed(self, embedder: Embedder | None) -> None:
        """The question's vector, or the reason why there is none."""
        if embedder is None:
            self.degraded.append("no embedding model is set: searched by keywords")
            return
        try:
            if vectors.embedder(self.db) is None:
                self.degraded.append(
                    "the library has no vectors yet ('libraryfs embed' makes them): searched by keywords"
                )
                return
            with self.cancel.sooner(self._reserve) as soon:
                model, dimension, window, read = within(soon, lambda: _described(embedder, self.question))
                vectors.check_embedder(self.db, model, dimension, defaults.alike(model))
                if read > window:
                    self.degraded.append(
                        f"the question has {read} tokens, and the embedding model reads the first {window}"
                    )
                self.vector = embedder.embed([self.question], soon)[0].tobytes()
            self.library.snapshot.enable_vectors()
        except Cancelled:
            raise
        except ModelError as error:
            self.degraded.append(f"{error}: searched by keywords")

    def search(self, scopes: Sequence[Entry], mode: Mode) -> None:
        """The hits of each scope; of two for one item, the one with the higher score stays."""
        matched = shown = 0
        searched: set[int] = set()
        self.asked = frozenset(entry.ino for entry in scopes)
        self.sets = evals.with_runs(self.db)
        for scope in dict.fromkeys(search_scope(self.library, entry) for entry in scopes):
            searched.update(scope.namespaces)
            if self.vector is None:
                found = keywords.search(self.db, self.question, scope, NEAREST, self.reachable)
                matched += found.matched
                shown += len(found.best)
                self._add([_Hit(one.ino, KEYWORD_SCORE, "fallback", share=one.share) for one in found.best])
            elif mode == "hybrid":
                self._add(self._hybrid(scope, self.vector))
            else:
                near = vectors.nearest(self.db, self.vector, scope, NEAREST, self.reachable)
                self._add([_Hit(one.ino, _score(rank), "vector", one.similarity) for rank, one in enumerate(near)])
                self._add_waiting(scope)
        if matched > shown:
            self.left_out += matched - shown
            self.degraded.append(f"files with words of the question that were left out: {matched - shown}")
        self._note_waiting(tuple(searched), mode)

    def _add_waiting(self, scope: SearchScope) -> None:
        """What has no vectors yet is found by keywords: as good as nothing else, but not lost."""
        if vectors.count_queued(self.db, scope.namespaces):
            waits = partial(vectors.is_queued, self.db)
            found = keywords.search(
                self.db, self.question, scope, NEAREST, lambda ino: waits(ino) and self.reachable(ino)
            )
            self._add([_Hit(one.ino, KEYWORD_SCORE, "fallback", share=one.share) for one in found.best])

    def _note_waiting(self, namespaces: tuple[int, ...], mode: Mode) -> None:
        if self.vector is not None and (count := vectors.count_queued(self.db, namespaces)):
            self.degraded.append(
                f"files without vectors yet: {count}, searched by keywords only ('libraryfs embed' makes them)"
            )
        by_words = self.vector is None or mode == "hybrid" or bool(count)
        if by_words and (count := keywords.count_queued(self.db, namespaces)):
            self.degraded.append(f"files not indexed for keywords yet: {count} ('libraryfs embed' does it)")

    def _hybrid(self, scope: SearchScope, vector: bytes) -> list[_Hit]:
        near = {one.ino: one for one in vectors.nearest(self.db, vector, scope, LEG, self.reachable, enough=NEAREST)}
        found = keywords.search(self.db, self.question, scope, LEG, self.reachable, enough=1)
        by_words = [one.ino for one in found.best if one.ino not in near]
        measured = {**vectors.similarities(self.db, vector, by_words), **near}
        reads = self._reads(scope, vector, measured, found)
        candidates = {ino: found.shares.get(ino, 0.0) for ino in (*measured, *by_words)}
        cosines = {ino: one.similarity for ino, one in measured.items()}
        self.sources += 1
        hits = []
        for rank, ino in enumerate(fusion.best(cosines, candidates, reads, NEAREST)):
            one = measured.get(ino)
            origin: Origin = "vector" if ino in near else "fallback"
            hits.append(_Hit(ino, _score(rank), origin, one.similarity if one else None))
        return hits

    def _reads(
        self, scope: SearchScope, vector: bytes, measured: Mapping[int, vectors.Nearest], found: keywords.Findings
    ) -> float:
        """Whether the embedding model reads what is asked here; the least of the scopes is told."""
        if not measured:
            return 1.0
        ranked = sorted(found.shares, key=lambda ino: (-found.shares[ino], ino))
        telling, common = ranked[: len(ranked) // 2], ranked[len(ranked) // 2 :]
        some = [common[len(common) * at // BACKGROUND] for at in range(BACKGROUND)] if common else []
        if len(common) < BACKGROUND // 2:
            some += [ino for ino in keywords.spread(self.db, scope, BACKGROUND // 2) if ino not in telling]
        others = [ino for ino in dict.fromkeys(some) if self.reachable(ino)]
        cosines = vectors.middles(self.db, vector, others)
        reads = fusion.readable(max(one.similarity for one in measured.values()), cosines)
        self.reads = reads if self.reads is None else min(reads, self.reads)
        return reads

    def _add(self, hits: Sequence[_Hit]) -> None:
        self.sources += 1 if hits else 0
        for hit in hits:
            if hit.ino not in self.hits or hit.order < self.hits[hit.ino].order:
                self.hits[hit.ino] = hit

    def notes(self) -> tuple[str, ...]:
        """What the answer's trace has to say about the search."""
        if self.reads is None or self.reads >= WORDS_LEAD_BELOW:
            return ()
        return (
            f"words led the search: the embedding model hardly tells texts in this question's language apart"
            f" (readable {self.reads:.2f} of 1)",
        )

    def reachable(self, ino: int) -> bool:
        """Whether the principal can open the item by a path, and it may be evidence.

        An eval set is none, unless it was asked itself: what its questions want to hear is not what the library knows.
        """
        path = self.path(ino)
        return path is not None and (ino in self.asked or not (ino in self.sets or evals.is_default(path)))

    def path(self, ino: int) -> str | None:
        """The path of an item; None when it is hidden, gone, or reached by no path."""
        if ino not in self.paths:
            try:
                self.paths[ino] = self.library.path_of(self.library.entry(ino))
            except PathNotFound:
                self.paths[ino] = None
        return self.paths[ino]

    def expand(self) -> None:
        """One hop from each hit, the best first; an item that is a better hit already stays as it is."""
        reached: dict[int, float] = {}
        for seed in sorted(self.hits.values(), key=lambda hit: hit.order):
            node = self.graph.node(seed.ino)
            for other in self.graph.neighbours(node) if node else ():
                if other.ino not in self.hits and self.reachable(other.ino):
                    reached.setdefault(other.ino, seed.score - HOP)
        kept = list(reached.items())[:MAX_GRAPH]
        if len(reached) > len(kept):
            self.left_out += len(reached) - len(kept)
            self.degraded.append(f"memories over edges that were left out: {len(reached) - len(kept)}")
        near = vectors.similarities(self.db, self.vector, [ino for ino, _ in kept]) if self.vector else {}
        self._add([_Hit(ino, score, "graph", near[ino].similarity if ino in near else None) for ino, score in kept])

    def load(self) -> tuple[Evidence, ...]:
        """The evidence in order: by score, then by closeness, a current memory before those that it replaces."""
        placed: dict[int, Evidence] = {}
        measured = vectors.near_passages(self.db, self.vector, list(self.hits), NEAR_CHUNKS) if self.vector else {}
        self.near = {
            ino: tuple(Near(one.start, one.length, one.similarity) for one in found) for ino, found in measured.items()
        }
        for hit in sorted(self.hits.values(), key=lambda hit: hit.order):
            node = self.graph.node(hit.ino)
            current = self.graph.current(node) if node else None
            if current is not None and current.ino in self.hits:
                self._place(placed, self.hits[current.ino], None)
            self._place(placed, hit, current.id if current and self.reachable(current.ino) else None)
        return tuple(placed.values())

    def _place(self, placed: dict[int, Evidence], hit: _Hit, superseded_by: str | None) -> None:
        path = self.path(hit.ino)
        if hit.ino in placed or path is None:
            return
        entry = self.library.entry(hit.ino)
        near = self.near.get(hit.ino) or self._near_by_words(entry)
        start, excerpt = self._excerpt(entry, near)
        placed[hit.ino] = Evidence(
            id=texts.row_id(self.db, entry),
            path=path,
            score=round(hit.score, 4),
            origin=hit.origin,
            similarity=None if hit.similarity is None else round(hit.similarity, 6),
            excerpt=excerpt,
            superseded_by=superseded_by,
            title=texts.title(self.db, entry),
            ino=entry.ino,
            namespace_id=entry.namespace_id or 0,
            start=start,
            size=entry.size,
            near=near,
        )

    def _near_by_words(self, entry: Entry) -> tuple[Near, ...]:
        text = texts.load(self.db, entry.ino, keywords.MAX_TEXT_BYTES)
        if text is None or not text.text:
            return ()
        best = words.best_passages(self.db, text.text, self.question, NEAR_CHUNKS)
        return tuple(Near(text.size_of(0, start), text.size_of(start, end), None) for start, end in best)

    def _excerpt(self, entry: Entry, near: Sequence[Near]) -> tuple[int, str]:
        """(byte offset, text) of the nearest passage; without one, of the passage with most words of the question."""
        if not near:
            return 0, ""
        return near[0].start, texts.passage(self.db, entry, near[0].start, near[0].length)


def _described(embedder: Embedder, question: str) -> tuple[str, int, int, int]:
    """(model, dimension, window, tokens of the question). The first time, it may check weights and read a tokeniser."""
    return embedder.model, embedder.dimension, embedder.window, len(embedder.offsets(question))


def _score(rank: int) -> float:
    return 1 - rank / 100
