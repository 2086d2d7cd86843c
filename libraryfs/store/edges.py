"""Edges between memories, by id. `supersedes` and `derives_from` are walked; others are kept and shown."""

from typing import Final, NamedTuple

import apsw

WALKED: Final = ("supersedes", "derives_from")

_COLUMNS = "source_ns, source_id, kind, target_ns, target_id"


class Edge(NamedTuple):
    """`source` --kind--> `target`, each a namespace id and a memory id."""

    source_ns: int
    source_id: str
    kind: str
    target_ns: int
    target_id: str


def put(db: apsw.Connection, edge: Edge, origin_id: int | None) -> bool:
    """Stores an edge; False when it was there."""
    db.execute(f"INSERT OR IGNORE INTO edges ({_COLUMNS}, origin_id) VALUES (?, ?, ?, ?, ?, ?)", (*edge, origin_id))
    return db.changes() > 0


def remove(db: apsw.Connection, edge: Edge) -> None:
    """Removes an edge."""
    db.execute(
        "DELETE FROM edges WHERE source_ns = ? AND source_id = ? AND kind = ? AND target_ns = ? AND target_id = ?", edge
    )


def declared(db: apsw.Connection, namespace_id: int, row_id: str) -> list[Edge]:
    """The edges that start at a memory."""
    rows = db.execute(
        f"SELECT {_COLUMNS} FROM edges WHERE source_ns = ? AND source_id = ? ORDER BY kind, target_ns, target_id",
        (namespace_id, row_id),
    )
    return [Edge._make(row) for row in rows]


def pointing(db: apsw.Connection, namespace_id: int, row_id: str) -> list[Edge]:
    """The edges that end at a memory."""
    rows = db.execute(
        f"SELECT {_COLUMNS} FROM edges WHERE target_ns = ? AND target_id = ? ORDER BY kind, source_ns, source_id",
        (namespace_id, row_id),
    )
    return [Edge._make(row) for row in rows]


def of_namespace(db: apsw.Connection, namespace_id: int) -> list[Edge]:
    """The edges that start in a namespace."""
    rows = db.execute(
        f"SELECT {_COLUMNS} FROM edges WHERE source_ns = ? ORDER BY source_id, kind, target_ns, target_id",
        (namespace_id,),
    )
    return [Edge._make(row) for row in rows]
