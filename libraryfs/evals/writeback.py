"""A run's one write: the rate into the item's metadata and the verdicts, with the reading of the rate before."""

import os
from pathlib import Path

from libraryfs.errors import LibraryError, PathNotFound, SnapshotError, SnapshotMissing, SnapshotReadOnly
from libraryfs.evals import history
from libraryfs.evals.assemble import Finished, completed
from libraryfs.evals.drift import RunRecord
from libraryfs.evals.render import two_lines
from libraryfs.evals.report import EvalReport
from libraryfs.store import access, evals, workspace
from libraryfs.store.snapshot import Snapshot

THIS = "this"


def write_back(snapshot: Snapshot, principal: str, finished: Finished, at_ns: int, pin: str | None) -> EvalReport:
    """The report, and the run stored. What keeps it from being stored is said in the report, and is no error.

    `snapshot` is the run's own reader; the write goes over a connection of its own, in one IMMEDIATE transaction, so
    two runs at once follow one another and each compares with the one before it.
    """
    try:
        with Snapshot.open(snapshot.path, write=True) as writer, writer.transaction():
            return _write(writer, principal, finished, at_ns, pin)
    except LibraryError as error:
        report = compare_only(snapshot, finished, pin)
        cause = _read_only(error, snapshot.path)
        reason = f"{cause.code}: {cause.message}" + ("; so no baseline was pinned" if pin is not None else "")
        return report.model_copy(update={"write_error": reason})


def _read_only(error: LibraryError, path: Path) -> LibraryError:
    """The error, or what it comes from: SQLite says of a read-only place only that it cannot open a file there."""
    if type(error) not in (SnapshotError, SnapshotReadOnly):
        return error
    place = next((place for place in (path, path.parent) if not os.access(place, os.W_OK)), None)
    if place is None:
        return error
    return SnapshotReadOnly(f"{place}: read-only; make it writable, or run the eval on a copy of the snapshot")


def _write(writer: Snapshot, principal: str, finished: Finished, at_ns: int, pin: str | None) -> EvalReport:
    db, ino = writer.db, finished.loaded.item.ino
    item = workspace.get(db, ino)
    if item is None or not access.can_access(db, principal, item.namespace_id):
        raise PathNotFound(finished.loaded.path)  # since the run began
    kept = history.load(db, ino)
    baseline = _baseline(kept, pin)
    stored = evals.add(db, item, history.to_store(finished.record, at_ns))
    if pin is not None:
        named = stored.number if pin == THIS else int(pin)
        evals.pin(db, ino, named)
        kept = [run.model_copy(update={"pinned": run.run == named}) for run in kept]
    pinned = finished._replace(record=finished.record.model_copy(update={"pinned": pin == THIS}))
    report = completed(pinned, item, kept, stored.number, baseline).model_copy(update={"written": True})
    evals.summarize(db, stored.id, "\n".join(two_lines(report)))
    return report


def compare_only(snapshot: Snapshot, finished: Finished, pin: str | None) -> EvalReport:
    """The report of a run that is not stored."""
    try:
        kept = history.load(snapshot.db, finished.loaded.item.ino)
        item = workspace.get(snapshot.db, finished.loaded.item.ino) or finished.loaded.item
    except SnapshotMissing:
        kept, item = [], finished.loaded.item
    return completed(finished, item, kept, None, _baseline(kept, pin))


def _baseline(kept: list[RunRecord], pin: str | None) -> RunRecord | None:
    """The run to compare with besides the last: the one named, else the pinned one."""
    if pin == THIS:
        return None
    if pin is not None:
        return next((run for run in kept if run.run == int(pin)), None)
    return next((run for run in reversed(kept) if run.pinned), None)
