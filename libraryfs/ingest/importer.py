"""One import: a source, one transaction, a report.

The source is read twice. The first pass checks everything and notes what there is, before the snapshot is locked; the
second brings the rows in, in inode order, within the transaction.
"""

import os
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from libraryfs.errors import InvalidSource, SnapshotBusy, SnapshotFull, SourceShrank
from libraryfs.ingest.files import Moved, show
from libraryfs.ingest.opening import Opened, open_source
from libraryfs.ingest.report import ImportReport, Progress, no_progress
from libraryfs.ingest.source import Census, Loaded
from libraryfs.paths import parse_namespace
from libraryfs.rows import ArtifactRow, EdgeRow, GrantRow, MemoryRow, NamespaceRow, WorkspaceRow
from libraryfs.store import (
    access,
    artifacts,
    edges,
    inodes,
    keywords,
    memory,
    namespaces,
    source_files,
    sources,
    workspace,
)
from libraryfs.store.namespaces import Namespace
from libraryfs.store.outcome import Outcome
from libraryfs.store.snapshot import Snapshot
from libraryfs.store.staging import STORES, StagedRow, Staging, staging

if TYPE_CHECKING:
    import apsw

_STORE_OF: Final = {MemoryRow: 0, WorkspaceRow: 1, ArtifactRow: 2}
_TOLD_EVERY: Final = 200
_TRIES: Final = 3
_FEW: Final = 8
"""A source of fewer rows may lose most of them without a question."""


def import_source(
    snapshot: Snapshot,
    source: Path,
    namespace: str | None,
    principal: str | None,
    progress: Progress = no_progress,
    *,
    options: Mapping[str, Any] = MappingProxyType({}),
    strict: bool = False,
    checksum: bool = False,
    verbose: bool = False,
    may_shrink: bool = True,
) -> ImportReport:
    """Import `source` in one transaction, and say what changed.

    `source` is a folder, a file, or a `.jsonl` file of rows. `namespace` is a path, `/ring/NAME` or `/agent/NAME`; all
    but rows that name their own need it. The principal is granted what it imported (None: nobody is). `options` are
    fields of SourceOptions; those not given are as at the last import of the source. `strict` makes each oddity of a
    file an error, `checksum` reads files that are as they were too, `verbose` names all that is left out. Without
    `may_shrink`, more than half of the source's rows do not go. Raises InvalidSource (file and line), SourceShrank,
    SnapshotBusy, SnapshotFull; then nothing was imported.
    """
    started = time.monotonic()
    if namespace is not None:
        namespace = "/{}/{}".format(*parse_namespace(namespace))
    report = ImportReport(source=show(source))
    if verbose:
        report.name_all()
    try:
        opened = open_source(
            snapshot, source, namespace, report, progress, said=options, strict=strict, checksum=checksum
        )
        with closing(opened.source), staging(snapshot) as staged:
            run = _Import(snapshot, opened, namespace or "", report, progress, strict=strict, may_shrink=may_shrink)
            run.read(staged)
            with snapshot.transaction() as db:
                run.write(db, staged, principal)
    except SnapshotFull:
        raise SnapshotFull(
            f"{snapshot.path}: the disk is full: nothing was imported. Make room and try again"
        ) from None
    report.seconds = time.monotonic() - started
    return report


