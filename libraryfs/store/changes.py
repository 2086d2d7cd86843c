"""The change log: what a live mount reads to know what the kernel must forget."""

from enum import IntEnum
from typing import Any, NamedTuple

import apsw

from libraryfs.errors import SnapshotDamaged


class Op(IntEnum):
    """What happened. For GRANTED and REVOKED the entry is the namespace's folder."""

    ADDED = 1
    CHANGED = 2
    REMOVED = 3
    GRANTED = 4
    REVOKED = 5


class Change(NamedTuple):
    """One row of the log. `parent` is below 0 where the entry stands in no folder that is shown (schema.sql)."""

    seq: int
    op: int
    ino: int
    parent: int
    name: bytes
    namespace_id: int | None


_COLUMNS = "seq, op, ino, parent, name, namespace_id"


def _change(row: tuple[Any, ...]) -> Change:
    *numbers, name, namespace_id = row
    if not all(type(number) is int for number in numbers) or type(name) is not bytes:
        raise SnapshotDamaged(f"row {row[0]!r} of the change log is damaged")
    if namespace_id is not None and type(namespace_id) is not int:
        raise SnapshotDamaged(f"row {row[0]!r} of the change log is damaged")
    return Change._make(row)


def latest(db: apsw.Connection) -> int:
    """The newest sequence number that was ever given; 0 in a new snapshot."""
    row = db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'changes'").fetchone()
    return int(row[0]) if row else 0


def since(db: apsw.Connection, seq: int, last: int, limit: int = 1000) -> list[Change]:
    """Up to `limit` changes after `seq`, none after `last`, oldest first. Raises SnapshotDamaged."""
    rows = db.execute(
        f"SELECT {_COLUMNS} FROM changes WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?", (seq, last, limit)
    )
    return [_change(row) for row in rows]


def access_since(db: apsw.Connection, seq: int, last: int) -> list[Change]:
    """All grants and revocations after `seq`, none after `last`, oldest first. Raises SnapshotDamaged."""
    rows = db.execute(
        f"SELECT {_COLUMNS} FROM changes WHERE op >= 4 AND seq > ? AND seq <= ? ORDER BY seq", (seq, last)
    )
    return [_change(row) for row in rows]


def is_complete_since(db: apsw.Connection, seq: int) -> bool:
    """False when changes after `seq` have been pruned: then everything must be read anew."""
    row = db.execute("SELECT min(seq) FROM changes").fetchone()
    oldest = latest(db) + 1 if row is None or row[0] is None else int(row[0])
    return oldest <= seq + 1
