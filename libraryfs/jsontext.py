"""The one way that a result becomes JSON text: names with raw bytes (lone surrogates) come out as \\udcXX escapes."""

import json
from typing import Any

from pydantic import BaseModel


def dumps(value: BaseModel | dict[str, Any] | list[Any], *, indent: int | None = 2) -> str:
    """JSON text in ASCII-safe form only where a name needs it; one trailing new line is the caller's."""
    plain = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
    text = json.dumps(plain, ensure_ascii=False, indent=indent)
    try:
        text.encode()
    except UnicodeEncodeError:
        text = json.dumps(plain, ensure_ascii=True, indent=indent)
    return text
