"""One import: a source, one transaction, a report."""

from pathlib import Path

from libraryfs.ingest.report import ImportReport, Progress, no_progress
from libraryfs.store.snapshot import Snapshot


def import_source(
    snapshot: Snapshot, source: Path, namespace: str | None, principal: str, progress: Progress = no_progress
) -> ImportReport:
    """Import `source` in one transaction, and say what changed.

    `source` is a folder, or a `.jsonl` file of rows. `namespace` is a path, `/ring/NAME` or `/agent/NAME`; a folder
    needs it, `.jsonl` rows that do not name their own take it. The principal is granted what it imported.
    Raises InvalidSource (file and line), SnapshotBusy, SnapshotFull; then nothing was imported.
    """
    raise NotImplementedError
