"""`shape`: the JSON Schema that an answer must satisfy. Checked before use, never fetched from anywhere."""

import json
from collections.abc import Collection, Iterator
from functools import partial
from typing import Any, Final

from jsonschema.exceptions import ValidationError
from referencing.jsonschema import DRAFT202012, specification_with

from libraryfs import patterns
from libraryfs.ask import shape_validator
from libraryfs.ask.shape_graph import REFERENCES, Graph, TooLarge
from libraryfs.ask.shape_validator import TooManySteps
from libraryfs.errors import InvalidRequest
from libraryfs.models.cancel import Cancel

MAX_SCHEMA_CHARACTERS: Final = 16_000
MAX_ERRORS: Final = 5


def check_schema(schema: dict[str, Any], cancel: Cancel | None = None) -> None:
    """Raises InvalidRequest when it is not a JSON Schema that can be used as it stands, and what `cancel` raises."""
    if len(json.dumps(schema)) > MAX_SCHEMA_CHARACTERS:
        raise InvalidRequest(f"shape: a schema of more than {MAX_SCHEMA_CHARACTERS} characters")
    dialect = schema.get("$schema")
    if dialect is not None and not isinstance(dialect, str):
        raise InvalidRequest("shape: $schema must be text")
    try:
        _check(schema, cancel or Cancel())
    except (TooLarge, TooManySteps) as error:
        raise InvalidRequest(f"shape: {error}") from None
    except RecursionError:
        raise InvalidRequest("shape: nested too deeply") from None


def _check(schema: dict[str, Any], cancel: Cancel) -> None:
    kind = shape_validator.dialect(schema)
    check = partial(_refuse_faults, shape_validator.of_schemas(kind), cancel)
    check(schema)
    for reference in _references(schema):
        if not reference.startswith("#"):
            raise InvalidRequest(
                f"shape: $ref to {reference[:100]!r} is refused; only #/… inside the schema is followed"
            )
    specification = specification_with(kind.META_SCHEMA.get("$schema", ""), default=DRAFT202012)
    graph = Graph(schema, specification, check)
    for node in graph.nodes.values():
        _refuse_patterns(node)
    keywords = {key for node in graph.nodes.values() for key in node}
    if {"patternProperties", "unevaluatedProperties"} <= keywords:
        raise InvalidRequest("shape: unevaluatedProperties cannot be checked beside patternProperties")


def _refuse_faults(rules: Any, cancel: Cancel, schema: dict[str, Any]) -> None:
    for error in shape_validator.errors(rules, schema, shape_validator.MAX_SCHEMA_STEPS, cancel):
        where = "/".join(str(part) for part in error.absolute_path) or "the schema"
        why = f"{error.message[:200]}: {error.cause}" if isinstance(error.cause, ValueError) else error.message[:200]
        raise InvalidRequest(f"shape: not a JSON Schema: {where}: {why}")


def _refuse_patterns(node: dict[str, Any]) -> None:
    """The rules of older drafts do not look at all of them."""
    properties = node.get("patternProperties")
    for pattern in (node.get("pattern"), *(properties if isinstance(properties, dict) else ())):
        try:
            patterns.searcher(pattern) if isinstance(pattern, str) else None
        except ValueError as error:
            raise InvalidRequest(f"shape: the pattern {pattern[:100]!r} is refused: {error}") from None


def errors(schema: dict[str, Any], value: Any, cancel: Cancel | None = None) -> list[str]:
    """What keeps the value from satisfying the schema, in words, at most MAX_ERRORS; [] when it does.

    Raises what `cancel` raises.
    """
    validator = shape_validator.of_schema(schema)
    found = shape_validator.errors(validator, value, shape_validator.MAX_STEPS, cancel or Cancel())
    try:
        ordered = sorted(found, key=lambda error: list(map(str, error.absolute_path)))
    except RecursionError:
        return ["the answer: nested too deeply to be checked"]
    except TooManySteps as error:
        return [f"the answer: cannot be checked: {error}"]
    return [_words(error) for error in ordered[:MAX_ERRORS]]


def _words(error: ValidationError) -> str:
    return f"{'/'.join(map(str, error.absolute_path)) or 'the answer'}: {error.message[:200]}"


def said(schema: dict[str, Any], value: Any) -> list[tuple[str, str]]:
    """What a JSON value says, as (place in it, text): its texts and numbers, but those that the schema itself lists."""
    listed = {json.dumps(option) for option in _listed(schema)}
    return [(at, _text(leaf)) for at, leaf in _leaves(value, "") if json.dumps(leaf) not in listed]


def with_text(value: Any, places: Collection[str], text: str, at: str = "") -> Any:
    """The same JSON value with the texts at these places replaced by `text`."""
    if isinstance(value, dict):
        return {key: with_text(child, places, text, f"{at}/{key}") for key, child in value.items()}
    if isinstance(value, list):
        return [with_text(child, places, text, f"{at}/{index}") for index, child in enumerate(value)]
    return text if at in places and isinstance(value, str) else value


def _leaves(value: Any, at: str) -> Iterator[tuple[str, str | int | float]]:
    if isinstance(value, dict):
        for key, child in value.items():
            yield from _leaves(child, f"{at}/{key}")
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from _leaves(child, f"{at}/{index}")
    elif (isinstance(value, str) and value.strip()) or (isinstance(value, int | float) and not isinstance(value, bool)):
        yield at, value


def _text(leaf: str | int | float) -> str:
    return format(leaf, "g") if isinstance(leaf, float) else str(leaf)


def _listed(schema: Any) -> Iterator[Any]:
    """The values of every `enum` and `const` in a schema."""
    if isinstance(schema, dict):
        if isinstance(schema.get("enum"), list):
            yield from schema["enum"]
        if "const" in schema:
            yield schema["const"]
    for child in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from _listed(child)


def _references(value: Any) -> Iterator[str]:
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            yield from (item[key] for key in REFERENCES if isinstance(item.get(key), str))
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)
