"""JSON Schemas: which are taken, and what an answer is told."""

import socket
from typing import Any

import pytest

from libraryfs.ask import shape
from libraryfs.errors import InvalidRequest


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "object", "properties": {"a": {"type": "integer"}}},
        {"$schema": "http://json-schema.org/draft-07/schema#", "type": "array", "items": {"type": "string"}},
        {"$ref": "#/$defs/x", "$defs": {"x": {"type": "string"}}},
        {"type": "object", "properties": {"child": {"$ref": "#"}}},
        {"$id": "http://example.com/s", "type": "string"},
    ],
)
def test_taken(schema: dict[str, Any]) -> None:
    shape.check_schema(schema)


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "objekt"}, "shape: not a JSON Schema: type: "),
        ({"type": "object", "required": "day"}, "shape: not a JSON Schema: required: "),
        ({"properties": []}, "shape: not a JSON Schema: properties: "),
        ({"pattern": "("}, "shape: not a JSON Schema: pattern: "),
        ({"$schema": 3}, "shape: $schema must be text"),
        ({"$ref": "http://example.com/s.json"}, "shape: $ref to 'http://example.com/s.json' is refused"),
        ({"$ref": "https://json-schema.org/draft/2020-12/schema"}, "shape: $ref to "),
        ({"$ref": "file:///etc/passwd"}, "shape: $ref to "),
        ({"properties": {"a": {"items": {"$ref": "other.json#/x"}}}}, "shape: $ref to 'other.json#/x' is refused"),
        ({"$dynamicRef": "http://example.com/s"}, "shape: $ref to "),
        ({"$ref": "#/$defs/none"}, "shape: $ref '#/$defs/none' is nowhere in the schema"),
        ({"$ref": "#"}, "shape: $ref '#' goes round in a circle"),
        ({"properties": {"a": {"$ref": "#/properties/a"}}}, "shape: $ref '#/properties/a' goes round in a circle"),
        ({"enum": ["x" * 20_000]}, "shape: a schema of more than 16000 characters"),
    ],
)
def test_refused(schema: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        shape.check_schema(schema)
    assert str(caught.value).startswith(said)


def test_errors_in_words_and_not_too_many() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a", "b"]}
    assert shape.errors(schema, {"a": 1, "b": 2}) == []
    assert shape.errors(schema, {"a": "x"}) == [
        "the answer: 'b' is a required property",
        "a: 'x' is not of type 'integer'",
    ]
    many = {"type": "array", "items": {"type": "integer"}}
    assert len(shape.errors(many, ["x"] * 100)) == shape.MAX_ERRORS


def test_what_a_value_says() -> None:
    value = {"a": ["x", " ", None, True, 3, {"b": 2.5}], "c": "y", "d": "high"}
    schema = {"properties": {"d": {"enum": ["low", "high"]}}}
    assert shape.said(schema, value) == [("/a/0", "x"), ("/a/4", "3"), ("/a/5/b", "2.5"), ("/c", "y")]
    changed = shape.with_text(value, ["/a/0", "/a/4", "/c"], "z")
    assert changed == {"a": ["z", " ", None, True, 3, {"b": 2.5}], "c": "z", "d": "high"}
