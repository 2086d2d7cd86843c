"""Every setting: its environment variable is LIBRARYFS_ and the field's name in capitals."""

import os
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from libraryfs.errors import InvalidRequest

PREFIX = "LIBRARYFS_"


class Settings(BaseModel):
    """The settings in force. Each field's description gives its unit; its constraints give its range."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    snapshot: Path | None = Field(None, description="Snapshot file; $XDG_DATA_HOME/libraryfs/library.db when unset")
    max_depth: int = Field(5, ge=1, le=100, description="Deepest tree that `tree` gives; more is refused")
    busy_timeout_ms: int = Field(10_000, ge=0, le=600_000, description="Wait for another writer of the snapshot, ms")
    refresh_ms: int = Field(200, ge=10, le=1_000, description="How often a mount looks for committed changes, ms")

    @property
    def snapshot_path(self) -> Path:
        """The snapshot file to use when none is named."""
        if self.snapshot is not None:
            return self.snapshot.expanduser()
        data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
        return Path(data) / "libraryfs" / "library.db"


def settings() -> Settings:
    """The settings from the environment, read at each call. Raises InvalidRequest naming the variable."""
    values = {
        name: os.environ[PREFIX + name.upper()]
        for name in Settings.model_fields
        if os.environ.get(PREFIX + name.upper())
    }
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        variable = PREFIX + str(first["loc"][0]).upper()
        raise InvalidRequest(f"{variable}={first['input']!r}: {first['msg']}") from None