class _Import:
    """The state of one import between its two passes."""

    def __init__(
        self,
        snapshot: Snapshot,
        opened: Opened,
        namespace: str,
        report: ImportReport,
        progress: Progress,
        *,
        strict: bool,
        may_shrink: bool,
    ) -> None:
        self.snapshot = snapshot
        self.opened = opened
        self.source = opened.source
        self.namespace = namespace
        self.report = report
        self.progress = progress
        self.strict = strict
        self.may_shrink = may_shrink
        self.grants: list[GrantRow] = []
        self.own: dict[str, None] = {namespace: None} if namespace else {}
        """The namespaces that this import is about; an edge's target alone does not make one its."""
        self.unsettled: set[int] = set()
        """Rows whose files changed while they were read: the next import reads them again."""

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
        for first, second in staged.finish():
            if not self.source.may_repeat:
                raise InvalidSource(f"{second}: has the id of {first}; ids are unique. Nothing was imported")
            if self.strict:
                raise InvalidSource(f"{second}: goes where {first} goes. Nothing was imported")
            self.report.warn(f"{second}: goes where {first} goes, and is left out; give it a place with --map")

    def write(self, db: "apsw.Connection", staged: Staging, principal: str | None) -> None:
        """Second pass, in the transaction."""
        now_ns = time.time_ns()
        self.report.namespaces = list(self.own)
        known = {path: namespaces.ensure(db, path) for path in [*self.own, *staged.namespaces()]}
        by_id = {namespace.id: namespace for namespace in known.values()}
        self._check_alone(db)
        source_id = sources.ensure(db, self.source.uri, self.namespace, now_ns)
        staged.resolve({path: namespace.id for path, namespace in known.items()})
        census = self.source.census()
        gone = self._gone(db, staged, source_id, census)
        for store, namespace_id, ino in gone:
            _delete(db, store, by_id.get(namespace_id) or namespaces.by_id(db, namespace_id), ino)
            self.report.removed += 1
        total = staged.count()
        for done, row in enumerate(staged.rows()):
            if done % _TOLD_EVERY == 0:
                self.progress("write", done, total)
            self._put(db, row, known[row.namespace], source_id, now_ns)
        self.progress("write", total, total)
        is_whole = census is None or census.is_whole
        self.report.unchanged += 0 if census is None else census.kept
        for edge in staged.edges_gone(source_id, is_whole=is_whole):
            edges.remove(db, edge)
        self.report.edges = staged.put_edges(source_id, is_whole=is_whole)
        self._grant(db, known, principal)
        self._remember(db, source_id, census, principal)
        keywords.index_queued(db, lambda done, total: self.progress("index", done, total))

    def _grant(self, db: "apsw.Connection", known: dict[str, Namespace], principal: str | None) -> None:
        for given in self.grants:
            access.grant(db, given.principal, known[given.path])
        if principal is not None:
            for path in self.own:
                access.grant(db, principal, known[path])

    def _check_alone(self, db: "apsw.Connection") -> None:
        """What was not read stands on what the last import left: another one since then makes it worthless."""
        now = sources.find(db, self.source.uri, self.namespace)
        if (now.imported_ns if now else None) != self.opened.imported_ns:
            raise SnapshotBusy(f"{self.report.source}: was imported by another process meanwhile; import again")

    def _gone(
        self, db: "apsw.Connection", staged: Staging, source_id: int, census: Census | None
    ) -> list[tuple[int, int, int]]:
        if census is None or census.is_whole:
            stays = set() if census is None else census.stays
            gone = [row for row in staged.gone(source_id) if row[2] not in stays]
        else:
            staying = {state.ino for state in census.states}  # a memory with an id whose file was renamed
            gone = [row for row in source_files.rows_of(db, source_id, census.gone) if row[2] not in staying]
        if not self.may_shrink and gone:
            rows = next(one.rows for one in sources.every(db) if one.id == source_id)
            if len(gone) * 2 > rows >= _FEW:
                raise SourceShrank(
                    f"{self.report.source}: {len(gone):,} of its {rows:,} rows would go, more than half; look whether"
                    " the source is all there, and bring it in step with --yes"
                )
        return gone

    def _put(self, db: "apsw.Connection", staged: StagedRow, namespace: Namespace, source_id: int, now_ns: int) -> None:
        loaded = self._load(staged)
        if loaded is None:
            return
        if inodes.row_ino(namespace.path, STORES[staged.store], loaded.row.id) != staged.ino:
            raise InvalidSource(f"{staged.place}: changed during the import; import again. Nothing was imported")
        time_ns = now_ns if loaded.time_ns is None else loaded.time_ns
        try:
            outcome = _upsert(db, namespace, loaded, source_id, time_ns)
        except Moved as error:  # a large file, between its digest and its storing: nothing of it may stay
            raise InvalidSource(f"{error}; import again. Nothing was imported") from None
        except ValueError as error:
            raise InvalidSource(f"{staged.place}: {error}. Nothing was imported") from None
        setattr(self.report, outcome.value, getattr(self.report, outcome.value) + 1)
        if staged.owner not in (None, source_id):
            source_files.disown(db, staged.ino, source_id)
            if outcome is Outcome.CHANGED:
                self._replaced(db, staged, loaded)

    def _load(self, staged: StagedRow) -> Loaded | None:
        """The row with its content. One that changed meanwhile is looked at again; None: it stays as it is."""
        locator = staged.locator
        for _ in range(_TRIES):
            try:
                return self.source.load(locator)
            except Moved as error:
                if self.strict:
                    raise InvalidSource(f"{error}; import again. Nothing was imported") from None
                self.unsettled.add(staged.ino)
                again = self.source.again(locator)
                if again is None or _ino(again.row, staged) != staged.ino:
                    break
                locator = again.locator
            except InvalidSource as error:
                if self.strict or not self.source.may_repeat:
                    raise
                self.unsettled.add(staged.ino)
                self.report.warn(str(error))
                return None
        self.report.warn(f"{staged.place}: changed while it was read; the next import brings it in")
        return None

    def _remember(self, db: "apsw.Connection", source_id: int, census: Census | None, principal: str | None) -> None:
        path = Path(os.path.abspath(self.opened.path))
        options = self.opened.options.model_dump_json(exclude_defaults=True)
        sources.remember(db, source_id, path, options, principal, None if census is None else census.rules)
        if census is None:
            return
        states = [state for state in census.states if state.ino not in self.unsettled or not state.ino]
        if census.is_whole:
            source_files.clear(db, source_id, census.stays)
        unsettled = [state.path for state in census.states if state.ino in self.unsettled and state.ino]
        source_files.replace(db, source_id, states, [*census.gone, *unsettled])

    def _replaced(self, db: "apsw.Connection", staged: StagedRow, loaded: Loaded) -> None:
        """Another source's row was written over. Two folders that are both there would do so for ever: refused."""
        kind, _, path = sources.uri(db, staged.owner or 0).partition(":")
        if loaded.is_path_id and kind == "folder" and os.path.isdir(path):
            raise InvalidSource(
                f"{staged.place}: {path} has another file of this path for {staged.namespace}; give one of the two"
                " folders a place of its own (--section workspace/NAME), or another ring. Nothing was imported"
            )
        self.report.warn(f"{staged.place}: replaced the row {loaded.row.id} that came from {path}")


def _ino(row: Any, staged: StagedRow) -> int:
    return inodes.row_ino(staged.namespace, STORES[staged.store], row.id)


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
