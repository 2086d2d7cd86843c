"""Schemas as grammars: what would keep the worker busy for ever is refused, or left to the validation."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from libraryfs.errors import InvalidRequest
from libraryfs.models import defaults

pytestmark = pytest.mark.models


@pytest.fixture(scope="module")
def vocabulary() -> Iterator[Any]:
    import llama_cpp

    options = llama_cpp.llama_model_default_params()
    options.vocab_only = True
    model = llama_cpp.llama_model_load_from_file(str(defaults.LANGUAGE_MODEL.check()).encode(), options)
    yield llama_cpp.llama_model_get_vocab(model)
    llama_cpp.llama_model_free(model)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "maxLength": 1_000_000_000},
        {"type": "string", "maxLength": 2_000},
        {"type": "array", "items": {"type": "string"}, "maxItems": 1_000_000_000},
        {"type": "string", "pattern": "^(([A-Za-z -]+)+)+$"},
        {"properties": {"maxLength": {"type": "string", "maxLength": 10}}, "required": ["maxLength"]},
    ],
)
def test_taken(vocabulary: Any, schema: dict[str, Any]) -> None:
    from libraryfs.models.worker_sampling import _grammar

    assert _grammar(vocabulary, schema)


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "array", "items": {"type": "string"}, "minItems": 1_000_000_000}, "minItems is over 500"),
        ({"type": "string", "minLength": 501}, "minLength is over 500"),
        ({"type": "string", "pattern": "^}$"}, "it takes too long to make a grammar from it"),
        ({"type": "string", "pattern": "^]$"}, "it takes too long to make a grammar from it"),
    ],
)
def test_refused(vocabulary: Any, schema: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from libraryfs.models import worker_sampling

    monkeypatch.setattr(worker_sampling, "GRAMMAR_SECONDS", 0.3)
    with pytest.raises(InvalidRequest, match=f"cannot be held to it: {said}"):
        worker_sampling._grammar(vocabulary, schema)


def test_a_string_holds_nothing_that_json_does_not_allow() -> None:
    """No raw new line, and no quotation mark where a pattern has a dot; the converter's own rules allow both."""
    from llama_cpp import LlamaGrammar

    from libraryfs.models.worker_sampling import _as_json

    schema = {"properties": {"a": {"type": "string", "maxLength": 9}, "b": {"type": "string", "pattern": "^x.y$"}}}
    converted = LlamaGrammar.from_json_schema(json.dumps(schema), verbose=False)._grammar
    rules = dict(line.split(" ::= ", 1) for line in _as_json(converted).splitlines())
    assert rules["char"].startswith(r'[^"\\\x00-\x1F\x7F] | "\\" (')
    assert rules["dot"] == r'[^"\\\x00-\x1F\x7F]'
