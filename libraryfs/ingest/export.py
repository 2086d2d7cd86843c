"""Snapshot → `.jsonl` rows: the lossless form."""

from typing import BinaryIO

from libraryfs.ingest.report import ExportReport, Progress, no_progress
from libraryfs.store.snapshot import Snapshot


def export(
    snapshot: Snapshot, out: BinaryIO, namespace: str | None = None, progress: Progress = no_progress
) -> ExportReport:
    """Write the whole snapshot, or one `/ring/NAME` or `/agent/NAME`, as `.jsonl` to `out`. An import of it is equal."""
    raise NotImplementedError
