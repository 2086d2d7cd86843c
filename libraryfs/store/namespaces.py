"""Rings and agents: their rows and the folders that every one of them has."""

from typing import NamedTuple

import apsw

from libraryfs.nodes import AGENTS_INO, RINGS_INO, Kind
from libraryfs.paths import AGENT_SECTION, SECTIONS
from libraryfs.store import inodes


class Namespace(NamedTuple):
    """A ring or an agent."""

    id: int
    kind: str
    name: str

    @property
    def path(self) -> str:
        """`/ring/dev`."""
        return f"/{self.kind}/{self.name}"


def find(db: apsw.Connection, kind: str, name: str) -> Namespace | None:
    """The ring or agent of this name, or None."""
    row = db.execute("SELECT id, kind, name FROM namespaces WHERE kind = ? AND name = ?", (kind, name)).fetchone()
    return Namespace(*row) if row else None


def find_path(db: apsw.Connection, path: str) -> Namespace | None:
    """The namespace of a checked path, `/ring/dev`."""
    _, kind, name = path.split("/")
    return find(db, kind, name)


def by_id(db: apsw.Connection, namespace_id: int) -> Namespace:
    """The namespace of this id. Raises KeyError when there is none."""
    row = db.execute("SELECT id, kind, name FROM namespaces WHERE id = ?", (namespace_id,)).fetchone()
    if row is None:
        raise KeyError(namespace_id)
    return Namespace(*row)


def every(db: apsw.Connection) -> list[Namespace]:
    """All of them, rings first, by name."""
    rows = db.execute("SELECT id, kind, name FROM namespaces ORDER BY kind DESC, name")
    return [Namespace(*row) for row in rows]


def granted(db: apsw.Connection, principal: str) -> list[Namespace]:
    """Those that the principal may see, rings first, by name."""
    rows = db.execute(
        "SELECT n.id, n.kind, n.name FROM grants g CROSS JOIN namespaces n"
        " WHERE g.principal = ? AND n.id = g.namespace_id ORDER BY n.kind DESC, n.name",
        (principal,),
    )
    return [Namespace(*row) for row in rows]


def ensure(db: apsw.Connection, path: str) -> Namespace:
    """The namespace of this path, made with its folders when it is new."""
    found = find_path(db, path)
    if found:
        return found
    _, kind, name = path.split("/")
    ino = inodes.namespace_ino(path)
    db.execute("INSERT INTO namespaces (kind, name, ino) VALUES (?, ?, ?)", (kind, name, ino))
    namespace = Namespace(db.last_insert_rowid(), kind, name)
    sections = SECTIONS if kind == "ring" else (AGENT_SECTION,)
    folders = [(inodes.section_ino(path, section), ino, section, Kind.SECTION) for section in sections]
    folders.append((ino, RINGS_INO if kind == "ring" else AGENTS_INO, name, Kind.NAMESPACE))
    db.executemany(
        "INSERT INTO entries (ino, parent, name, kind, namespace_id, size, mtime_ns, ctime_ns, digest)"
        " VALUES (?, ?, ?, ?, ?, 0, 0, 0, NULL)",
        [(number, parent, label.encode(), int(kind_), namespace.id) for number, parent, label, kind_ in folders],
    )
    return namespace
