"""Every setting: its environment variable is LIBRARYFS_ and the field's name in capitals."""

import base64
import os
import pwd
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, model_validator

from libraryfs.errors import InvalidRequest
from libraryfs.paths import nearest

PREFIX = "LIBRARYFS_"
ENDPOINTS: Final = ("llm", "embedder")
"""Settings that may be an endpoint's URL; the field of the key that goes with it has `_key` at its end."""
BASIC: Final = "Basic "
"""A key that begins so is the whole Authorization header, and not a bearer's token."""
_SHOWN: Final = 80
"""Characters of a wrong value that a message shows."""
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

    @model_validator(mode="before")
    @classmethod
    def _take_logins_out(cls, values: Any) -> Any:
        """A user and password in an endpoint's URL become its key, before anything can print the URL."""
        return with_logins_apart(values) if isinstance(values, dict) else values

    @property
    def snapshot_path(self) -> Path:
        """The snapshot file to use when none is named."""
        if self.snapshot is not None:
            return expanded(self.snapshot, "snapshot")
        data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
        return Path(data) / "libraryfs" / "library.db"

    @property
    def cache_path(self) -> Path:
        """The folder to cache in."""
        if self.cache is not None:
            return expanded(self.cache, "cache")
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
        if not first["loc"]:
            raise InvalidRequest(first["msg"].removeprefix("Value error, ")) from None
        name = str(first["loc"][0])
        secret = name.removesuffix("_key") in ENDPOINTS  # the value, or a part of it
        value = "" if secret else f"={str(first['input'])[:_SHOWN]!r}"
        raise InvalidRequest(f"{PREFIX}{name.upper()}{value}: {first['msg']}") from None


def expanded(path: Path, name: str) -> Path:
    """The path with `~` and `~user` replaced. Raises InvalidRequest that names the setting."""
    try:
        return path.expanduser()
    except RuntimeError:
        raise InvalidRequest(f"{PREFIX}{name.upper()}={str(path)[:_SHOWN]!r}: no home folder of that user") from None


class Address(NamedTuple):
    """An endpoint's URL without its login, and the login as the value of an Authorization header, or empty."""

    url: str
    authorization: str


def is_url(value: str) -> bool:
    """Whether a model's setting names an endpoint."""
    return value.lower().startswith(("http://", "https://"))


def shown_url(url: str) -> str:
    """The URL as messages may show it: without login, query and fragment."""
    plain = address(url).url if is_url(url) else url
    return plain.split("#")[0].split("?")[0]


def address(url: str) -> Address:
    """The URL, its login apart. Raises ValueError, which does not quote it, for one that is none."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        reason = "its port is no number from 0 to 65535" if "ort" in str(error) else "its host is none"
        raise ValueError(reason) from None
    if not host or any(char.isspace() or not char.isprintable() for char in url):
        raise ValueError("its host is none")
    if port == 0:
        raise ValueError("its port is no number from 1 to 65535")
    login, at, rest = parts.netloc.rpartition("@")
    if not at:
        return Address(url, "")
    user, _, password = login.partition(":")
    pair = f"{unquote(user)}:{unquote(password)}".encode("utf-8", "replace")
    return Address(parts._replace(netloc=rest).geturl(), BASIC + base64.b64encode(pair).decode())


def with_logins_apart(values: dict[str, Any]) -> dict[str, Any]:
    """The settings' values with the login of each endpoint's URL as its key. Raises ValueError."""
    values = dict(values)
    for name in ENDPOINTS:
        value = values.get(name)
        if not isinstance(value, str) or not is_url(value):
            continue
        variable = PREFIX + name.upper()
        try:
            found = address(value)
        except ValueError as error:
            raise ValueError(f"{variable} is not a URL such as http://localhost:8000/v1: {error}") from None
        values[name] = found.url
        if found.authorization:
            if values.get(f"{name}_key"):
                raise ValueError(
                    f"{variable} holds a user and password, and {variable}_KEY is set too: leave one of them out"
                )
            values[f"{name}_key"] = found.authorization
    return values


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
