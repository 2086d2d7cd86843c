"""What a kind of source is: how it is recognised, and how it becomes rows.

A *tree* is a folder of files that each become a row at some place. A *store* is a file or a folder that another program
keeps its memory in; it is read whole, and gives rows with their content. Another package adds one by an entry point of
the group `libraryfs.kinds` that names a `TreeKind` or a `StoreKind`.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from libraryfs.ingest.document import Document
from libraryfs.ingest.layout import Placing
from libraryfs.ingest.links import Finding, KnownMemory
from libraryfs.ingest.options import SourceOptions
from libraryfs.ingest.report import ImportReport, Progress
from libraryfs.ingest.source import FileState
from libraryfs.rows import EdgeRow


def nothing_known() -> Iterable[KnownMemory]:
    """No memory."""
    return ()


class Known(NamedTuple):
    """What the last import left: the files, a digest of the rules by which they were chosen, and the memories."""

    files: dict[str, FileState]
    rules: bytes
    memories: Callable[[], Iterable[KnownMemory]] = nothing_known


class Opening(NamedTuple):
    """How a source is opened: where it is, where it goes, and what holds for it. `own` are the snapshot's files."""

    path: Path
    namespace: str
    options: SourceOptions
    report: ImportReport
    progress: Progress
    own: frozenset[str]
    known: Known
    strict: bool


Recognise = Callable[[Path, frozenset[str]], str | None]
"""By what a path (and, of a folder, the names in it) is known to be of a kind; None when it is not."""


@dataclass(frozen=True)
class TreeKind:
    """A folder of files. `wanted` are hidden files that it needs all the same, `links` reads edges in the texts of
    memories, `describe` what they say of themselves outside of front matter."""

    name: str
    says: str
    recognise: Recognise
    place: Placing
    wanted: frozenset[str] = frozenset()
    links: Finding | None = None
    describe: "Callable[[Document], dict[str, Any]] | None" = None


class Record(NamedTuple):
    """One memory of another program's store, with its whole text."""

    id: str
    title: str
    text: str
    memory_type: str = "semantic"
    metadata: dict[str, Any] = {}  # noqa: RUF012 - never changed
    confidence: float | None = None
    created_ns: int | None = None
    updated_ns: int | None = None
    folder: str = ""
    where: str = ""


@dataclass(frozen=True)
class StoreKind:
    """Another program's store. `read` gives its records, and the edges between them as (source id, kind, target id).

    It raises InvalidSource for a store that cannot be read at all; a record that cannot be taken it tells `warn`.
    """

    name: str
    says: str
    recognise: Recognise
    read: Callable[[Path, Callable[[str], None]], Iterator["Record | tuple[str, str, str]"]]
    section: str = "memories"
    suffixes: tuple[str, ...] = field(default=())


Kind = TreeKind | StoreKind
Edge = EdgeRow
