"""The one tree that all three stores are shown in: look-up, listing, placing and removing.

What reads entries raises SnapshotDamaged where one is not what it should be.
"""

from collections.abc import Iterator
from typing import Any

import apsw

from libraryfs.nodes import Entry
from libraryfs.store import bodies, checked

_COLUMNS = "ino, parent, name, kind, namespace_id, size, mtime_ns, ctime_ns, digest"
# From the grants, and in this order: what is not granted is never come by, so that nothing about it can be measured.
_GRANTED = (
    "SELECT e.ino, e.parent, e.name, e.kind, e.namespace_id, e.size, e.mtime_ns, e.ctime_ns, e.digest"
    " FROM grants g CROSS JOIN namespaces n CROSS JOIN entries e"
    " WHERE g.principal = ? AND n.id = g.namespace_id AND e.ino = n.ino AND e.parent = ?"
)
Listed = tuple[int, bytes, int, int, int, int]
"""(ino, name, kind, size, mtime_ns, ctime_ns)"""
MAX_CHAIN = 10_000
"""Longest chain of parents that is followed; a workspace cycle ends here at the latest."""


def get(db: apsw.Connection, ino: int) -> Entry | None:
    """The entry of this inode number."""
    row = db.execute(f"SELECT {_COLUMNS} FROM entries WHERE ino = ?", (ino,)).fetchone()
    return checked.entry(row) if row else None


def exists(db: apsw.Connection, ino: int) -> bool:
    """Whether there is an entry of this number, damaged or not."""
    return db.execute("SELECT 1 FROM entries WHERE ino = ?", (ino,)).fetchone() is not None


def lookup(db: apsw.Connection, parent: int, name: bytes) -> Entry | None:
    """The entry of this name in the folder `parent`."""
    # The subquery is answered by the index alone, and the row is then compared: a damaged one must not give another.
    row = db.execute(
        f"SELECT {_COLUMNS} FROM entries WHERE ino = (SELECT ino FROM entries WHERE parent = ? AND name = ?)",
        (parent, name),
    ).fetchone()
    return _as_asked(row, parent, name) if row else None


def _as_asked(row: tuple[Any, ...], parent: int, name: bytes) -> Entry:
    found = checked.entry(row)
    if found.parent != parent or found.name != name:
        checked.damaged(f"the index of names is damaged at entry {found.ino}")
    return found


def children(db: apsw.Connection, parent: int, after: int, limit: int) -> list[Entry]:
    """Up to `limit` entries of a folder in inode order, those with a number above `after`."""
    rows = db.execute(
        f"SELECT {_COLUMNS} FROM entries WHERE parent = ? AND ino > ? ORDER BY ino LIMIT ?", (parent, after, limit)
    )
    return [checked.entry(row) for row in rows]


def listing(db: apsw.Connection, parent: int, after: int, limit: int) -> tuple[list[Listed], bool]:
    """As `children`, with what a listing shows only, as plain tuples: half the cost, for folders of thousands.

    Rows that cannot be shown are left out; the second value says whether there were any.
    """
    found: list[Listed] = []
    is_damaged = False
    while True:
        rows: Any = db.execute(
            "SELECT ino, name, kind, size, mtime_ns, ctime_ns FROM entries"
            " WHERE parent = ? AND ino > ? ORDER BY ino LIMIT ?",
            (parent, after, limit),
        ).fetchall()
        found = [row for row in rows if checked.is_listable(row)]
        is_damaged = is_damaged or len(found) < len(rows)
        if found or len(rows) < limit:
            return found, is_damaged
        after = rows[-1][0]


def children_by_name(db: apsw.Connection, parent: int, after: bytes, limit: int) -> list[Entry]:
    """Up to `limit` entries of a folder in byte order of their names, those above `after`."""
    rows = db.execute(
        f"SELECT {_COLUMNS} FROM entries WHERE parent = ? AND name > ? ORDER BY name LIMIT ?", (parent, after, limit)
    )
    return [checked.entry(row) for row in rows]


def granted(db: apsw.Connection, principal: str, parent: int, after: int, limit: int) -> list[Entry]:
    """As `children`, for /ring and /agent: those that the principal may see."""
    rows = db.execute(f"{_GRANTED} AND e.ino > ? ORDER BY e.ino LIMIT ?", (principal, parent, after, limit))
    return [checked.entry(row) for row in rows]


def granted_by_name(db: apsw.Connection, principal: str, parent: int, after: bytes, limit: int) -> list[Entry]:
    """As `children_by_name`, for /ring and /agent: those that the principal may see."""
    rows = db.execute(f"{_GRANTED} AND e.name > ? ORDER BY e.name LIMIT ?", (principal, parent, after, limit))
    return [checked.entry(row) for row in rows]


def lookup_granted(db: apsw.Connection, principal: str, parent: int, name: bytes) -> Entry | None:
    """As `lookup`, for /ring and /agent: a hidden name costs the very steps that an absent one costs."""
    row = db.execute(f"{_GRANTED} AND e.name = ?", (principal, parent, name)).fetchone()
    return checked.entry(row) if row else None


def count(db: apsw.Connection, parent: int) -> int:
    """How many entries a folder has."""
    number: int = db.execute("SELECT count(*) FROM entries WHERE parent = ?", (parent,)).get
    return number


def chain(db: apsw.Connection, entry: Entry) -> list[Entry] | None:
    """The folders from the root to the entry, the entry last; None when it is not reachable from the root."""
    links, seen, current = [entry], {entry.ino}, entry
    while current.ino != 1:
        above = get(db, current.parent)
        if above is None or above.ino in seen or not above.is_folder or len(links) > MAX_CHAIN:
            return None
        seen.add(above.ino)
        links.append(above)
        current = above
    return links[::-1]


def between(db: apsw.Connection, first: int, last: int) -> Iterator[tuple[int, int, bytes]]:
    """(ino, parent, name) of all entries with numbers from `first` to `last`, whatever their namespace, in order."""
    rows = db.execute("SELECT ino, parent, name FROM entries WHERE ino BETWEEN ? AND ? ORDER BY ino", (first, last))
    for ino, parent, name in rows:  # noqa: UP028 - each row typed as it goes
        yield ino, parent, name


def taken(db: apsw.Connection, parent: int, name: bytes) -> bool:
    """Whether the folder has this name; of a charter section, also among the charters that are not shown."""
    row = db.execute("SELECT 1 FROM entries WHERE parent IN (?, ?) AND name = ? LIMIT 1", (parent, -parent, name))
    return row.fetchone() is not None


def insert(db: apsw.Connection, entry: Entry) -> None:
    """Adds an entry; its number and its name in the folder must be free."""
    db.execute(f"INSERT INTO entries ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", entry)


def update(db: apsw.Connection, entry: Entry) -> None:
    """Writes an entry anew under its number."""
    db.execute(
        "UPDATE entries SET parent = ?, name = ?, kind = ?, namespace_id = ?, size = ?, mtime_ns = ?, ctime_ns = ?,"
        " digest = ? WHERE ino = ?",
        (*entry[1:], entry.ino),
    )


def remove(db: apsw.Connection, ino: int) -> None:
    """Removes an entry and its content."""
    bodies.remove(db, ino)
    db.execute("DELETE FROM entries WHERE ino = ?", (ino,))
