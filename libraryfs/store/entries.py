"""The one tree that all three stores are shown in: look-up, listing, placing and removing."""

from collections.abc import Iterator
from typing import Any

import apsw

from libraryfs.nodes import Entry
from libraryfs.store import bodies

_COLUMNS = "ino, parent, name, kind, namespace_id, size, mtime_ns, ctime_ns, digest"
Listed = tuple[int, bytes, int, int, int, int]
"""(ino, name, kind, size, mtime_ns, ctime_ns)"""
MAX_CHAIN = 10_000
"""Longest chain of parents that is followed; a workspace cycle ends here at the latest."""


def get(db: apsw.Connection, ino: int) -> Entry | None:
    """The entry of this inode number."""
    row = db.execute(f"SELECT {_COLUMNS} FROM entries WHERE ino = ?", (ino,)).fetchone()
    return Entry._make(row) if row else None


def lookup(db: apsw.Connection, parent: int, name: bytes) -> Entry | None:
    """The entry of this name in the folder `parent`."""
    row = db.execute(f"SELECT {_COLUMNS} FROM entries WHERE parent = ? AND name = ?", (parent, name)).fetchone()
    return Entry._make(row) if row else None


def children(db: apsw.Connection, parent: int, after: int, limit: int) -> list[Entry]:
    """Up to `limit` entries of a folder in inode order, those with a number above `after`."""
    rows = db.execute(
        f"SELECT {_COLUMNS} FROM entries WHERE parent = ? AND ino > ? ORDER BY ino LIMIT ?", (parent, after, limit)
    )
    return [Entry._make(row) for row in rows]


def listing(db: apsw.Connection, parent: int, after: int, limit: int) -> list[Listed]:
    """As `children`, with what a listing shows only, as plain tuples: half the cost, for folders of thousands."""
    rows: Any = db.execute(
        "SELECT ino, name, kind, size, mtime_ns, ctime_ns FROM entries"
        " WHERE parent = ? AND ino > ? ORDER BY ino LIMIT ?",
        (parent, after, limit),
    ).fetchall()
    found: list[Listed] = rows
    return found


def children_by_name(db: apsw.Connection, parent: int, after: bytes, limit: int) -> list[Entry]:
    """Up to `limit` entries of a folder in byte order of their names, those above `after`."""
    rows = db.execute(
        f"SELECT {_COLUMNS} FROM entries WHERE parent = ? AND name > ? ORDER BY name LIMIT ?", (parent, after, limit)
    )
    return [Entry._make(row) for row in rows]


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
