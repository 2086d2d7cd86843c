"""Edges between memories as one principal sees them: neighbours of a hit, and the current one of what is superseded."""

from collections.abc import Iterator
from typing import NamedTuple

from libraryfs.library.resolver import Library
from libraryfs.store import edges, memory
from libraryfs.store.memory import Memory

MAX_CHAIN = 1000
"""Memories that are looked at to find the current one of a chain."""


class Node(NamedTuple):
    """A memory that the principal may see."""

    ino: int
    namespace_id: int
    id: str


class Graph:
    """Walks edges. What is hidden or not there ends every walk, as if the edge were not there."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._db = library.snapshot.db
        self._current: dict[int, Node | None] = {}

    def node(self, ino: int) -> Node | None:
        """The node of an inode number; None when it is no memory."""
        found = memory.get(self._db, ino)
        return None if found is None else self._seen(found)

    def neighbours(self, node: Node) -> list[Node]:
        """One hop along `supersedes` and `derives_from`, both directions: newer ones first, each once."""
        found = [*self._newer(node), *self._walk(node)]
        if (current := self.current(node)) is not None:
            found.insert(0, current)
        return list(dict.fromkeys(one for one in found if one.ino != node.ino))

    def current(self, node: Node) -> Node | None:
        """The memory that replaces `node` in the end, over any number of steps; None when nothing does.

        Of several, the one that was updated last. Memories that supersede each other in a circle replace nothing.
        """
        if node.ino not in self._current:
            self._current[node.ino] = self._find_current(node)
        return self._current[node.ino]

    def _find_current(self, node: Node) -> Node | None:
        known, todo, ends = {node.ino}, [node], list[Node]()
        while todo and len(known) < MAX_CHAIN:
            one = todo.pop()
            newer = list(self._newer(one))
            if not newer and one.ino != node.ino:
                ends.append(one)
            for next_one in newer:
                if next_one.ino not in known:
                    known.add(next_one.ino)
                    todo.append(next_one)
        return max(ends, key=self._age, default=None)

    def _age(self, node: Node) -> tuple[int, str]:
        found = memory.get(self._db, node.ino)
        return (0 if found is None else found.updated_ns, node.id)

    def _newer(self, node: Node) -> Iterator[Node]:
        for edge in edges.pointing(self._db, node.namespace_id, node.id):
            if edge.kind == "supersedes":
                yield from self._find(edge.source_ns, edge.source_id)

    def _walk(self, node: Node) -> Iterator[Node]:
        for edge in edges.declared(self._db, node.namespace_id, node.id):
            if edge.kind in edges.WALKED:
                yield from self._find(edge.target_ns, edge.target_id)
        for edge in edges.pointing(self._db, node.namespace_id, node.id):
            if edge.kind in edges.WALKED:
                yield from self._find(edge.source_ns, edge.source_id)

    def _find(self, namespace_id: int, row_id: str) -> Iterator[Node]:
        if self._library.sees(namespace_id):
            found = memory.find(self._db, namespace_id, row_id)
            if found is not None and (node := self._seen(found)) is not None:
                yield node

    def _seen(self, found: Memory) -> Node | None:
        return Node(found.ino, found.namespace_id, found.id) if self._library.sees(found.namespace_id) else None
