"""`shape`: the JSON Schema that an answer must satisfy. Checked before use, never fetched from anywhere."""

import json
from collections.abc import Collection, Iterator
from typing import Any, Final

import jsonschema
from jsonschema.exceptions import SchemaError, ValidationError
from jsonschema.protocols import Validator
from referencing import Registry
from referencing.exceptions import Unresolvable

from libraryfs.errors import InvalidRequest

MAX_SCHEMA_CHARACTERS: Final = 16_000
MAX_ERRORS: Final = 5
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")


def check_schema(schema: dict[str, Any]) -> None:
    """Raises InvalidRequest when it is not a JSON Schema that can be used as it stands."""
    if len(json.dumps(schema)) > MAX_SCHEMA_CHARACTERS:
        raise InvalidRequest(f"shape: a schema of more than {MAX_SCHEMA_CHARACTERS} characters")
    dialect = schema.get("$schema")
    if dialect is not None and not isinstance(dialect, str):
        raise InvalidRequest("shape: $schema must be text")
    try:
        _class(schema).check_schema(schema)
    except SchemaError as error:
        where = "/".join(str(part) for part in error.absolute_path) or "the schema"
        raise InvalidRequest(f"shape: not a JSON Schema: {where}: {error.message[:200]}") from None
    except RecursionError:
        raise InvalidRequest("shape: nested too deeply") from None
    for reference in _references(schema):
        if not reference.startswith("#"):
            raise InvalidRequest(
                f"shape: $ref to {reference[:100]!r} is refused; only #/… inside the schema is followed"
            )
    _resolve_all(schema)


def errors(schema: dict[str, Any], value: Any) -> list[str]:
    """What keeps the value from satisfying the schema, in words, at most MAX_ERRORS; [] when it does."""
    try:
        found = sorted(_validator(schema).iter_errors(value), key=lambda error: list(map(str, error.absolute_path)))
    except RecursionError:
        return ["the answer: nested too deeply to be checked"]
    return [_words(error) for error in found[:MAX_ERRORS]]


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


def _class(schema: dict[str, Any]) -> type[Validator]:
    return jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)


def _validator(schema: dict[str, Any]) -> Validator:
    return _class(schema)(schema, registry=Registry())  # an empty one: it fetches nothing


def _references(value: Any) -> Iterator[str]:
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            yield from (item[key] for key in _REFERENCES if isinstance(item.get(key), str))
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)


def _resolve_all(schema: dict[str, Any]) -> None:
    """Raises InvalidRequest for a reference inside the schema that leads nowhere, or round in a circle."""
    for reference in _references(schema):
        probe = {**schema, "$ref": reference} if reference != "#" else schema
        try:
            for _ in _validator(probe).iter_errors(None):
                break
        except Unresolvable:
            raise InvalidRequest(f"shape: $ref {reference[:100]!r} is nowhere in the schema") from None
        except RecursionError:
            raise InvalidRequest(f"shape: $ref {reference[:100]!r} goes round in a circle") from None
