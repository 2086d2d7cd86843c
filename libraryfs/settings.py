"""Every setting: its environment variable is LIBRARYFS_ and the field's name in capitals."""

import os
import pwd
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError

from libraryfs.errors import InvalidRequest
from libraryfs.paths import nearest

PREFIX = "LIBRARYFS_"
OF_SCRIPTS = ("LIBRARYFS_NO_SETUP", "LIBRARYFS_PYTHON")
"""Variables of the project's scripts, which are no settings."""


class Settings(BaseModel):
    """The settings in force. Each field's description gives its unit; its constraints give its range."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    snapshot: Path | None = Field(None, description="Snapshot file; $XDG_DATA_HOME/libraryfs/library.db when unset")
    cache: Path | None = Field(None, description="Folder of kept answers; $XDG_CACHE_HOME/libraryfs when unset")
    max_depth: int = Field(5, ge=1, le=100, description="Deepest tree that `tree` gives; more is refused")
    busy_timeout_ms: int = Field(10_000, ge=0, le=600_000, description="Wait for another writer of the snapshot, ms")
    refresh_ms: int = Field(200, ge=10, le=1_000, description="How often a mount looks for committed changes, ms")

    llm: str = Field("default", description="Language model: default, none, a .gguf file, or an http(s)://…/v1 URL")
    llm_model: str = Field("", description="Model name that the language model's endpoint wants")
    llm_key: SecretStr = Field(SecretStr(""), description="API key of the language model's endpoint")
    llm_context: int = Field(8192, ge=256, le=1_048_576, description="Context to use, tokens; a GGUF's own is a cap")
    embedder: str = Field(
        "default", description="Embedder: default, none, a sentence-transformers folder, or an http(s)://…/v1 URL"
    )
    embedder_model: str = Field("", description="Model name that the embedder's endpoint wants")
    embedder_key: SecretStr = Field(SecretStr(""), description="API key of the embedder's endpoint")
    embedder_window: int = Field(254, ge=16, le=131_072, description="Window of an endpoint's embedder, tokens")
    model_threads: int = Field(0, ge=0, le=1024, description="Threads of a model; 0: one for each core")
    model_idle_seconds: float = Field(
        300, ge=1, le=86_400, description="An idle model's process ends after this, seconds"
    )
    model_memory_mb: int = Field(
        0, ge=0, description="Cap of a model's address space, MiB (torch reserves much); 0: none"
    )
    model_queue: int = Field(64, ge=1, le=10_000, description="Requests that may wait for a model; more are refused")

    @property
    def snapshot_path(self) -> Path:
        """The snapshot file to use when none is named."""
        if self.snapshot is not None:
            return self.snapshot.expanduser()
        data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
        return Path(data) / "libraryfs" / "library.db"

    @property
    def cache_path(self) -> Path:
        """The folder to cache in."""
        if self.cache is not None:
            return self.cache.expanduser()
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        return Path(base) / "libraryfs"


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


def login_name() -> str:
    """The name of the user that runs this process; its number where the system has no name for it."""
    uid = os.geteuid()
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def unknown_variables() -> dict[str, str | None]:
    """The variables of the environment that look like settings and are none, each with the setting that was meant."""
    known = [PREFIX + name.upper() for name in Settings.model_fields]
    found: dict[str, str | None] = {}
    for name in sorted(os.environ):
        if name.startswith(PREFIX) and name not in known and name not in OF_SCRIPTS:
            found[name] = nearest(name, known, 0.8)
    return found
