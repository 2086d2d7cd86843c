"""Bringing remembered sources in step with what they are now, once or as they change."""

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from pydantic import BaseModel

from libraryfs.errors import LibraryError
from libraryfs.ingest.files import show
from libraryfs.ingest.ignore import is_noise
from libraryfs.ingest.importer import import_source
from libraryfs.ingest.report import ImportReport, Progress, no_progress
from libraryfs.store import sources
from libraryfs.store.snapshot import Snapshot
from libraryfs.store.sources import SourceRecord

QUIET_MS: Final = 200
"""Changes that come closer together than this are taken as one."""
STEP_MS: Final = 50


class Synced(BaseModel):
    """What came of one source: a report, or why its rows stayed as they are."""

    source: str
    namespace: str
    report: ImportReport | None = None
    error: str | None = None
    code: str | None = None

    @property
    def is_changed(self) -> bool:
        """Whether any row was written or removed."""
        return self.report is not None and bool(self.report.added + self.report.changed + self.report.removed)


def sync(
    snapshot: Snapshot,
    record: SourceRecord,
    progress: Progress = no_progress,
    *,
    may_shrink: bool = False,
    checksum: bool = False,
    verbose: bool = False,
) -> Synced:
    """Import one source again, as it was imported. A source that cannot be read leaves its rows: the result says so."""
    path = record.path
    shown = show(path) if path is not None else record.uri
    found = Synced(source=shown, namespace=record.namespace)
    if path is None:
        found.error = "its path is not known; import it again"
        return found
    try:
        found.report = import_source(
            snapshot,
            path,
            record.namespace or None,
            record.principal,
            progress,
            may_shrink=may_shrink,
            checksum=checksum,
            verbose=verbose,
        )
    except LibraryError as error:
        found.error, found.code = error.message.removeprefix(f"{shown}: "), error.code
    except OSError as error:
        found.error = f"cannot be read: {error.strerror or error}"
    return found


def sync_all(
    snapshot: Snapshot,
    progress: Progress = no_progress,
    *,
    only: frozenset[Path] = frozenset(),
    may_shrink: bool = False,
    checksum: bool = False,
    verbose: bool = False,
) -> Iterator[Synced]:
    """All sources of a snapshot, or those at or above the paths `only`, one after another."""
    for record in sources.every(snapshot.db):
        if not only or _concerns(record, only):
            yield sync(snapshot, record, progress, may_shrink=may_shrink, checksum=checksum, verbose=verbose)


def _concerns(record: SourceRecord, changed: frozenset[Path]) -> bool:
    if record.path is None:
        return False
    real = Path(os.path.realpath(record.path))
    return any(one == real or real in one.parents for one in changed)


def watch(snapshot: Snapshot, stop: threading.Event, told: Callable[[list[Synced]], None]) -> None:
    """Bring sources in step as they change, until `stop`. `told` hears of each round. Blocks."""
    import watchfiles

    own = {os.path.realpath(f"{snapshot.path}{end}") for end in ("", "-wal", "-shm", "-journal")}
    roots = sorted({_watched(record.path) for record in sources.every(snapshot.db) if _is_there(record.path)})
    if not roots:
        return
    for changes in watchfiles.watch(
        *roots,
        watch_filter=lambda _change, path: path not in own and not is_noise(path),
        debounce=QUIET_MS,
        step=STEP_MS,
        stop_event=stop,
        rust_timeout=1000,
        raise_interrupt=True,
    ):
        touched = frozenset(Path(os.path.realpath(path)) for _, path in changes)
        told([one for one in sync_all(snapshot, only=touched) if one.is_changed or one.error])


def _is_there(path: Path | None) -> bool:
    return path is not None and path.exists()


def _watched(path: Path | None) -> Path:
    """What to watch for a source: its folder; of a file the folder that it is in, since editors replace files."""
    assert path is not None
    real = Path(os.path.realpath(path))
    return real if real.is_dir() else real.parent
