"""What an import or an export did, and how it tells its progress."""

from collections.abc import Callable
from typing import Any, Final, Protocol

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr

Progress = Callable[[str, int, int], None]
"""Called now and then with the step's name ("read", "write"), what is done, and the total (0: not known yet).

Units are files for a folder, bytes for the reading of `.jsonl`, and rows for writing.
"""

NAMED_AT_MOST: Final = 100
"""So many left-out files of one reason, and warnings, are named in a report; all are counted."""


class Writable(Protocol):
    """Where an export's lines go, each whole."""

    def write(self, data: bytes, /) -> Any:
        """Takes one line."""


def no_progress(_step: str, _done: int, _total: int) -> None:
    """The progress callback that tells nobody."""


class Skipped(BaseModel):
    """A file or folder (ends in `/`) of the source that was not imported, and why."""

    model_config = ConfigDict(frozen=True)

    path: str
    reason: str


class ImportReport(BaseModel):
    """What one import changed. Rows are memories, workspace items and folders, and artifacts."""

    source: str
    kind: str = Field("", description="What the source was taken for")
    taken_as: str = Field("", description="That, and why, in words")
    namespaces: list[str] = []
    added: int = 0
    changed: int = 0
    unchanged: int = 0
    removed: int = 0
    edges: int = Field(0, description="Edges that the source declares")
    skipped: dict[str, int] = Field({}, description="Files and folders that were left out, counted by reason")
    skipped_files: list[Skipped] = Field([], description="The first of each reason by name; all with --verbose")
    no_text: int = Field(0, description="Files read in this import that hold no text, images and media not counted")
    warnings: list[str] = []
    seconds: float = 0.0
    _names_all: bool = PrivateAttr(default=False)

    def name_all(self) -> None:
        """From here on every left-out file and every warning is named."""
        self._names_all = True

    def skip(self, path: str, reason: str) -> None:
        """Count one file that is not imported."""
        self.skipped[reason] = self.skipped.get(reason, 0) + 1
        if self._names_all or self.skipped[reason] <= NAMED_AT_MOST:
            self.skipped_files.append(Skipped(path=path, reason=reason))

    def warn(self, text: str) -> None:
        """Note one thing that was imported otherwise than the source says."""
        if self._names_all or len(self.warnings) < NAMED_AT_MOST:
            self.warnings.append(text)
        elif len(self.warnings) == NAMED_AT_MOST:
            self.warnings.append("… and more like these; --verbose names all")

    def reset(self, to: "ImportReport") -> None:
        """Forget what a scan that has to be made again has noted."""
        for name in type(self).model_fields:
            value = getattr(to, name)
            setattr(self, name, value.copy() if isinstance(value, list | dict) else value)


class ExportReport(BaseModel):
    """What one export wrote."""

    namespaces: int = 0
    rows: int = 0
    edges: int = 0
    grants: int = 0
    seconds: float = 0.0
