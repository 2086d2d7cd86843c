"""Passages → an answer in the asked JSON form: constrained, validated, checked; two attempts."""

import json
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from pydantic import JsonValue

from libraryfs.ask import grounding, prompt, shape
from libraryfs.ask.passages import Passage
from libraryfs.ask.result import Citation, Claim
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
    quoted: bool = False
    """Whether a sentence stands where the model's words did not hold."""


def answer(
    model: LanguageModel,
    question: str,
    passages: Sequence[Passage],
    sentence: str | None,
    schema: dict[str, Any],
    cancel: Cancel,
) -> Shaped:
    """A value that satisfies the schema, with what it says checked against the evidence. Raises ModelError.

    What the evidence does not hold costs the first attempt. After the second, a text that it does not hold gives way
    to the best sentence, quoted, if the schema takes that; what remains is given, marked as not supported.
    """
    errors: list[str] = []
    best: Shaped | None = None
    for attempt in range(1, ATTEMPTS + 1):
        shown = prompt.shaped(question, passages, model.context - MAX_TOKENS, schema, errors)
        reply = model.generate(shown.messages, max_tokens=MAX_TOKENS, cancel=cancel, schema=schema)
        value, errors = _validated(reply.text, schema, cancel)
        if errors:
            continue
        made = _checked(value, schema, question, passages)._replace(attempts=attempt, left_out=shown.left_out)
        errors = [f"{claim.text!r} is not in the evidence" for claim in made.claims if not claim.supported]
        if not errors:
            return made
        best = made if best is None or _held(made) >= _held(best) else best
    if best is None:
        return Shaped(None, tuple(errors), ATTEMPTS)
    quoted = _quoting(best, schema, question, passages, sentence, cancel)
    return (quoted or best)._replace(attempts=ATTEMPTS, left_out=best.left_out)


def _quoting(
    made: Shaped,
    schema: dict[str, Any],
    question: str,
    passages: Sequence[Passage],
    sentence: str | None,
    cancel: Cancel,
) -> Shaped | None:
    """The value with the best sentence for each text that the evidence does not hold; None if the schema refuses it."""
    if sentence is None:
        return None
    said = shape.said(schema, made.value)
    wrong = [at for (at, _), claim in zip(said, made.claims, strict=True) if not claim.supported]
    value = shape.with_text(made.value, wrong, sentence)
    if value == made.value or shape.errors(schema, value, cancel):
        return None
    return _checked(value, schema, question, passages)._replace(quoted=True)


def _validated(text: str, schema: dict[str, Any], cancel: Cancel) -> tuple[JsonValue, list[str]]:
    try:
        value: JsonValue = json.loads(text)
    except (ValueError, RecursionError) as error:
        return None, [f"not JSON: {str(error)[:200]}"]
    return value, shape.errors(schema, value, cancel)


def _checked(value: JsonValue, schema: dict[str, Any], question: str, passages: Sequence[Passage]) -> Shaped:
    claims, citations = [], []
    for _, text in shape.said(schema, value):
        held = grounding.holds(text, question, passages) or grounding.support(text, question, passages)
        found = grounding.citation(passages[held.passage], held.first, held.last) if held else None
        claims.append(grounding.claim(text, found))
        citations += [found] if found else []
    return Shaped(value, (), 0, tuple(claims), tuple(dict.fromkeys(citations)))


def _held(made: Shaped) -> int:
    return sum(claim.supported for claim in made.claims)
