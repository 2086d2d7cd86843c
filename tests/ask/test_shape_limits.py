"""Schemas that were made to take for ever: refused with the reason, or checked within a counted number of steps."""

import time
from typing import Any

import pytest
from referencing._core import Resolver

from libraryfs.ask import shape, shape_validator
from libraryfs.errors import Cancelled, DeadlineExceeded, InvalidRequest
from libraryfs.models.cancel import Cancel

DRAFT_4 = "http://json-schema.org/draft-04/schema#"


def doubling(levels: int, keyword: str = "allOf") -> dict[str, Any]:
    """2^levels steps in `levels` lines."""
    rules: dict[str, Any] = {
        f"a{level}": {keyword: [{"$ref": f"#/$defs/a{level + 1}"} for _ in range(2)]} for level in range(levels)
    }
    return {"$ref": "#/$defs/a0", "$defs": {**rules, f"a{levels}": {"type": "string"}}}


def chain(links: int) -> dict[str, Any]:
    rules: dict[str, Any] = {f"a{n}": {"$ref": f"#/$defs/a{n + 1}"} for n in range(links)}
    return {"$ref": "#/$defs/a0", "$defs": {**rules, f"a{links}": {}}}


def branching(levels: int) -> dict[str, Any]:
    """The same through properties: no steps for a value without them, and 2^levels rules of a grammar."""
    rules: dict[str, Any] = {
        f"a{n}": {"properties": {name: {"$ref": f"#/$defs/a{n + 1}"} for name in "xy"}} for n in range(levels)
    }
    return {"$ref": "#/$defs/a0", "$defs": {**rules, f"a{levels}": {}}}


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        (doubling(40), "shape: nested deeper than 64 levels"),
        (doubling(25), "shape: more than 5,000 steps"),
        (doubling(25, "anyOf"), "shape: more than 5,000 steps"),
        (doubling(25, "oneOf"), "shape: more than 5,000 steps"),
        (branching(25), "shape: more than 5,000 steps"),
        (chain(300), "shape: nested deeper than 64 levels"),
        ({"properties": {"a": {"pattern": "(?=a)b"}}}, "shape: not a JSON Schema: properties/a/pattern: '(?=a)b' is "),
        ({"$schema": DRAFT_4, "patternProperties": {r"(a)\1": {}}}, r"shape: the pattern '(a)\\1' is refused: "),
        (
            {"unevaluatedProperties": False, "patternProperties": {"a": {}}},
            "shape: unevaluatedProperties cannot be checked beside patternProperties",
        ),
        ({"$ref": "#/x", "x": {"required": 5}}, "shape: not a JSON Schema: required: 5 is not of type 'array'"),
        ({"$ref": "#/x", "x": {"pattern": "("}}, "shape: not a JSON Schema: pattern: "),
        ({"$ref": "#/x", "x": 5}, "shape: $ref '#/x' leads to something that is no schema"),
        ({"$ref": "#/enum/x", "enum": [1]}, "shape: $ref '#/enum/x' is nowhere in the schema"),
        ({"$defs": {"a": {"not": {"$ref": "#/$defs/a"}}}}, "shape: $ref '#/$defs/a' goes round in a circle"),
    ],
)
def test_refused(schema: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        shape.check_schema(schema)
    assert str(caught.value).startswith(said)


def test_each_reference_is_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rules for schemas are looked up too, once each by their own name; those are not counted here."""
    looked_up: list[str] = []
    lookup = Resolver.lookup

    def counted(self: Any, ref: str) -> Any:
        looked_up.append(ref)
        return lookup(self, ref)

    monkeypatch.setattr(Resolver, "lookup", counted)
    shape.check_schema(doubling(8))
    ours = [ref for ref in looked_up if ref.startswith("#/$defs/a") and ref != "#/$defs/anchorString"]
    assert sorted(ours) == sorted(set(ours))
    assert len(ours) == 9


def test_a_schema_that_refers_to_itself_is_checked_in_counted_steps() -> None:
    """Doubling at each level of the value, which the schema's own size does not show."""
    schema = {"type": "object", "properties": {"c": {"items": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}}}}
    shape.check_schema(schema)
    value: Any = {}
    for _ in range(4):
        value = {"c": [value]}
    assert shape.errors(schema, value) == []
    for _ in range(30):
        value = {"c": [value]}
    assert shape.errors(schema, value) == ["the answer: cannot be checked: more than 50,000 steps"]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "pattern": "^(([A-Za-z -]+)+)+$"},
        {"patternProperties": {"^(a+)+$": {"type": "integer"}}, "additionalProperties": False},
        {"propertyNames": {"pattern": "^(a+)+$"}},
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "additionalProperties": {"$ref": "#"},
            "pattern": "^(a+)+$",
        },
    ],
)
def test_patterns_that_backtrack_take_no_time(schema: dict[str, Any]) -> None:
    """It ends at all: Python's own engine would be at it for longer than there are tests."""
    shape.check_schema(schema)
    text = "a" * 2000 + "!"
    assert shape.errors(schema, text if "pattern" in schema else {text: 1})
    assert shape.errors(schema, {text: text})


def test_patterns_of_properties_still_hold() -> None:
    schema = {"properties": {"n": {}}, "patternProperties": {"^x-": {"type": "integer"}}, "additionalProperties": False}
    shape.check_schema(schema)
    assert shape.errors(schema, {"n": 1, "x-a": 2}) == []
    assert shape.errors(schema, {"x-a": "b"}) == ["x-a: 'b' is not of type 'integer'"]
    assert shape.errors(schema, {"y": 1}) == ["the answer: additional properties are not allowed: 'y'"]
    other = {"properties": {"n": {}}, "additionalProperties": {"type": "integer"}}
    assert shape.errors(other, {"n": "a", "m": "b"}) == ["m: 'b' is not of type 'integer'"]


@pytest.mark.parametrize(
    ("value", "unique"),
    [
        ([1, "1"], True),
        ([1, True], True),
        ([0, False, [0], [False]], True),
        ([1, 1.0], False),
        ([{"a": [1]}] * 2, False),
    ],
)
def test_unique_items(value: list[Any], unique: bool) -> None:
    assert (shape.errors({"uniqueItems": True}, value) == []) is unique


def test_a_dialect_deep_inside_does_not_bring_the_plain_rules_back() -> None:
    schema = {"$ref": "#/$defs/a", "$defs": {"a": {"$schema": DRAFT_4, "pattern": "^(a+)+$"}}}
    shape.check_schema(schema)
    assert shape.errors(schema, "a" * 2000 + "!")


def test_the_deadline_and_the_asker_count_from_the_start() -> None:
    """Also while a schema is looked at."""
    wide = {"properties": {f"p{n}": {"type": "string"} for n in range(400)}}
    with pytest.raises(DeadlineExceeded):
        shape.check_schema(wide, Cancel(time.monotonic()))
    left = Cancel()
    left.cancel()
    with pytest.raises(Cancelled):
        shape.check_schema(wide, left)
    assert shape_validator.MAX_SCHEMA_STEPS > 400 * 10
