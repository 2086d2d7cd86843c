"""What to run: a ring's default eval set or one of its items, and how. One request for the mount and the command line.

run
{"workspace_item_id": "smoke.md", "llm_judge": false}
"""

import re
from typing import Any, Final, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from libraryfs.errors import InvalidRequest

RUN_WORDS = frozenset({"run", ""})
_MOST_DIGITS: Final = 18  # SQLite's numbers have that many
_PIN: Final = re.compile(rf"this|[1-9][0-9]{{0,{_MOST_DIGITS - 1}}}")


class EvalRequest(BaseModel):
    """Exactly one of `default` (`eval-set.md` at the root of the ring's workspace) and `workspace_item_id`.

    `default` is true when neither is named. What is None is the set's own choice.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    default: bool | None = None
    workspace_item_id: str | None = Field(
        None, min_length=1, description="the item's id, its library path, or its path below the ring's workspace"
    )
    llm_judge: bool | None = Field(None, description="ask the model about fragments that substring did not find")
    repeats: int | None = Field(None, ge=1, le=50, description="how often each question is asked")
    aa: bool = Field(False, description="run the set against itself: its own false-alarm rate; writes nothing")
    baseline: str | None = Field(None, description="run to pin: its number, or this")
    cache: bool = Field(True, description="use answers of earlier runs where nothing that they rest on has changed")

    @field_validator("baseline", mode="before")
    @classmethod
    def _run_or_this(cls, value: Any) -> Any:
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 10**_MOST_DIGITS:
            return str(value)
        if value is not None and not (isinstance(value, str) and _PIN.fullmatch(value)):
            given = f"{value[:40]!r} is neither" if isinstance(value, str) else "neither is given"
            raise ValueError(f"wants the number of a run, or 'this'; {given}")
        return value

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        named = self.workspace_item_id is not None
        if self.default if named else self.default is False:
            found = "both" if named else "neither"
            raise ValueError(f"exactly one of default and workspace_item_id names the eval set; {found} given")
        if self.aa and self.baseline is not None:
            raise ValueError("aa stores no run, so there is none to pin: leave out aa or baseline")
        return self


def build(fields: dict[str, Any]) -> EvalRequest:
    """The request of these fields. Raises InvalidRequest naming the field."""
    try:
        return EvalRequest.model_validate(fields)
    except ValidationError as error:
        raise _refusal(error) from None


def parse(data: bytes) -> EvalRequest:
    """The request in what was written to `.eval`: `run`, or a JSON object. Raises InvalidRequest."""
    text = data.removeprefix(b"\xef\xbb\xbf").strip()
    if text[:1] != b"{":
        if text.decode("utf-8", "replace").casefold() in RUN_WORDS:
            return EvalRequest()
        raise InvalidRequest("request: write 'run', or a JSON object such as {\"llm_judge\": false}")
    try:
        return EvalRequest.model_validate_json(text)
    except ValidationError as error:
        raise _refusal(error) from None


def _refusal(error: ValidationError) -> InvalidRequest:
    first = error.errors(include_url=False, include_input=False)[0]
    name = ".".join(str(part) for part in first["loc"]) or "request"
    reason = first["msg"].removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        reason = f"no such field; there are {', '.join(EvalRequest.model_fields)}"
    text = f"{name[:80]}: {reason}".encode("utf-8", "backslashreplace").decode()
    return InvalidRequest(" ".join(text.split()))
