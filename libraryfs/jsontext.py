"""The one way that a result becomes JSON text and back: names with raw bytes (lone surrogates) are \\udcXX escapes."""

import json
from typing import Any, TypeVar

from pydantic import BaseModel

Model = TypeVar("Model", bound=BaseModel)


def dumps(value: BaseModel | dict[str, Any] | list[Any], *, indent: int | None = 2) -> str:
    """JSON text in ASCII-safe form only where a name needs it; one trailing new line is the caller's."""
    plain = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
    text = json.dumps(plain, ensure_ascii=False, indent=indent)
    try:
        text.encode()
    except UnicodeEncodeError:
        text = json.dumps(plain, ensure_ascii=True, indent=indent)
    return text


def load(kind: type[Model], text: str) -> Model:
    """The model in what `dumps` gave; which pydantic's own JSON refuses. Raises ValueError."""
    return kind.model_validate(json.loads(text))
