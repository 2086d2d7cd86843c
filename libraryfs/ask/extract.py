"""Blocks → the values that a JSON Schema asks for, taken from what they state; null where they state none. No model.

A number, a date, a yes or no, one of listed values, a short text or a list of texts is looked for near the question's
and the property's words. What is given stands in the block word for word; yes and no come from whether the sentence
that covers the question negates.
"""

import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from pydantic import JsonValue

from libraryfs.ask import terms as lexicon
from libraryfs.ask.fit import fit
from libraryfs.ask.passages import Passage
from libraryfs.ask.sentences import words

MAX_PROPERTIES: Final = 30
COVERED: Final = 0.5
"""Of the terms looked for that the blocks have at all, by a sentence that yes or no is taken from."""
TEXT_WORDS: Final = 30

_NUMBER: Final = re.compile(r"(?<![\w.])[-+]?\d[\d,]*(?:\.\d+)?(?![\w])")
_FORMATS: Final = {
    "date": re.compile(r"\b\d{4}-\d{2}-\d{2}\b"),
    "date-time": re.compile(r"\b\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}\S*"),
    "time": re.compile(r"\b\d{1,2}:\d{2}(?::\d{2})?\b"),
    "email": re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"),
    "uri": re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s<>\"'`)\]]+"),
    "ipv4": re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}\b"),
}
"""What a format looks like in a text; of other formats nothing is taken."""
_MARK: Final = re.compile(r"^\s*(?:[-*+•]|\d{1,3}[.)])\s+")


class Value(NamedTuple):
    """A value, and the passage and sentences (first, last) that state it; no passage: nothing states it."""

    value: JsonValue
    passage: int | None = None
    first: int = 0
    last: int = 0


def extract(schema: dict[str, Any], question: str, passages: Sequence[Passage]) -> tuple[JsonValue, list[Value]]:
    """The value for the schema, with nulls where nothing is stated, and what was found with its place."""
    found: list[Value] = []
    if "properties" in schema:
        made: dict[str, JsonValue] = {}
        for name, wanted in list(schema["properties"].items())[:MAX_PROPERTIES]:
            one = _leaf(wanted, question, f"{_spaced(name)} {_description(wanted)}", passages)
            made[name] = one.value
            found.append(one)
        return made, found
    one = _leaf(schema, question, _description(schema), passages)
    return one.value, [one]


def _spaced(name: str) -> str:
    """`maxRetries` and `max_retries` as words."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|[_-]+", " ", name)


def _description(schema: Any) -> str:
    return str(schema.get("description", "")) if isinstance(schema, dict) else ""


def _leaf(schema: Any, question: str, named: str, passages: Sequence[Passage]) -> Value:
    if not isinstance(schema, dict):
        return Value(None)
    wanted = f"{question} {named}"
    kinds = schema.get("type", "string")
    kind = next((one for one in kinds if one != "null"), "null") if isinstance(kinds, list) else kinds
    weights = lexicon.weights(lexicon.terms(wanted), [held for one in passages for held in one.terms])
    there = set().union(*(held for one in passages for held in one.terms), *(one.title_terms for one in passages))
    asked = set(lexicon.terms(question))  # weighs twice as much as the property's name
    weights = {term: weight * (1 + (term in asked)) for term, weight in weights.items() if term in there}
    places = sorted(_places(weights, passages), key=lambda place: -place[0])
    if isinstance(schema.get("enum"), list):
        return _listed(schema["enum"], places, passages)
    if kind == "boolean":
        return _yes_or_no(wanted, places, passages)
    if kind == "array":
        return _list(schema, places, passages)
    for covered, number, at in places:
        value = _value(schema, kind, passages[number].sentences[at].text, wanted, weights) if covered else None
        if value is not None:
            return Value(value, number, at, at + 1)
    return Value(None)


def _places(weights: dict[str, float], passages: Sequence[Passage]) -> list[tuple[float, int, int]]:
    """(score, passage, sentence): coverage by its own words, then with headings and the one before."""
    found = []
    for number, passage in enumerate(passages):
        above = passage.title_terms
        for at, held in enumerate(passage.terms):
            own = lexicon.coverage(weights, held)
            near = lexicon.coverage(weights, held.union(above, *passage.terms[max(0, at - 1) : at]))
            found.append((own + 0.5 * near - 0.1 * number, number, at))
    return [place for place in found if place[0] > 0]


def _value(schema: dict[str, Any], kind: str, text: str, wanted: str, weights: dict[str, float]) -> JsonValue:
    if kind in ("integer", "number"):
        asked = lexicon.numbers(wanted)
        every = [one for one in _NUMBER.findall(text) if lexicon.numbers(one) and not lexicon.numbers(one) <= asked]
        plain = [float(one.replace(",", "")) for one in every if re.fullmatch(r"[-+]?[\d,]*\d(?:\.\d+)?", one)]
        whole = [int(one) for one in plain if one == int(one)]
        return next(iter(whole if kind == "integer" else plain), None)
    if kind == "string":
        if isinstance(schema.get("format"), str):
            pattern = _FORMATS.get(schema["format"])
            stated = pattern.search(text) if pattern else None
            return stated[0] if stated else None
        if schema.get("pattern"):
            return _matching(schema, text)
        short = " ".join(fit(text, weights, TEXT_WORDS).split())
        return short if len(short) <= schema.get("maxLength", len(short)) else None
    return None


def _matching(schema: dict[str, Any], text: str) -> str | None:
    """A word of the text that the schema's pattern takes."""
    from libraryfs.ask import shape
    from libraryfs.models.cancel import Cancel

    for word in text.split():
        plain = word.strip("\"'`“”‘’()<>[],;.")
        if plain and not shape.errors(schema, plain, Cancel()):
            return plain
    return None


def _listed(
    options: Sequence[JsonValue], places: Sequence[tuple[float, int, int]], passages: Sequence[Passage]
) -> Value:
    for _, number, at in places:
        text = passages[number].sentences[at].text.casefold()
        for option in options:
            if isinstance(option, str) and re.search(rf"(?<!\w){re.escape(option.casefold())}(?!\w)", text):
                return Value(option, number, at, at + 1)
    return Value(None)


def _yes_or_no(wanted: str, places: Sequence[tuple[float, int, int]], passages: Sequence[Passage]) -> Value:
    for covered, number, at in places[:1]:
        if covered >= COVERED:
            says = lexicon.negated(passages[number].sentences[at].text)
            return Value(says == lexicon.negated(wanted), number, at, at + 1)
    return Value(None)


def _list(schema: dict[str, Any], places: Sequence[tuple[float, int, int]], passages: Sequence[Passage]) -> Value:
    """The items of the nearest list, or of an enumeration after a colon."""
    items = schema.get("items")
    if isinstance(items, dict) and items.get("type", "string") != "string":
        return Value(None)
    for _, number, at in places:
        passage = passages[number]
        block = passage.block
        if block.kind == "list":
            lines = passage.text[block.start : block.end].splitlines()
            texts = [" ".join(_MARK.sub("", line).split()) for line in lines if _MARK.match(line)]
            if texts and passage.sentences:
                return Value([*texts], number, 0, len(passage.sentences))
        text = passage.sentences[at].text
        head, colon, rest = text.partition(": ")
        parts = [one.strip(" .`*\n") for one in re.split(r",\s+(?:and\s+)?|;\s+|\s+and\s+", rest)] if colon else []
        if head and len(parts) > 1 and all(0 < words(one) <= 6 for one in parts):
            return Value([*(" ".join(one.split()) for one in parts)], number, at, at + 1)
    return Value(None)
