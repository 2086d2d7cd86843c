"""The rows of the three stores as an importer gives them and `.jsonl` holds them, one JSON object a line.

    {"store": "namespace", "path": "/ring/dev"}
    {"store": "memory", "namespace": "/ring/dev", "id": "d1", "memory_type": "decision", "title": "…", "content": "…"}
    {"store": "workspace", "namespace": "/ring/dev", "id": "w1", "parent_id": null, "folder": false, "name": "a.md", …}
    {"store": "artifact", "namespace": "/ring/dev", "id": "a1", "filename": "img/a.png", "content_base64": "…"}
    {"store": "part", "content_base64": "…"}           more bytes of the row just before it
    {"store": "edge", "namespace": "/ring/dev", "source": "d2", "kind": "supersedes", "target": "d1"}
    {"store": "grant", "principal": "alice", "path": "/ring/dev"}

Times are ISO 8601 with up to nine digits of a second; one without a zone is UTC. Numbers are seconds since the epoch.
"""

import base64
import binascii
import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Annotated, Any, Final, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationError,
    model_validator,
)

from libraryfs.errors import InvalidPath, InvalidRequest
from libraryfs.paths import check_principal, parse_namespace

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FRACTION: Final = re.compile(r"[.,](\d+)")
_A_TIME: Final = "a time is ISO 8601 text or a number of seconds"


def to_nanoseconds(value: Any) -> Any:
    """Nanoseconds since the epoch from ISO 8601 text, a datetime, or a number of seconds. Raises ValueError."""
    if isinstance(value, bool):
        raise ValueError(_A_TIME)
    if isinstance(value, int | float):
        return _in_range(value * 1_000_000_000)
    if isinstance(value, str):
        match = _FRACTION.search(value)
        fraction = int(match[1][:9].ljust(9, "0")) if match else 0
        try:
            whole = datetime.fromisoformat(_FRACTION.sub("", value))
        except ValueError:
            raise ValueError(_A_TIME) from None
        return _in_range(to_nanoseconds(whole) + fraction)
    if isinstance(value, datetime):
        moment = value if value.tzinfo else value.replace(tzinfo=UTC)
        return _in_range((moment - _EPOCH) // timedelta(microseconds=1) * 1000)
    raise ValueError(_A_TIME)


def _in_range(nanoseconds: float) -> int:
    if not -(2**63) <= nanoseconds < 2**63:
        raise ValueError("a time lies between the years 1678 and 2262")
    return int(nanoseconds)


def iso(nanoseconds: int) -> str:
    """ISO 8601 in UTC, with nine digits of a second where there are any."""
    seconds, fraction = divmod(nanoseconds, 1_000_000_000)
    text = (_EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0")
    return text + (f".{fraction:09d}" if fraction else "") + "Z"


def _check_id(value: str) -> str:
    if any(ord(char) < 32 or ord(char) == 127 for char in value):
        raise ValueError("an id holds no control characters")
    return _check_unicode(value)


def _check_unicode(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError("must be valid Unicode, without lone surrogates") from None
    return value


def _check_principal(value: str) -> str:
    try:
        return check_principal(value)
    except InvalidRequest as error:
        raise ValueError(str(error)) from None


@lru_cache(maxsize=1024)
def _check_namespace(value: str) -> str:
    try:
        kind, name = parse_namespace(value)
    except InvalidPath as error:
        raise ValueError(str(error)) from None
    return f"/{kind}/{name}"


Nanoseconds = Annotated[int, BeforeValidator(to_nanoseconds), PlainSerializer(iso, when_used="json")]
RowId = Annotated[str, Field(min_length=1, max_length=1000), AfterValidator(_check_id)]
Label = Annotated[str, Field(min_length=1, max_length=255), AfterValidator(_check_unicode)]
MemoryType = Annotated[str, Field(min_length=1, max_length=100), AfterValidator(_check_unicode)]
Principal = Annotated[str, AfterValidator(_check_principal)]
NamespacePath = Annotated[str, AfterValidator(_check_namespace)]


class _Row(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)  # a mount reads no rows: built on use


class _Content(_Row):
    """A row with bytes: `content` is text, `content_base64` any bytes; neither is empty content."""

    content: str | None = None
    content_base64: str | None = None

    @model_validator(mode="after")
    def _one_content(self) -> "_Content":
        if self.content is not None and self.content_base64 is not None:
            raise ValueError("give content or content_base64, not both")
        return self

    def data(self) -> bytes:
        """The bytes. Raises ValueError when `content_base64` is not base 64."""
        from libraryfs.store.names import to_bytes  # here: rows are below the store, this is its one codec

        if self.content_base64 is None:
            return to_bytes(self.content or "")
        try:
            return base64.b64decode(self.content_base64, validate=True)
        except binascii.Error as error:
            raise ValueError(f"content_base64: {error}") from None


class NamespaceRow(_Row):
    """A ring or an agent; needed only for one that has no rows."""

    store: Literal["namespace"] = "namespace"
    path: NamespacePath


class MemoryRow(_Content):
    """One memory. `name` is the file name that it was given, kept where it is free.

    `shown_folder` is its folder's path below its section, where it is in one.
    """

    store: Literal["memory"] = "memory"
    namespace: NamespacePath
    id: RowId
    memory_type: MemoryType
    title: str
    confidence: Annotated[float, Field(ge=0, le=1)] | None = None
    metadata: dict[str, Any] = {}
    created_at: Nanoseconds | None = None
    updated_at: Nanoseconds | None = None
    name: str | None = None
    shown_folder: str | None = None


class WorkspaceRow(_Content):
    """One folder or item of a ring's workspace."""

    store: Literal["workspace"] = "workspace"
    namespace: NamespacePath
    id: RowId
    parent_id: RowId | None = None
    folder: bool = False
    name: str
    media_type: Label | None = None
    metadata: dict[str, Any] = {}
    created_at: Nanoseconds | None = None
    updated_at: Nanoseconds | None = None
    shown_name: str | None = None


class ArtifactRow(_Content):
    """One artifact; its filename may hold `/`. `shown_folder`: its folder's path, where names had to be changed."""

    store: Literal["artifact"] = "artifact"
    namespace: NamespacePath
    id: RowId
    filename: str
    media_type: Label | None = None
    metadata: dict[str, Any] = {}
    created_at: Nanoseconds | None = None
    updated_at: Nanoseconds | None = None
    shown_name: str | None = None
    shown_folder: str | None = None


class PartRow(_Row):
    """More bytes of the row just before it."""

    store: Literal["part"] = "part"
    content_base64: str


class EdgeRow(_Row):
    """An edge between two memories; `target_namespace` only where it is another one."""

    store: Literal["edge"] = "edge"
    namespace: NamespacePath
    source: RowId
    kind: Label
    target: RowId
    target_namespace: NamespacePath | None = None


class GrantRow(_Row):
    """A principal's access to a whole ring or agent."""

    store: Literal["grant"] = "grant"
    principal: Principal
    path: NamespacePath


STORES: Final = ("namespace", "memory", "workspace", "artifact", "part", "edge", "grant")


def complaint(error: ValidationError) -> str:
    """What is wrong by the first of a validation's errors, in words for the one who wrote the value."""
    first = error.errors(include_url=False)[0]
    if first["type"].startswith("union_tag_"):
        return f"store: must be one of {', '.join(STORES)}"
    return first["msg"].removeprefix("Value error, ")


Row = Annotated[
    NamespaceRow | MemoryRow | WorkspaceRow | ArtifactRow | PartRow | EdgeRow | GrantRow, Field(discriminator="store")
]
