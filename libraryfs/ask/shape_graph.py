"""What a JSON Schema's references lead to, and how large it is once they are followed. Each is looked up once.

A schema of 3 KB can stand for 2^40 steps: `$defs` a0 to a40, each `allOf` of two references to the next. So nothing is
evaluated before its size is known, and the size is counted over the graph, not over the tree that the graph unfolds to.
"""

from collections.abc import Callable, Iterator
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final

from referencing import Registry, Specification
from referencing.exceptions import Unresolvable

MAX_STEPS: Final = 5_000
"""Subschemas, those behind references counted as often as they are referred to."""
MAX_DEPTH: Final = 64
"""Subschemas in each other, references followed."""

REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
_IN_PLACE_LISTS: Final = ("allOf", "anyOf", "oneOf", "extends", "disallow", "type")
_IN_PLACE: Final = ("not", "if", "then", "else", "extends")
_IN_PLACE_MAPS: Final = ("dependentSchemas", "dependencies")
_BELOW: Final = (
    "items",
    "additionalItems",
    "unevaluatedItems",
    "contains",
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "contentSchema",
)
_BELOW_LISTS: Final = ("prefixItems", "items")
_BELOW_MAPS: Final = ("properties", "patternProperties")
_KEPT_MAPS: Final = ("$defs", "definitions")


class TooLarge(Exception):
    """Why a schema is refused, in words."""


class Graph:
    """The subschemas of a schema, and what each evaluates: on the same value (in place) or on a part of it."""

    def __init__(self, schema: dict[str, Any], specification: Specification[Any], check: Callable[[Any], None]) -> None:
        """Raises TooLarge. `check` is called with each target of a reference that is in no place for schemas."""
        self._specification = specification
        self._check = check
        self._looked_up: dict[tuple[str, str], tuple[Any, Any]] = {}
        self.nodes: dict[int, dict[str, Any]] = {}
        self._in_place: dict[int, list[tuple[int, str]]] = {}
        self._below: dict[int, list[int]] = {}
        self._sizes: dict[int, tuple[int, int]] = {}
        root = specification.create_resource(schema)
        resolver: Any = Registry().resolver_with_root(root)
        behind: list[tuple[Any, Any]] = []
        self._walk(schema, resolver, behind)
        while behind:
            target, its = behind.pop()
            if id(target) not in self.nodes:
                check(target)
                self._walk(target, its, behind)
        self._refuse_circles()
        self._size(id(schema), [])

    def _walk(self, schema: Any, resolver: Any, behind: list[tuple[Any, Any]]) -> None:
        """Notes the subschemas that stand in this one; targets of references go to `behind`."""
        pending = [(schema, resolver)]
        while pending:
            node, its = pending.pop()
            if not isinstance(node, dict) or id(node) in self.nodes:
                continue
            self.nodes[id(node)] = node
            if node is not schema:
                its = its.in_subresource(self._specification.create_resource(node))
            in_place, below = self._in_place.setdefault(id(node), []), self._below.setdefault(id(node), [])
            for child in _in_place(node):
                in_place.append((id(child), ""))
                pending.append((child, its))
            for child in _below(node):
                below.append(id(child))
                pending.append((child, its))
            pending += [(child, its) for child in _kept(node)]
            for reference in (node[key] for key in REFERENCES if isinstance(node.get(key), str)):
                target, resolved = self._target(reference, its)
                in_place.append((id(target), reference))
                behind.append((target, resolved))

    def _target(self, reference: str, resolver: Any) -> tuple[Any, Any]:
        key = (resolver._base_uri, reference)
        if key not in self._looked_up:
            try:
                found = resolver.lookup(reference)
            except (Unresolvable, ValueError, TypeError, KeyError, AttributeError):
                raise TooLarge(f"$ref {reference[:100]!r} is nowhere in the schema") from None
            if not isinstance(found.contents, dict | bool):
                raise TooLarge(f"$ref {reference[:100]!r} leads to something that is no schema")
            self._looked_up[key] = found.contents, found.resolver
        return self._looked_up[key]

    def _refuse_circles(self) -> None:
        try:
            TopologicalSorter({node: {other for other, _ in parts} for node, parts in self._in_place.items()}).prepare()
        except CycleError as error:
            circle = set(error.args[1])
            names = (name for node in error.args[1] for other, name in self._in_place[node] if other in circle)
            name = next(filter(None, names), "")
            raise TooLarge(f"$ref {name[:100]!r} goes round in a circle") from None

    def _size(self, node: int, path: list[int]) -> tuple[int, int]:
        """(subschemas, levels) of a node, everything behind its references counted; a circle is counted once."""
        if node not in self._in_place or node in path:
            return 1, 1
        if node not in self._sizes:
            _refuse_depth(len(path) + 1)
            others = [*(other for other, _ in self._in_place[node]), *self._below[node]]
            parts = [self._size(other, [*path, node]) for other in others]
            steps, levels = 1 + sum(part[0] for part in parts), 1 + max((part[1] for part in parts), default=0)
            if steps > MAX_STEPS:
                raise TooLarge(f"more than {MAX_STEPS:,} steps, references followed")
            self._sizes[node] = steps, levels
        _refuse_depth(len(path) + self._sizes[node][1])
        return self._sizes[node]


def _refuse_depth(levels: int) -> None:
    if levels > MAX_DEPTH:
        raise TooLarge(f"nested deeper than {MAX_DEPTH} levels, references followed")


def _in_place(node: dict[str, Any]) -> Iterator[Any]:
    """The subschemas that say something of the same value."""
    for key in _IN_PLACE_LISTS:
        yield from node[key] if isinstance(node.get(key), list) else ()
    for key in _IN_PLACE:
        if isinstance(node.get(key), dict):
            yield node[key]
    yield from _values(node, _IN_PLACE_MAPS)


def _below(node: dict[str, Any]) -> Iterator[Any]:
    """The subschemas that say something of a part of it."""
    for key in _BELOW:
        if isinstance(node.get(key), dict):
            yield node[key]
    for key in _BELOW_LISTS:
        yield from node[key] if isinstance(node.get(key), list) else ()
    yield from _values(node, _BELOW_MAPS)


def _kept(node: dict[str, Any]) -> Iterator[Any]:
    """The subschemas that are only there to be referred to."""
    yield from _values(node, _KEPT_MAPS)


def _values(node: dict[str, Any], keys: tuple[str, ...]) -> Iterator[Any]:
    for key in keys:
        if isinstance(node.get(key), dict):
            yield from node[key].values()
