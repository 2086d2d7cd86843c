"""A digest of what retrieval can find from a folder: equal digests, equal evidence."""

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any

import apsw

from libraryfs.store import vectors
from libraryfs.store.edges import WALKED

_FILES = """
    WITH RECURSIVE below (ino) AS (VALUES (?1) UNION SELECT e.ino FROM entries e JOIN below ON e.parent = below.ino)
    SELECT e.ino, e.parent, e.name, e.digest, m.title, i.ino IS NULL, v.ino IS NULL, m.id, e.namespace_id
    FROM below JOIN entries e ON e.ino = below.ino LEFT JOIN memories m ON m.ino = e.ino
    LEFT JOIN unindexed i ON i.ino = e.ino LEFT JOIN unembedded v ON v.ino = e.ino ORDER BY e.ino
"""
_EDGES = """
    SELECT g.source_ns, g.source_id, g.kind, g.target_ns, g.target_id, s.digest, t.digest
    FROM edges g
    JOIN memories a ON a.namespace_id = g.source_ns AND a.id = g.source_id JOIN entries s ON s.ino = a.ino
    JOIN memories b ON b.namespace_id = g.target_ns AND b.id = g.target_id JOIN entries t ON t.ino = b.ino
    WHERE g.source_ns = ?1 OR g.target_ns = ?1 ORDER BY 1, 2, 3, 4, 5
"""


def digest(db: apsw.Connection, scopes: Iterable[int], visible: frozenset[int], without: frozenset[int]) -> bytes:
    """A digest of all files below the folders `scopes`, and of what an edge joins them with, in visible namespaces.

    Names, titles, contents and whether they are indexed count, times do not. `without`: inode numbers not looked at.
    """
    total = blake2b(digest_size=16)
    inside: set[tuple[int, str]] = set()
    for scope in sorted(set(scopes)):
        for row in db.execute(_FILES, (scope,)):
            *content, memory_id, namespace_id = row
            if row[0] not in without and (namespace_id is None or namespace_id in visible):
                _add(total, content)
                if memory_id is not None:
                    inside.add((namespace_id, memory_id))
    for namespace_id in sorted({namespace_id for namespace_id, _ in inside}):
        for row in db.execute(_EDGES, (namespace_id,)):
            ends = (row[0], row[1]) in inside or (row[3], row[4]) in inside
            if ends and row[2] in WALKED and row[0] in visible and row[3] in visible:
                _add(total, row)
    _add(total, (vectors.embedder(db),))
    return total.digest()


def _add(total: blake2b, row: Sequence[Any]) -> None:
    for value in row:
        data = value if isinstance(value, bytes) else repr(value).encode("utf-8", "surrogatepass")
        total.update(len(data).to_bytes(4, "little") + data)
