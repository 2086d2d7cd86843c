"""The front matter of an eval set: YAML between two `---` lines, read into options, each error with its line."""

from typing import Any, Final, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from libraryfs import frontmatter, paths
from libraryfs.errors import EvalSetError, InvalidPath

_OTHERS: Final = frozenset({"title", "id", "description", "metadata", "tags", "author", "date"})
"""Keys that belong to the document, not to the eval."""


class Options(BaseModel):
    """A set's own defaults; what the run asks for explicitly wins."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    llm_judge: bool | None = Field(None, description="Ask the model about fragments that substring did not find")
    retrieval: Literal["vector", "hybrid"] = Field("hybrid", description="How evidence is searched")
    repeats: int = Field(1, ge=1, le=50, description="How often each question is asked; the majority counts")
    latency_budget_ms: int | None = Field(None, ge=1, le=3_600_000, description="Deadline of each question, ms")
    draft: bool = Field(False, description="The set is a draft that nobody has edited yet: it is refused")
    paths: tuple[str, ...] = Field((), max_length=100, description="Paths of the questions that name none")

    @field_validator("paths", mode="before")
    @classmethod
    def _paths(cls, value: Any) -> Any:
        values = [value] if isinstance(value, str) else value
        if not isinstance(values, list) or not values or not all(isinstance(path, str) for path in values):
            raise ValueError("is a path or a list of paths")
        for path in values:
            try:
                paths.parse(path)
            except InvalidPath as error:
                raise ValueError(str(error)) from None
        return tuple(values)


def read_front_matter(text: str) -> tuple[Options, str]:
    """The options, and the text with the front matter's lines blank, so that line numbers stay.

    Raises EvalSetError with the line: not closed, not YAML, not a mapping, a key twice or unknown, a value refused.
    """
    if not frontmatter.is_open(text):
        return Options(), text
    block = frontmatter.find(text)
    if block is None:
        raise EvalSetError("line 1: front matter that is not closed; end it with a line '---'")
    values, lines = _mapping(block.text)
    blank = "\n" * text.count("\n", 0, block.end)
    if values.get("draft") is True:
        raise EvalSetError(f"line {lines['draft']}: this set is a draft: edit its questions, then remove this line")
    try:
        return Options.model_validate(values), blank + text[block.end :]
    except ValidationError as error:
        first = error.errors()[0]
        key = str(first["loc"][0])
        reason = first["msg"].removeprefix("Value error, ")
        if first["type"] == "extra_forbidden":
            reason = f"no such option; there are {', '.join(Options.model_fields)}"
        raise EvalSetError(f"line {lines.get(key, 1)}: {key}: {reason}") from None


def _mapping(source: str) -> tuple[dict[str, Any], dict[str, int]]:
    """The options' values, and each key's line in the whole text (the front matter starts in line 2)."""
    try:
        node, values = frontmatter.load(source)
    except frontmatter.NotYaml as error:
        raise EvalSetError(f"line {error.line}: {error.reason}") from None
    if node is None:
        return {}, {}
    if not isinstance(node, yaml.MappingNode) or not isinstance(values, dict):
        raise EvalSetError("line 2: the front matter is not a mapping; write options as 'name: value'")
    lines: dict[str, int] = {}
    for key, _ in node.value:
        name, line = str(key.value), key.start_mark.line + 2
        if name in lines:
            raise EvalSetError(f"line {line}: {name} is set in line {lines[name]} already")
        lines[name] = line
    return {str(key): value for key, value in values.items() if str(key) not in _OTHERS}, lines
