"""Edges between the memories of a source: those that front matter declares, and those that a kind reads in the text."""

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

from libraryfs.ingest.document import Document
from libraryfs.ingest.front_matter import FrontMatter
from libraryfs.ingest.source import Scanned
from libraryfs.rows import EdgeRow

_NUMBER: Final = re.compile(r"(?i)(?:adr[-_ ]?)?(\d{1,5})(?![\d.])")
EDGE_KINDS: Final = ("supersedes", "derives_from")


class Link(NamedTuple):
    """An edge from a document to another, found in its text. `target` is a path from the document's own folder, or a
    bare name that any folder may have; `is_back` turns it round."""

    kind: str
    target: str
    is_back: bool = False


KnownMemory = tuple[str, str, str, dict[str, Any]]
"""Path, id, title and metadata of a memory that the snapshot has."""

Finding = Callable[[Document], list[Link]]
"""Reads the links of one document."""


class Links:
    """Collects the links of a scan, and gives them as edges when all names are known."""

    def __init__(self, finding: Finding | None, namespace: str) -> None:
        self._finding = finding
        self._namespace = namespace
        self._ids: dict[str, str] = {}
        self._by_name: dict[str, list[str]] = {}
        self._found: list[tuple[str, Link]] = []
        self._declared: list[tuple[str, str, str, str]] = []

    @property
    def by_name(self) -> bool:
        """Whether what one document links to depends on which others there are."""
        return self._finding is not None

    def declared(self, path: str, row_id: str, front: FrontMatter) -> Iterator[EdgeRow]:
        """The edges that the front matter declares, by id; where links are read by name too, and those wait."""
        for kind in EDGE_KINDS:
            for target in getattr(front, kind):
                if self._finding is None:
                    yield self._edge(row_id, kind, target)
                else:
                    self._declared.append((path, row_id, kind, target))

    def add(self, path: str, row_id: str, document: Document) -> None:
        """Hears of a memory. Its links are read now, and resolved at the end."""
        if self._finding is None:
            return
        self._ids[path] = row_id
        front = document.reading.front
        for name in _names(path, front.title, front.metadata):
            self._by_name.setdefault(name, []).append(path)
        self._found += [(path, link) for link in self._finding(document)]

    def seed(self, memories: Iterable[KnownMemory]) -> None:
        """Hears of the memories whose files were not read, since they are as they were."""
        for path, row_id, title, metadata in memories:
            if self._ids.setdefault(path, row_id) == row_id:
                for name in _names(path, title, metadata):
                    if path not in (paths := self._by_name.setdefault(name, [])):
                        paths.append(path)

    def edges(self) -> Iterator[Scanned]:
        """The links whose other end is a memory of this source. A link in a text that leads nowhere is none."""
        known = set(self._ids.values())
        for path, row_id, kind, named in self._declared:
            found = None if named in known else self._resolve(path, numbered(named) or named)
            yield Scanned(self._edge(row_id, kind, self._ids[found] if found else named), "", path)
        for path, link in self._found:
            target = self._resolve(path, link.target)
            if target is None or target == path:
                continue
            source, end = (target, path) if link.is_back else (path, target)
            yield Scanned(self._edge(self._ids[source], link.kind, self._ids[end]), "", path)

    def _resolve(self, path: str, target: str) -> str | None:
        """The path that a link leads to: from the document's folder, from the top, else the nearest of that name."""
        folder = path.rpartition("/")[0]
        for base in (folder, ""):
            place = posixpath.normpath(posixpath.join(base, target))
            for suffix in ("", ".md"):
                if place + suffix in self._ids:
                    return place + suffix
        found = [
            one
            for one in self._by_name.get(_fold(target), ())
            if _fold(one).endswith(_fold(target)) or "/" not in target
        ]
        return min(found, key=lambda one: (not one.startswith(folder), one.count("/"), one), default=None)

    def _edge(self, source: str, kind: str, target: str) -> EdgeRow:
        return EdgeRow.model_construct(
            namespace=self._namespace, source=source, kind=kind, target=target, target_namespace=None
        )


def _names(path: str, title: str | None, metadata: dict[str, Any]) -> set[str]:
    """What a document may be called in a link: its name, its stem, its path, its title, its aliases."""
    stem = path.rpartition("/")[2].rpartition(".")[0]
    given = metadata.get("aliases") or metadata.get("alias") or []
    aliases = [given] if isinstance(given, str) else given if isinstance(given, list) else []
    names = (path, path.rpartition(".")[0], stem, title or "", numbered(stem) or "", *map(str, aliases))
    return {_fold(name) for name in names if name}


def numbered(name: str) -> str | None:
    """The number that a record is called by: `0005-use-x`, `ADR-0005` and `adr 5` are all `adr#5`."""
    found = _NUMBER.match(name.strip())
    return f"adr#{int(found[1])}" if found else None


def _fold(name: str) -> str:
    return re.sub(r"\s+", " ", name).strip().casefold()
