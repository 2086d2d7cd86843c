"""Shapes filled from what blocks state."""

from typing import Any

import pytest

from libraryfs.ask.extract import extract
from tests.ask.asking import fill, run
from tests.ask.shelf import Shelf
from tests.ask.test_grounding import passages

TEXTS = (
    "Backups run at night. They are kept for 90 days in the vault in Graz. The policy dates from 2024-03-01.",
    "The mount is read-only and cannot be written. Its states are: starting, serving and stopped. Level: high.",
)


@pytest.mark.parametrize(
    ("question", "schema", "expected"),
    [
        ("How long are backups kept?", {"type": "integer"}, 90),
        ("How many days are backups kept?", {"type": "number"}, 90.0),
        ("From when is the policy?", {"type": "string", "format": "date"}, "2024-03-01"),
        ("Can the mount be written?", {"type": "boolean"}, False),
        ("Do backups run at night?", {"type": "boolean"}, True),
        ("Which level is it?", {"enum": ["low", "high"]}, "high"),
        ("Which states has it?", {"type": "array", "items": {"type": "string"}}, ["starting", "serving", "stopped"]),
        ("Where are backups kept?", {"type": "string"}, "They are kept for 90 days in the vault in Graz."),
        ("How tall is the tower?", {"type": ["integer", "null"]}, None),
        ("Who is the king?", {"type": "string"}, None),
    ],
)
def test_a_value_is_what_the_text_states_or_null(question: str, schema: dict[str, Any], expected: Any) -> None:
    value, found = extract(schema, question, passages(*TEXTS))
    assert value == expected
    assert all((one.passage is None) == (one.value is None) for one in found)


def test_without_a_model_a_shape_is_filled_and_cited(shelf: Shelf) -> None:
    team = fill(shelf)
    team.memory("/ring/dev", "freeze", "policy", "The release freeze lasts 3 days.", title="Release freeze")
    team.embed()
    shape = {
        "type": "object",
        "properties": {"days": {"type": "integer"}, "owner_address": {"type": ["string", "null"], "format": "email"}},
        "required": ["days", "owner_address"],
    }
    result = run(team, "How long does the release freeze last?", embedder=None, shape=shape, ground=True)
    assert (result.answer, result.grounding) == ({"days": 3, "owner_address": None}, "grounded")
    assert [cited.quote for cited in result.citations] == ["The release freeze lasts 3 days."]
    assert result.trace.answered_by == "quote"
