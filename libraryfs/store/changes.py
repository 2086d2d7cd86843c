"""The change log: what a live mount reads to know what the kernel must forget."""

from enum import IntEnum
from typing import NamedTuple

import apsw


class Op(IntEnum):
    """What happened. For GRANTED and REVOKED the entry is the namespace's folder."""

    ADDED = 1
    CHANGED = 2
    REMOVED = 3
    GRANTED = 4
    REVOKED = 5


class Change(NamedTuple):
    """One row of the log."""

    seq: int
    op: int
    ino: int
    parent: int
    name: bytes
    namespace_id: int | None


def latest(db: apsw.Connection) -> int:
    """The newest sequence number that was ever given; 0 in a new snapshot."""
    row = db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'changes'").fetchone()
    return int(row[0]) if row else 0


def since(db: apsw.Connection, seq: int, limit: int = 1000) -> list[Change]:
    """Up to `limit` changes after `seq`, oldest first."""
    rows = db.execute(
        "SELECT seq, op, ino, parent, name, namespace_id FROM changes WHERE seq > ? ORDER BY seq LIMIT ?", (seq, limit)
    )
    return [Change._make(row) for row in rows]


def is_complete_since(db: apsw.Connection, seq: int) -> bool:
    """False when changes after `seq` have been pruned: then everything must be read anew."""
    row = db.execute("SELECT min(seq) FROM changes").fetchone()
    oldest = latest(db) + 1 if row is None or row[0] is None else int(row[0])
    return oldest <= seq + 1
