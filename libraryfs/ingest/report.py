"""What an import or an export did, and how it tells its progress."""

from collections.abc import Callable

from pydantic import BaseModel, ConfigDict, Field

Progress = Callable[[str, int, int], None]
"""Called now and then with the step's name ("read", "write"), what is done, and the total (0: not known yet).

Units are files for a folder, bytes for the reading of `.jsonl`, and rows for writing.
"""

NAMED_AT_MOST = 100
"""So many skipped files and warnings are named in a report; all are counted."""


def no_progress(_step: str, _done: int, _total: int) -> None:
    """The progress callback that tells nobody."""


class Skipped(BaseModel):
    """A file of the source that was not imported, and why."""

    model_config = ConfigDict(frozen=True)

    path: str
    reason: str


class ImportReport(BaseModel):
    """What one import changed. Rows are memories, workspace items and folders, and artifacts."""

    source: str
    namespaces: list[str] = []
    added: int = 0
    changed: int = 0
    unchanged: int = 0
    removed: int = 0
    edges: int = Field(0, description="Edges that the source declares")
    skipped: dict[str, int] = Field({}, description="Files that were not imported, counted by reason")
    skipped_files: list[Skipped] = Field([], description="The first of them by name")
    warnings: list[str] = []
    seconds: float = 0.0

    def skip(self, path: str, reason: str) -> None:
        """Count one file that is not imported."""
        self.skipped[reason] = self.skipped.get(reason, 0) + 1
        if len(self.skipped_files) < NAMED_AT_MOST:
            self.skipped_files.append(Skipped(path=path, reason=reason))

    def warn(self, text: str) -> None:
        """Note one thing that was imported otherwise than the source says."""
        if len(self.warnings) < NAMED_AT_MOST:
            self.warnings.append(text)
        elif len(self.warnings) == NAMED_AT_MOST:
            self.warnings.append("… and more like these")


class ExportReport(BaseModel):
    """What one export wrote."""

    namespaces: int = 0
    rows: int = 0
    edges: int = 0
    grants: int = 0
    seconds: float = 0.0
