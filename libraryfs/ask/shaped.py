"""Passages → an answer in the asked JSON form: constrained, validated, checked; two attempts."""

import json
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from pydantic import JsonValue

from libraryfs.ask import grounding, prompt, shape
from libraryfs.ask.passages import Passage
from libraryfs.ask.result import Citation, Claim
from libraryfs.ask.selection import Ranking
from libraryfs.models.cancel import Cancel
from libraryfs.models.protocols import LanguageModel

ATTEMPTS: Final = 2
MAX_TOKENS: Final = 1024


class Shaped(NamedTuple):
    """The value, or what was wrong with the last attempt."""

    value: JsonValue
    errors: tuple[str, ...]
    attempts: int
    claims: tuple[Claim, ...] = ()
    citations: tuple[Citation, ...] = ()
    left_out: int = 0


def answer(
    model: LanguageModel,
    question: str,
    passages: Sequence[Passage],
    ranking: Ranking,
    schema: dict[str, Any],
    cancel: Cancel,
) -> Shaped:
    """A value that satisfies the schema, with its texts and numbers checked against the evidence. Raises ModelError.

    What the evidence does not hold costs the first attempt; after the second it is given, marked as not supported.
    """
    errors: list[str] = []
    best: Shaped | None = None
    for attempt in range(1, ATTEMPTS + 1):
        shown = prompt.shaped(question, passages, ranking, model.context, schema, errors)
        reply = model.generate(shown.messages, max_tokens=MAX_TOKENS, cancel=cancel, schema=schema)
        value, errors = _validated(reply.text, schema)
        if errors:
            continue
        claims, citations = _checked(value, question, passages)
        made = Shaped(value, (), attempt, claims, citations, shown.left_out)
        errors = [f"{claim.text!r} is not in the evidence" for claim in claims if not claim.supported]
        if not errors:
            return made
        best = made if best is None or _held(made) >= _held(best) else best
    if best is not None:
        return best._replace(attempts=ATTEMPTS)
    return Shaped(None, tuple(errors), ATTEMPTS)


def _validated(text: str, schema: dict[str, Any]) -> tuple[JsonValue, list[str]]:
    try:
        value: JsonValue = json.loads(text)
    except (ValueError, RecursionError) as error:
        return None, [f"not JSON: {str(error)[:200]}"]
    return value, shape.errors(schema, value)


def _checked(
    value: JsonValue, question: str, passages: Sequence[Passage]
) -> tuple[tuple[Claim, ...], tuple[Citation, ...]]:
    claims, citations = [], []
    for _, text in shape.strings(value):
        held = grounding.holds(text, passages)
        found = grounding.citation(passages[held.passage], held.first, held.last) if held else None
        claims.append(grounding.claim(text, found))
        citations += [found] if found else []
    return tuple(claims), tuple(dict.fromkeys(citations))


def _held(made: Shaped) -> int:
    return sum(claim.supported for claim in made.claims)
