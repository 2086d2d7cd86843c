"""Models as JSON text and back. Paths may hold raw bytes (lone surrogates), which pydantic's own JSON refuses."""

import json
from typing import TypeVar

from pydantic import BaseModel

Model = TypeVar("Model", bound=BaseModel)


def dump(model: BaseModel) -> str:
    """ASCII JSON."""
    return json.dumps(model.model_dump(mode="json"))


def load(kind: type[Model], text: str) -> Model:
    """The model in what `dump` gave. Raises ValidationError, ValueError."""
    return kind.model_validate(json.loads(text))
