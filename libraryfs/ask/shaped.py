"""Passages → an answer in the asked JSON form: constrained, validated, checked; two attempts."""

import json
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from pydantic import JsonValue

from libraryfs.ask import extract, grounding, prompt, shape
from libraryfs.ask.passages import Passage
from libraryfs.ask.result import Citation, Claim
from libraryfs.models.cancel import Cancel
from libraryfs.models.protocols import LanguageModel

ATTEMPTS: Final = 2
MAX_TOKENS: Final = 1024
EXTRACTED_FROM: Final = 6
"""Of the passages, the first ones, from which values are taken."""


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
    quoted = _filled(best, schema, question, passages, cancel)
    quoted = quoted or _quoting(best, schema, question, passages, sentence, cancel)
    return (quoted or best)._replace(attempts=ATTEMPTS, left_out=best.left_out)


def _filled(
    made: Shaped, schema: dict[str, Any], question: str, passages: Sequence[Passage], cancel: Cancel
) -> Shaped | None:
    """The value with what the passages state, or null, for each property that they do not hold as the model has it."""
    if not isinstance(made.value, dict) or "properties" not in schema:
        return None
    said = shape.said(schema, made.value)
    wrong = {at.split("/")[1] for (at, _), claim in zip(said, made.claims, strict=True) if not claim.supported}
    stated, _ = extract.extract(schema, question, passages[:EXTRACTED_FROM])
    assert isinstance(stated, dict)
    value = {name: stated.get(name) if name in wrong else one for name, one in made.value.items()}
    if shape.errors(schema, value, cancel):
        return None
    checked = _checked(value, schema, question, passages)
    return checked._replace(quoted=True) if all(claim.supported for claim in checked.claims) else None


def extracted(question: str, passages: Sequence[Passage], schema: dict[str, Any], cancel: Cancel) -> Shaped | None:
    """The value as far as the passages state it, each part with its citation, null elsewhere; no model.

    None where they state nothing that is asked for, or the schema takes no null where they do not.
    """
    value, found = extract.extract(schema, question, passages[:EXTRACTED_FROM])
    stated = [one for one in found if one.passage is not None]
    if isinstance(value, dict) and shape.errors(schema, value, cancel):
        value = {name: one for name, one in value.items() if one is not None}
    if not stated or shape.errors(schema, value, cancel):
        return None
    claims, citations = [], []
    for one in stated:
        cited = grounding.citation(passages[one.passage or 0], one.first, one.last)
        said = one.value if isinstance(one.value, str) else json.dumps(one.value, ensure_ascii=False)
        claims.append(grounding.claim(said, cited))
        citations.append(cited)
    return Shaped(value, (), 0, tuple(claims), tuple(dict.fromkeys(citations)), quoted=True)


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
