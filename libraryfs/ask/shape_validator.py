"""JSON Schema validation that ends: every step is counted, patterns run on a linear engine, nothing is fetched."""

import functools
import itertools
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, Final, cast

import attrs
import jsonschema
from jsonschema.exceptions import ValidationError
from jsonschema.protocols import Validator
from referencing import Registry

from libraryfs import patterns
from libraryfs.models.cancel import Cancel

MAX_STEPS: Final = 50_000
"""Keywords looked at in one validation of a value: about half a second."""
MAX_SCHEMA_STEPS: Final = 500_000
"""The same, of a schema: the rules for schemas look at some fifty keywords of each subschema."""
_LOOK: Final = 256
"""Steps between two looks at the clock."""

_Keyword = Callable[[Any, Any, Any, dict[str, Any]], Iterator[ValidationError] | None]


class TooManySteps(Exception):
    """The validation was given up."""


class _Steps:
    def __init__(self, most: int, cancel: Cancel) -> None:
        self._numbers = itertools.count(1)
        self._most = most
        self._cancel = cancel

    def take(self) -> None:
        number = next(self._numbers)
        if number > self._most:
            raise TooManySteps(f"more than {self._most:,} steps")
        if number % _LOOK == 0:
            self._cancel.check()


_steps: Final[ContextVar[_Steps]] = ContextVar("steps")


def errors(validator: Validator, value: Any, most: int, cancel: Cancel) -> Iterator[ValidationError]:
    """What is wrong with the value. Raises TooManySteps after `most`, RecursionError, and what `cancel` raises."""
    token = _steps.set(_Steps(most, cancel))
    try:
        yield from validator.iter_errors(value)
    finally:
        _steps.reset(token)


def dialect(schema: dict[str, Any]) -> type[Validator]:
    """The class of the schema's `$schema`; that of draft 2020-12 without one, or for one that is not known."""
    return jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)


def of_schema(schema: dict[str, Any]) -> Validator:
    """A validator for values. The schema must have been checked."""
    return _counted(dialect(schema))(schema, registry=Registry())  # an empty one: it fetches nothing


def of_schemas(kind: type[Validator]) -> Validator:
    """A validator for schemas of this dialect."""
    return _counted(kind)(kind.META_SCHEMA, format_checker=_FORMATS)


@functools.cache
def _counted(kind: type[Validator]) -> type[Validator]:
    replaced: dict[str, _Keyword] = {**kind.VALIDATORS, **{k: v for k, v in _OURS.items() if k in kind.VALIDATORS}}
    extend: Any = jsonschema.validators.extend
    counted = extend(kind, {key: _counting(check) for key, check in replaced.items()})
    fields = [(field.name, field.alias) for field in attrs.fields(counted) if field.init]

    def evolve(self: Any, **changes: Any) -> Any:
        """As the class's own, which gives the plain class, and so no counting, where a schema has `$schema`."""
        return counted(**{alias: getattr(self, name) for name, alias in fields} | changes)

    counted.evolve = evolve
    return cast(type[Validator], counted)


def _counting(check: _Keyword) -> _Keyword:
    def counted(validator: Any, value: Any, instance: Any, schema: dict[str, Any]) -> Any:
        _steps.get().take()
        return check(validator, value, instance, schema)

    return counted


def _pattern(validator: Any, pattern: str, instance: Any, _schema: dict[str, Any]) -> Iterator[ValidationError]:
    if validator.is_type(instance, "string") and not patterns.searcher(pattern)(instance):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _pattern_properties(
    validator: Any, value: dict[str, Any], instance: Any, _schema: dict[str, Any]
) -> Iterator[ValidationError]:
    if validator.is_type(instance, "object"):
        for pattern, subschema in value.items():
            found = patterns.searcher(pattern)
            for key in [key for key in instance if found(key)]:
                yield from validator.descend(instance[key], subschema, path=key, schema_path=pattern)


def _additional_properties(
    validator: Any, value: Any, instance: Any, schema: dict[str, Any]
) -> Iterator[ValidationError]:
    if not validator.is_type(instance, "object"):
        return
    named = schema.get("properties", {})
    searchers = [patterns.searcher(pattern) for pattern in schema.get("patternProperties", {})]
    extra = [key for key in instance if key not in named and not any(found(key) for found in searchers)]
    if isinstance(value, dict):
        for key in extra:
            yield from validator.descend(instance[key], value, path=key)
    elif not value and extra:
        yield ValidationError(f"additional properties are not allowed: {', '.join(map(repr, sorted(extra)))}")


def _unique_items(validator: Any, value: Any, instance: Any, _schema: dict[str, Any]) -> Iterator[ValidationError]:
    # The library's own compares each with each where they cannot be sorted.
    if value and validator.is_type(instance, "array") and len({_key(item) for item in instance}) < len(instance):
        yield ValidationError(f"{instance!r} has non-unique elements")


def _key(value: Any) -> Any:
    """Equal for what JSON Schema calls equal: 1 and 1.0 are, 1 and true are not."""
    if isinstance(value, dict):
        return "object", frozenset((key, _key(child)) for key, child in value.items())
    if isinstance(value, list):
        return "array", tuple(map(_key, value))
    return ("boolean", value) if isinstance(value, bool) else value


_OURS: Final[dict[str, _Keyword]] = {
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
    "uniqueItems": _unique_items,
}

_FORMATS: Final = jsonschema.FormatChecker(formats=())


@_FORMATS.checks("regex", raises=ValueError)
def _is_pattern(value: object) -> bool:
    if isinstance(value, str):
        patterns.searcher(value)
    return True
