"""What the front matter of a document says: fields and metadata, and what of it could not be taken.

The block is read, never removed: a file's content stays as it is. Nothing here refuses a file. What cannot be read is
a remark with its line, and the file goes without that field, or without all of them.
"""

import json
import math
from collections.abc import Callable
from datetime import date, datetime, time
from email.utils import parsedate_tz
from typing import Any, Final, NamedTuple

import yaml
from pydantic import TypeAdapter, ValidationError

from libraryfs import frontmatter
from libraryfs.rows import MemoryType, RowId, complaint, to_nanoseconds

HEAD_BYTES: Final = 64 * 1024
"""Front matter is looked for in so much of a file; a longer block is none."""

_MAX_VALUES: Final = 10_000
_MAX_NESTING: Final = 64
_ID: Final[TypeAdapter[str]] = TypeAdapter(RowId)
_TYPE: Final[TypeAdapter[str]] = TypeAdapter(MemoryType)
_NEEDED: Final = dict.fromkeys(("supersedes", "derives_from"), "an id, or a list of ids")
_TIME_KEYS: Final = {"created": "created_ns", "updated": "updated_ns"}

Refuse = Callable[[str, str], None]
"""Hears of a field that cannot be taken: its key and the reason."""


class Remark(NamedTuple):
    """What could not be read, and the line of the file that it stands in."""

    line: int
    text: str


class FrontMatter(NamedTuple):
    """What a file says of itself; None or empty where it says nothing. Times in nanoseconds since the epoch.

    `metadata` is all that is in no field, `values` the whole block.
    """

    title: str | None = None
    id: str | None = None
    memory_type: str | None = None
    confidence: float | None = None
    created_ns: int | None = None
    updated_ns: int | None = None
    supersedes: tuple[str, ...] = ()
    derives_from: tuple[str, ...] = ()
    metadata: dict[str, Any] = {}  # noqa: RUF012 - never changed
    values: dict[str, Any] = {}  # noqa: RUF012 - never changed


class Reading(NamedTuple):
    """The front matter, where the document's own text begins (in characters), and what could not be read."""

    front: FrontMatter
    end: int
    remarks: tuple[Remark, ...]


NOTHING: Final = Reading(FrontMatter(), 0, ())


def read(text: str) -> Reading:
    """The front matter at the start of a document. Never raises."""
    block = frontmatter.find(text[:HEAD_BYTES])
    if block is None:
        if len(text) > HEAD_BYTES and frontmatter.is_open(text):
            return _none(1, f"front matter does not end within {HEAD_BYTES // 1024} KiB; close it with ---", 0)
        return NOTHING  # at most one thematic break at the top, nothing that ends a block
    try:
        written, data = _load(block)
    except frontmatter.NotYaml as error:
        return _none(error.line, error.reason, block.end)
    if data is None:
        return Reading(FrontMatter(), block.end, ())
    if not isinstance(data, dict):
        reason = "a text between two lines of dashes, not front matter (which is `key: value` lines)"
        return _none(2, reason, block.end)
    remarks: list[Remark] = []

    def refuse(key: str, reason: str) -> None:
        remarks.append(Remark(_line(block, written, key), f"{key} in the front matter: {reason}"))

    front, end = _fields(written, data, refuse), block.end
    rest = text[end:HEAD_BYTES].lstrip()
    if (second := frontmatter.find(rest)) and ":" in second.text:
        remarks.append(Remark(text.count("\n", 0, end) + 1, "a second block of front matter, which is not read"))
        end = len(text[:HEAD_BYTES]) - len(rest) + second.end
    return Reading(front, end, tuple(remarks))


def _none(line: int, reason: str, end: int) -> Reading:
    return Reading(FrontMatter(), end, (Remark(line, reason),))


