"""Opening a source: what it is, how it was read last, and what of it is known already."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from libraryfs.errors import InvalidSource
from libraryfs.ingest import kinds
from libraryfs.ingest.files import show
from libraryfs.ingest.folder import FolderSource
from libraryfs.ingest.jsonl import JsonlSource, is_rows
from libraryfs.ingest.kind import Known, Opening, StoreKind
from libraryfs.ingest.options import SourceOptions, over
from libraryfs.ingest.records import RecordsSource
from libraryfs.ingest.report import ImportReport, Progress
from libraryfs.ingest.source import FileState, Source
from libraryfs.store import source_files, sources
from libraryfs.store.snapshot import Snapshot


class Opened(NamedTuple):
    """A source, how it is read, and when it was imported last (None: never)."""

    path: Path
    source: Source
    options: SourceOptions
    imported_ns: int | None


def open_source(
    snapshot: Snapshot,
    path: Path,
    namespace: str | None,
    report: ImportReport,
    progress: Progress,
    *,
    said: Mapping[str, Any],
    strict: bool,
    checksum: bool,
) -> Opened:
    """The source at a path. `said` are options as the user gives them now, over those remembered.

    Raises InvalidSource when there is none, or it needs a namespace, InvalidRequest for an option that is none.
    """
    if not path.exists():
        raise InvalidSource(f"{show(path)}: no such file or folder")
    is_folder = path.is_dir()
    if not is_folder and not path.is_file():
        raise InvalidSource(f"{show(path)}: neither a folder nor a regular file")
    if not is_folder and said.get("kind") is None and is_rows(path):
        rows = JsonlSource(path, namespace, progress)
        before = sources.find(snapshot.db, rows.uri, namespace or "")
        report.kind, report.taken_as = "rows", "rows, one a line"
        return Opened(path, rows, SourceOptions(), before.imported_ns if before else None)
    if namespace is None:
        raise InvalidSource(f"{show(path)}: say where it goes: --ring NAME or --agent NAME")
    uri = ("folder:" if is_folder else "file:") + show(os.path.realpath(path))
    before = sources.find(snapshot.db, uri, namespace)
    was = SourceOptions.model_validate_json(before.options) if before else SourceOptions()
    options = over(was, said)
    kind, why = kinds.choose(path, options.kind)
    report.kind, report.taken_as = kind.name, f"{kind.says}{f' ({why})' if why else ''}"
    known = Known({}, b"")
    if before is not None and not checksum and was == options:
        states = [FileState(*state) for state in source_files.load(snapshot.db, before.id)]
        known = Known(
            {state.path: state for state in states},
            source_files.rules(snapshot.db, before.id),
            lambda: source_files.memories(snapshot.db, before.id),
        )
    real = os.path.realpath(snapshot.path)
    own = frozenset({real, real + "-wal", real + "-shm", real + "-journal"})
    opening = Opening(path, namespace, options, report, progress, own, known, strict)
    source: Source = RecordsSource(opening, kind, uri) if isinstance(kind, StoreKind) else FolderSource(opening, kind)
    return Opened(path, source, options, before.imported_ns if before else None)
