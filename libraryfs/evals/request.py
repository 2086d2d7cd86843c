"""What to run: a ring's default eval set or one of its items, and how. One request for the mount and the command line.

run
{"workspace_item_id": "smoke-test", "llm_judge": false}
"""

from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from libraryfs.errors import InvalidRequest

RUN_WORDS = frozenset({"run", ""})


class EvalRequest(BaseModel):
    """Exactly one of `default` (`eval-set.md` at the root of the ring's workspace) and `workspace_item_id`.

    `default` is true when neither is named. What is None is the set's own choice.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    default: bool | None = None
    workspace_item_id: str | None = Field(None, min_length=1)
    llm_judge: bool | None = Field(None, description="ask the model about fragments that substring did not find")
    repeats: int | None = Field(None, ge=1, le=50, description="how often each question is asked")
    aa: bool = Field(False, description="run the set against itself: its own false-alarm rate; writes nothing")
    baseline: str | None = Field(
        None, pattern=r"^(this|[1-9][0-9]{0,17})$", description="run to pin: its number, or this"
    )
    cache: bool = Field(True, description="use answers of earlier runs where nothing that they rest on has changed")

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        named = self.workspace_item_id is not None
        if self.default if named else self.default is False:
            found = "both" if named else "neither"
            raise ValueError(f"exactly one of default and workspace_item_id names the eval set; {found} given")
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
