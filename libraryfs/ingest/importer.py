"""One import: a source, one transaction, a report.

The source is read twice. The first pass checks everything and notes what there is, before the snapshot is locked; the
second brings the rows in, in inode order, within the transaction.
"""

import os
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from libraryfs.errors import InvalidSource, SnapshotFull
from libraryfs.ingest.files import show
from libraryfs.ingest.folder import FolderSource
from libraryfs.ingest.jsonl import JsonlSource
from libraryfs.ingest.report import ImportReport, Progress, no_progress
from libraryfs.ingest.source import Loaded, Source
from libraryfs.paths import parse_namespace
from libraryfs.rows import ArtifactRow, EdgeRow, GrantRow, MemoryRow, NamespaceRow, WorkspaceRow
from libraryfs.store import access, artifacts, edges, inodes, keywords, memory, namespaces, sources, workspace
from libraryfs.store.namespaces import Namespace
from libraryfs.store.outcome import Outcome
from libraryfs.store.snapshot import Snapshot
from libraryfs.store.staging import STORES, StagedRow, Staging, staging

if TYPE_CHECKING:
    import apsw

_STORE_OF: Final = {MemoryRow: 0, WorkspaceRow: 1, ArtifactRow: 2}
_TOLD_EVERY: Final = 200


def import_source(
    snapshot: Snapshot, source: Path, namespace: str | None, principal: str | None, progress: Progress = no_progress
) -> ImportReport:
    """Import `source` in one transaction, and say what changed.

    `source` is a folder, or a `.jsonl` file of rows. `namespace` is a path, `/ring/NAME` or `/agent/NAME`; a folder
    needs it, `.jsonl` rows that do not name their own take it. The principal is granted what it imported (None: nobody
    is). Raises InvalidSource (file and line), SnapshotBusy, SnapshotFull; then nothing was imported.
    """
    started = time.monotonic()
    if namespace is not None:
        namespace = "/{}/{}".format(*parse_namespace(namespace))
    report = ImportReport(source=show(source))
    try:
        with closing(_source(snapshot, source, namespace, report, progress)) as chosen, staging(snapshot) as staged:
            run = _Import(snapshot, chosen, namespace or "", report, progress)
            run.read(staged)
            with snapshot.transaction() as db:
                run.write(db, staged, principal)
    except SnapshotFull:
        raise SnapshotFull(
            f"{snapshot.path}: the disk is full: nothing was imported. Make room and try again"
        ) from None
    report.seconds = time.monotonic() - started
    return report


def _source(snapshot: Snapshot, path: Path, namespace: str | None, report: ImportReport, progress: Progress) -> Source:
    if path.is_dir():
        if namespace is None:
            raise InvalidSource(f"{show(path)}: say where a folder goes: --ring NAME or --agent NAME")
        real = os.path.realpath(snapshot.path)
        own = frozenset({real, real + "-wal", real + "-shm", real + "-journal"})
        return FolderSource(path, namespace, report, progress, own)
    if path.is_file() and path.suffix.lower() in (".jsonl", ".ndjson"):
        return JsonlSource(path, namespace, progress)
    if not path.exists():
        raise InvalidSource(f"{show(path)}: no such file or folder")
    raise InvalidSource(f"{show(path)}: neither a folder nor a .jsonl file of rows")


