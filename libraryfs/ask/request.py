"""A question as it comes in: plain text, or a JSON object with options.

    When do we deploy?

    {"question": "When do we deploy?", "paths": ["/ring/dev"], "ground": true, "latency_budget_ms": 2000}

Every refusal is an InvalidRequest (or LimitExceeded) whose message starts with the field that is wrong.
"""

import json
import re
from typing import Annotated, Any, Final, Literal, NoReturn

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from libraryfs import paths as library_paths
from libraryfs.errors import InvalidPath, InvalidRequest, LimitExceeded

MAX_REQUEST_BYTES: Final = 64 * 1024
MAX_QUESTION_CHARACTERS: Final = 8_000
MAX_PATHS: Final = 50
MAX_DEPTH: Final = 64
"""Levels of nesting of a JSON request; beyond a schema's needs, below what any parser minds."""
MAX_LATENCY_MS: Final = 3_600_000

_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_LETTER_OR_DIGIT: Final = re.compile(r"[^\W_]")


def _check_question(value: str) -> str:
    value = value.strip()
    if not value:
        raise ValueError("is empty; write what you want to know")
    if found := _CONTROL.search(value):
        raise ValueError(f"holds the control character U+{ord(found[0]):04X} at {found.start()}; it must be text")
    if _SURROGATE.search(value):
        raise ValueError("is not valid Unicode")
    if not _LETTER_OR_DIGIT.search(value):
        raise ValueError("has no letter or digit in it; ask in words")
    if len(value) > MAX_QUESTION_CHARACTERS:
        raise ValueError(f"has {len(value)} characters; at most {MAX_QUESTION_CHARACTERS}")
    return value


def _check_path(value: str) -> str:
    try:
        library_paths.parse(value)
    except InvalidPath as error:
        raise ValueError(str(error)) from None
    return value


def _check_paths(value: Any) -> Any:
    if isinstance(value, list | tuple):
        if not value:
            raise ValueError("is empty; leave it out to ask the folder itself")
        if len(value) > MAX_PATHS:
            raise ValueError(f"{len(value)} paths given; at most {MAX_PATHS}")
        return tuple(dict.fromkeys(item for item in value)) if all(isinstance(item, str) for item in value) else value
    return value


def _check_shape(value: Any) -> Any:
    if value is not None:
        from libraryfs.ask import shape as shapes  # jsonschema is loaded by those that use it

        try:
            shapes.check_schema(value)
        except InvalidRequest as error:
            raise ValueError(str(error).removeprefix("shape: ")) from None
    return value


class AskRequest(BaseModel):
    """One question and its options. `paths` are library paths, at least one."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    question: Annotated[str, AfterValidator(_check_question)]
    paths: Annotated[
        tuple[Annotated[str, AfterValidator(_check_path)], ...], BeforeValidator(_check_paths), Field(strict=False)
    ] = ("/",)
    shape: Annotated[dict[str, Any] | None, AfterValidator(_check_shape)] = None
    ground: bool = False
    latency_budget_ms: Annotated[int, Field(ge=1, le=MAX_LATENCY_MS)] | None = None
    retrieval: Literal["vector", "hybrid"] = "hybrid"


def wants_json(data: bytes) -> bool:
    """Whether a request is JSON, and so its answer and its errors too: its first character is `{`."""
    return data.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{"


def parse(data: bytes, default_path: str) -> AskRequest:
    """The request in the bytes; `default_path` stands in for `paths`. Raises InvalidRequest, LimitExceeded."""
    if len(data) > MAX_REQUEST_BYTES:
        raise LimitExceeded(f"request: {len(data)} bytes; at most {MAX_REQUEST_BYTES}")
    try:
        text = data.removeprefix(b"\xef\xbb\xbf").decode()
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"request: not UTF-8 text (byte {error.start})") from None
    if not wants_json(data):
        return build({"question": text, "paths": [default_path]})
    fields = json_object(text)
    fields.setdefault("paths", [default_path])
    return build(fields)


def build(fields: dict[str, Any]) -> AskRequest:
    """The request of these fields. Raises InvalidRequest naming the first field that is wrong."""
    try:
        return AskRequest.model_validate(fields)
    except ValidationError as error:
        _refuse(error)


def _refuse(error: ValidationError) -> NoReturn:
    first = error.errors(include_url=False, include_input=False)[0]
    name = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"]).lstrip(".")
    if first["type"] == "extra_forbidden":
        known = ", ".join(AskRequest.model_fields)
        raise InvalidRequest(f"{_printable(name[:80])}: unknown field; the fields are {known}") from None
    reason = first["msg"].removeprefix("Value error, ").replace("valid tuple", "list")  # JSON has no tuples
    raise InvalidRequest(f"{_printable(name[:80])}: {_printable(reason)}") from None


def _printable(text: str) -> str:
    """One line that any encoder takes: a message may quote what was sent."""
    return re.sub(r"[\x00-\x1f\x7f\x85\u2028\u2029]", " ", text.encode("utf-8", "backslashreplace").decode())


def json_object(text: str, name: str = "request") -> dict[str, Any]:
    """The JSON object in the text: no duplicate keys, no NaN, at most MAX_DEPTH levels. Raises InvalidRequest."""
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise InvalidRequest(f"{name}: not JSON: {error.msg} (line {error.lineno}, column {error.colno})") from None
    except RecursionError:
        raise InvalidRequest(f"{name}: nested deeper than {MAX_DEPTH} levels") from None
    except ValueError as error:  # duplicate key, NaN, an integer of more digits than Python reads
        raise InvalidRequest(f"{name}: {_printable(str(error).split(';')[0])}") from None
    if not isinstance(value, dict):
        raise InvalidRequest(f"{name}: not a JSON object")
    if _deeper_than(value, MAX_DEPTH):
        raise InvalidRequest(f"{name}: nested deeper than {MAX_DEPTH} levels")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"{key[:80]!r} is given twice")
        found[key] = value
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _deeper_than(value: Any, limit: int) -> bool:
    level = [value]
    for _ in range(limit):
        level = [
            child
            for item in level
            if isinstance(item, dict | list)
            for child in (item.values() if isinstance(item, dict) else item)
        ]
        if not level:
            return False
    return True
