"""What the front matter of a memory says: fields and metadata.

The block is read, never removed: a file's content stays as it is. A block that is not a mapping (a text between two
thematic breaks) is no front matter; one that is not YAML is an error with its line.
"""

import json
import math
import re
from datetime import date, datetime
from email.utils import parsedate_tz
from typing import Any, Final, NamedTuple

import yaml
from pydantic import TypeAdapter, ValidationError

from libraryfs import frontmatter
from libraryfs.errors import InvalidSource
from libraryfs.rows import MemoryType, RowId, complaint, to_nanoseconds

HEAD_BYTES: Final = 64 * 1024
"""Front matter is looked for in so much of a file; a longer block is refused."""

_RAW: Final = re.compile(r"[\udc80-\udcff]")  # a byte that is no UTF-8
_MAX_VALUES: Final = 10_000
_MAX_NESTING: Final = 64
_ID: Final[TypeAdapter[str]] = TypeAdapter(RowId)
_TYPE: Final[TypeAdapter[str]] = TypeAdapter(MemoryType)
_NEEDED: Final = dict.fromkeys(("supersedes", "derives_from"), "an id, or a list of ids")
_TIME_KEYS: Final = {"created": "created_ns", "updated": "updated_ns"}


class FrontMatter(NamedTuple):
    """What a file says of itself; None or empty where it says nothing. Times in nanoseconds since the epoch."""

    title: str | None = None
    id: str | None = None
    memory_type: str | None = None
    confidence: float | None = None
    created_ns: int | None = None
    updated_ns: int | None = None
    supersedes: tuple[str, ...] = ()
    derives_from: tuple[str, ...] = ()
    metadata: dict[str, Any] = {}  # noqa: RUF012 - never changed


def read(head: bytes, where: str) -> FrontMatter:
    """The front matter at the start of `head`, the first HEAD_BYTES of the file `where` (for messages).

    Raises InvalidSource with file and line: not UTF-8, not YAML, or a field of a wrong type.
    """
    text = head.decode("utf-8", "surrogateescape")
    block = frontmatter.find(text)
    if block is None:
        if len(head) < HEAD_BYTES or not frontmatter.is_open(text):
            return FrontMatter()  # at most one thematic break at the top, nothing that ends a block
        raise InvalidSource(
            f"{where}:1: front matter that does not end within {HEAD_BYTES // 1024} KiB; close it with ---"
        )
    if raw := _RAW.search(block.yaml):
        line = block.yaml.count("\n", 0, raw.start()) + 2
        raise InvalidSource(f"{where}:{line}: front matter is not UTF-8; save the file as UTF-8")
    return _fields(block.yaml, where)


def _fields(text: str, where: str) -> FrontMatter:
    try:
        node, data = frontmatter.load(text)
    except frontmatter.NotYaml as error:
        raise InvalidSource(f"{where}:{error.line}: {error.reason}") from None
    if not isinstance(node, yaml.MappingNode) or not isinstance(data, dict):
        return FrontMatter()
    nodes = {key.value: value for key, value in node.value if isinstance(key, yaml.ScalarNode)}
    found: dict[str, Any] = {}
    found["title"] = _text(nodes.get("title"), "title", where)
    found["id"] = _checked(nodes.get("id"), "id", where, _ID)
    found["memory_type"] = _checked(nodes.get("memory_type"), "memory_type", where, _TYPE)
    for key in ("supersedes", "derives_from"):
        found[key] = _ids(nodes.get(key), key, where)
    found["confidence"] = _confidence(nodes.get("confidence"), data.get("confidence"), where)
    taken = set(found)
    for key, field in _TIME_KEYS.items():
        found[field] = nanoseconds(data.get(key))
        if found[field] is not None:
            taken.add(key)
    budget = [_MAX_VALUES]
    try:
        found["metadata"] = {_name(key): plain(value, budget) for key, value in data.items() if key not in taken}
    except (ValueError, RecursionError):
        raise InvalidSource(f"{where}:1: front matter holds too many values, or refers to itself") from None
    return FrontMatter(**found)


def _text(node: yaml.Node | None, key: str, where: str) -> str | None:
    """A value as it is written: `id: 0012` is "0012", not a number in base 8."""
    if node is None:
        return None
    if not isinstance(node, yaml.ScalarNode):
        raise InvalidSource(
            f"{where}:{node.start_mark.line + 2}: {key} in the front matter must be {_NEEDED.get(key, 'one value')}"
        )
    if node.tag == "tag:yaml.org,2002:null":
        return None
    return str(node.value).strip() or None


def _checked(node: yaml.Node | None, key: str, where: str, rule: TypeAdapter[str]) -> str | None:
    text = _text(node, key, where)
    try:
        return None if text is None else rule.validate_python(text)
    except ValidationError as error:
        line = node.start_mark.line + 2 if node else 1
        raise InvalidSource(f"{where}:{line}: {key} in the front matter: {complaint(error)}") from None


def _ids(node: yaml.Node | None, key: str, where: str) -> tuple[str, ...]:
    nodes = node.value if isinstance(node, yaml.SequenceNode) else [node]
    ids = [text for item in nodes if (text := _checked(item, key, where, _ID))]
    return tuple(dict.fromkeys(ids))


def _confidence(node: yaml.Node | None, value: object, where: str) -> float | None:
    if node is None or value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InvalidSource(f"{where}:{node.start_mark.line + 2}: confidence must be a number from 0 to 1")
    return float(value)


def nanoseconds(value: object) -> int | None:
    """A date or a time as nanoseconds since the epoch, UTC where it names no zone; None when it is neither."""
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    try:
        if isinstance(value, str | datetime):
            return int(to_nanoseconds(value))
    except ValueError:
        pass
    if not isinstance(value, str):
        return None
    # 26-Oct-2000, as mail and many front matters have it
    parts = parsedate_tz(value.replace("-", " ") + " 00:00:00")
    try:
        return int(to_nanoseconds(datetime(*parts[:3]))) if parts else None
    except ValueError:
        return None


def _name(key: object) -> str:
    """A key as JSON and YAML write it: `null`, not Python's None."""
    return json.dumps(key) if key is None or isinstance(key, bool) else str(key)


def plain(value: object, budget: list[int], depth: int = 0) -> Any:
    """The value as JSON holds it. Raises ValueError past `budget[0]` values: aliases can repeat one without end."""
    budget[0] -= 1
    if budget[0] < 0 or depth > _MAX_NESTING:
        raise ValueError("too many values")
    match value:
        case None | bool() | str() | int():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case dict():
            return {_name(key): plain(item, budget, depth + 1) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            items = sorted(value, key=str) if isinstance(value, set | frozenset) else value
            return [plain(item, budget, depth + 1) for item in items]
        case datetime() | date():
            return value.isoformat()
        case bytes():
            return value.decode("utf-8", "backslashreplace")
        case _:
            return str(value)