class _Import:
    """The state of one import between its two passes."""

    def __init__(
        self, snapshot: Snapshot, source: Source, namespace: str, report: ImportReport, progress: Progress
    ) -> None:
        self.snapshot = snapshot
        self.source = source
        self.namespace = namespace
        self.report = report
        self.progress = progress
        self.grants: list[GrantRow] = []
        self.own: dict[str, None] = {namespace: None} if namespace else {}
        """The namespaces that this import is about; an edge's target alone does not make one its."""

    def read(self, staged: Staging) -> None:
        """First pass."""
        for row, locator, where in self.source.scan():
            match row:
                case EdgeRow():
                    self.own[row.namespace] = None
                    target = row.target_namespace or row.namespace
                    staged.add_edge((row.namespace, row.source), row.kind, (target, row.target))
                case GrantRow():
                    self.own[row.path] = None
                    self.grants.append(row)
                case NamespaceRow():
                    self.own[row.path] = None
                case _:
                    self.own[row.namespace] = None
                    staged.add_row(_STORE_OF[type(row)], row.namespace, row.id, locator, where)
        twice = staged.finish()
        if twice:
            raise InvalidSource(f"{twice[1]}: has the id of {twice[0]}; ids are unique. Nothing was imported")

    def write(self, db: "apsw.Connection", staged: Staging, principal: str | None) -> None:
        """Second pass, in the transaction."""
        now_ns = time.time_ns()
        self.report.namespaces = list(self.own)
        known = {path: namespaces.ensure(db, path) for path in [*self.own, *staged.namespaces()]}
        by_id = {namespace.id: namespace for namespace in known.values()}
        source_id = sources.ensure(db, self.source.uri, self.namespace, now_ns)
        staged.resolve({path: namespace.id for path, namespace in known.items()})
        for store, namespace_id, ino in staged.gone(source_id):
            _delete(db, store, by_id.get(namespace_id) or namespaces.by_id(db, namespace_id), ino)
            self.report.removed += 1
        total = staged.count()
        for done, row in enumerate(staged.rows()):
            if done % _TOLD_EVERY == 0:
                self.progress("write", done, total)
            self._put(db, row, known[row.namespace], source_id, now_ns)
        self.progress("write", total, total)
        for edge in staged.edges_gone(source_id):
            edges.remove(db, edge)
        self.report.edges = staged.put_edges(source_id)
        for given in self.grants:
            access.grant(db, given.principal, known[given.path])
        if principal is not None:
            for path in self.own:
                access.grant(db, principal, known[path])
        keywords.index_queued(db, lambda done, total: self.progress("index", done, total))

    def _put(self, db: "apsw.Connection", staged: StagedRow, namespace: Namespace, source_id: int, now_ns: int) -> None:
        loaded = self.source.load(staged.locator)
        if inodes.row_ino(namespace.path, STORES[staged.store], loaded.row.id) != staged.ino:
            raise InvalidSource(f"{staged.place}: changed during the import; import again. Nothing was imported")
        time_ns = now_ns if loaded.time_ns is None else loaded.time_ns
        try:
            outcome = _upsert(db, namespace, loaded, source_id, time_ns)
        except ValueError as error:
            raise InvalidSource(f"{staged.place}: {error}. Nothing was imported") from None
        setattr(self.report, outcome.value, getattr(self.report, outcome.value) + 1)
        if outcome is Outcome.CHANGED and staged.owner not in (None, source_id):
            self._replaced(db, staged, loaded)

    def _replaced(self, db: "apsw.Connection", staged: StagedRow, loaded: Loaded) -> None:
        """Another source's row was written over. Two folders that are both there would do so for ever: refused."""
        kind, _, path = sources.uri(db, staged.owner or 0).partition(":")
        if loaded.is_path_id and kind == "folder" and os.path.isdir(path):
            raise InvalidSource(
                f"{staged.place}: {path} has another file of this path for {staged.namespace}; import both from one"
                " folder, or give a memory an id in its front matter. Nothing was imported"
            )
        self.report.warn(f"{staged.place}: replaced the row {loaded.row.id} that came from {path}")


def _upsert(db: "apsw.Connection", namespace: Namespace, loaded: Loaded, source_id: int, time_ns: int) -> Outcome:
    row: Any = loaded.row
    match row:
        case MemoryRow():
            return memory.upsert(db, namespace, row, loaded.body, source_id, time_ns)
        case WorkspaceRow():
            return workspace.upsert(db, namespace, row, loaded.body, source_id, time_ns)
        case _:
            return artifacts.upsert(db, namespace, row, loaded.body, source_id, time_ns)


def _delete(db: "apsw.Connection", store: int, namespace: Namespace, ino: int) -> None:
    if store == 0:
        memory.delete(db, namespace, ino)
    elif store == 1:
        workspace.delete(db, ino)
    else:
        artifacts.delete(db, ino)