def _load(block: frontmatter.Block) -> tuple[dict[str, Any], object]:
    """Each value as it is written, by key (a node of YAML, else the value), and what the block means."""
    if block.form != "yaml":
        data = frontmatter.load_other(block)
        return (data if isinstance(data, dict) else {}), data
    node, data = frontmatter.load(block.text)
    if not isinstance(node, yaml.MappingNode):
        return {}, data
    return {key.value: value for key, value in node.value if isinstance(key, yaml.ScalarNode)}, data


def _line(block: frontmatter.Block, written: dict[str, Any], key: str) -> int:
    node = written.get(key)
    if isinstance(node, yaml.Node):
        return int(node.start_mark.line) + 2
    lines = block.text.splitlines()
    named = (number for number, line in enumerate(lines) if line.lstrip(' "').startswith(key))
    return next(named, 0) + (1 if block.form == "json" else 2)


def _fields(written: dict[str, Any], data: dict[Any, Any], refuse: Refuse) -> FrontMatter:
    budget = [_MAX_VALUES]
    try:
        values = {_name(key): plain(value, budget) for key, value in data.items()}
    except (ValueError, RecursionError):
        refuse("a value", "too many values, or one that refers to itself")
        return FrontMatter()
    found: dict[str, Any] = {
        "title": _text(written.get("title"), "title", refuse),
        "id": _checked(written.get("id"), "id", refuse, _ID),
        "memory_type": _checked(written.get("memory_type"), "memory_type", refuse, _TYPE),
        "confidence": _confidence(data.get("confidence"), refuse),
    }
    for key in ("supersedes", "derives_from"):
        found[key] = _ids(written.get(key), key, refuse)
    taken = {key for key in found if found[key] or _is_empty(values.get(key))}
    for key, field in _TIME_KEYS.items():
        found[field] = nanoseconds(data.get(key))
        if found[field] is not None:
            taken.add(key)
    metadata = {key: value for key, value in values.items() if key not in taken}
    return FrontMatter(**found, metadata=metadata, values=values)


def _is_empty(value: object) -> bool:
    return value is None or value in ("", [])


def _text(node: object, key: str, refuse: Refuse) -> str | None:
    """A value as it is written: `id: 0012` is "0012", not a number in base 8."""
    if node is None:
        return None
    if isinstance(node, yaml.ScalarNode):
        return None if node.tag == "tag:yaml.org,2002:null" else str(node.value).strip() or None
    if isinstance(node, yaml.Node | dict | list):
        refuse(key, f"must be {_NEEDED.get(key, 'one value')}")
        return None
    return str(node).strip() or None


def _checked(node: object, key: str, refuse: Refuse, rule: TypeAdapter[str]) -> str | None:
    text = _text(node, key, refuse)
    try:
        return None if text is None else rule.validate_python(text)
    except ValidationError as error:
        refuse(key, complaint(error))
        return None


def _ids(node: object, key: str, refuse: Refuse) -> tuple[str, ...]:
    nodes = node.value if isinstance(node, yaml.SequenceNode) else node if isinstance(node, list) else [node]
    ids = [text for item in nodes if (text := _checked(item, key, refuse, _ID))]
    return tuple(dict.fromkeys(ids))


def _confidence(value: object, refuse: Refuse) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        refuse("confidence", "must be a number from 0 to 1")
        return None
    return float(value)


def nanoseconds(value: object) -> int | None:
    """A date or a time as nanoseconds since the epoch, UTC where it names no zone; None when it is neither."""
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    try:
        if isinstance(value, str | datetime):
            return int(to_nanoseconds(value))
    except (ValueError, OverflowError):
        pass
    if not isinstance(value, str):
        return None
    # 26-Oct-2000, as mail and many front matters have it
    parts = parsedate_tz(value.replace("-", " ") + " 00:00:00")
    try:
        return int(to_nanoseconds(datetime(*parts[:3]))) if parts else None
    except (ValueError, OverflowError):
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
        case datetime() | date() | time():
            return value.isoformat()
        case bytes():
            return value.decode("utf-8", "backslashreplace")
        case _:
            return str(value)
