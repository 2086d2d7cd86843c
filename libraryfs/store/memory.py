"""Memory rows: one file each, in the section of its type."""

import json
from collections.abc import Iterator
from types import NoneType
from typing import Any, NamedTuple

import apsw

from libraryfs.nodes import Entry, Kind
from libraryfs.paths import AGENT_SECTION, section_of
from libraryfs.rows import MemoryRow
from libraryfs.store import bodies, checked, entries, inodes, names, prefixes
from libraryfs.store.bodies import Body
from libraryfs.store.namespaces import Namespace
from libraryfs.store.outcome import Outcome, times


class Memory(NamedTuple):
    """A stored memory without its content."""

    ino: int
    namespace_id: int
    id: str
    memory_type: str
    title: str
    confidence: float | None
    metadata: dict[str, Any]
    created_ns: int
    updated_ns: int
    source_id: int | None


_COLUMNS = "ino, namespace_id, id, memory_type, title, confidence, metadata, created_ns, updated_ns, source_id"
_TYPES = (int, int, str, str, bytes, (float, int, NoneType), str, int, int, (int, NoneType))


def _memory(row: tuple[Any, ...]) -> Memory:
    checked.columns("memories", row, _TYPES)
    metadata = checked.json_object("memories", row[0], row[6])
    return Memory._make((*row[:4], names.from_bytes(row[4]), row[5], metadata, *row[7:]))


def get(db: apsw.Connection, ino: int) -> Memory | None:
    """The memory of this inode number."""
    row = db.execute(f"SELECT {_COLUMNS} FROM memories WHERE ino = ?", (ino,)).fetchone()
    return _memory(row) if row else None


def find(db: apsw.Connection, namespace_id: int, row_id: str) -> Memory | None:
    """The memory of this id in a namespace."""
    row = db.execute(
        f"SELECT {_COLUMNS} FROM memories WHERE namespace_id = ? AND id = ?", (namespace_id, row_id)
    ).fetchone()
    return _memory(row) if row else None


def every(db: apsw.Connection, namespace_id: int) -> Iterator[Memory]:
    """All memories of a namespace, by inode number."""
    for row in db.execute(f"SELECT {_COLUMNS} FROM memories WHERE namespace_id = ? ORDER BY ino", (namespace_id,)):
        yield _memory(row)


def upsert(
    db: apsw.Connection, namespace: Namespace, row: MemoryRow, body: Body, source_id: int | None, now_ns: int
) -> Outcome:
    """Stores a memory under its id. A row that is stored as it is costs no write.

    `now_ns` stands in for a time that the row does not give. Raises ValueError when the id's inode number is taken.
    """
    old = find(db, namespace.id, row.id)
    section = section_of(row.memory_type) if namespace.kind == "ring" else AGENT_SECTION
    folder = inodes.section_ino(namespace.path, section)
    metadata = json.dumps(row.metadata)
    if old is None:
        return _add(db, namespace, row, body, source_id, section, now_ns)
    entry = entries.get(db, old.ino)
    assert entry is not None, "a memory has an entry"
    created, updated = times(row, old.created_ns, old.updated_ns)
    new = (row.memory_type, row.title, row.confidence, metadata, created, updated)
    if (*old[3:6], json.dumps(old.metadata), old.created_ns, old.updated_ns) == new and entry.digest == body.digest:
        if old.source_id != source_id:
            db.execute("UPDATE memories SET source_id = ? WHERE ino = ?", (source_id, old.ino))
        return Outcome.UNCHANGED
    updated = times(row, 0, now_ns)[1]
    db.execute(
        "UPDATE memories SET memory_type = ?, title = ?, confidence = ?, metadata = ?, created_ns = ?, updated_ns = ?,"
        " source_id = ? WHERE ino = ?",
        (row.memory_type, names.to_bytes(row.title), row.confidence, metadata, created, updated, source_id, old.ino),
    )
    if entry.digest != body.digest:
        bodies.write(db, old.ino, body)
    section_was = prefixes.section_above(db, entry.parent)
    was_charter = namespace.kind == "ring" and abs(section_was) == inodes.section_ino(namespace.path, "charter")
    parent, name = entry.parent, entry.name
    if abs(section_was) != folder:  # in its own section a file keeps its folder and its name
        parent = _folder(db, namespace, row, section)
        if entries.taken(db, parent, name):
            name = names.memory_name(row.title, row.id, lambda label: entries.taken(db, parent, label))
    entries.update(
        db,
        entry._replace(
            parent=parent, name=name, size=body.size, mtime_ns=updated, ctime_ns=updated, digest=body.digest
        ),
    )
    if parent != entry.parent:
        prefixes.prune(db, entry.parent)
    if was_charter or section == "charter":
        elect_charter(db, namespace)
    return Outcome.CHANGED


def _folder(db: apsw.Connection, namespace: Namespace, row: MemoryRow, section: str) -> int:
    """The folder for a new file: its section, or a sub-folder of it. A charter starts on the hidden side."""
    if namespace.kind == "agent":
        return inodes.section_ino(namespace.path, AGENT_SECTION)
    if section == "charter":
        return -inodes.section_ino(namespace.path, section)
    shown = row.shown_folder.split("/") if row.shown_folder else []
    return prefixes.ensure(db, namespace, section, [names.to_bytes(part) for part in shown], shown)


def _add(
    db: apsw.Connection,
    namespace: Namespace,
    row: MemoryRow,
    body: Body,
    source_id: int | None,
    section: str,
    now_ns: int,
) -> Outcome:
    ino = inodes.row_ino(namespace.path, "memory", row.id)
    if entries.get(db, ino) is not None:
        raise ValueError(f"the id {row.id!r} gives an inode number that is taken; change the id")
    is_charter = namespace.kind == "ring" and row.memory_type == "charter"
    parent = _folder(db, namespace, row, section)
    kept = names.to_bytes(row.name) if row.name else None
    if kept is not None and not names.needs_mapping(kept) and not entries.taken(db, parent, kept):
        name = kept
    else:
        name = names.memory_name(row.title, row.id, lambda label: entries.taken(db, parent, label))
    created, updated = times(row, now_ns, now_ns)
    db.execute(
        f"INSERT INTO memories ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            ino,
            namespace.id,
            row.id,
            row.memory_type,
            names.to_bytes(row.title),
            row.confidence,
            json.dumps(row.metadata),
            created,
            updated,
            source_id,
        ),
    )
    bodies.insert(db, ino, body)
    entries.insert(
        db, Entry(ino, parent, name, int(Kind.MEMORY), namespace.id, body.size, updated, updated, body.digest)
    )
    if is_charter:
        elect_charter(db, namespace)
    return Outcome.ADDED


def delete(db: apsw.Connection, namespace: Namespace, ino: int) -> None:
    """Removes a memory and its file; of a charter, the next newest is shown."""
    was_charter = db.execute("SELECT 1 FROM memories WHERE ino = ? AND memory_type = 'charter'", (ino,)).get
    entry = entries.get(db, ino)
    db.execute("DELETE FROM memories WHERE ino = ?", (ino,))
    entries.remove(db, ino)
    if entry is not None:
        prefixes.prune(db, entry.parent)
    if was_charter and namespace.kind == "ring":
        elect_charter(db, namespace)


def elect_charter(db: apsw.Connection, namespace: Namespace) -> None:
    """Shows the newest charter of a ring, and it alone; of two of one time, the one with the greater id."""
    section = inodes.section_ino(namespace.path, "charter")
    winner = db.execute(
        "SELECT m.ino FROM memories m JOIN entries e ON e.ino = m.ino WHERE e.parent IN (?, ?)"
        " ORDER BY m.updated_ns DESC, m.id DESC LIMIT 1",
        (section, -section),
    ).fetchone()
    if winner is None:
        return
    db.execute("UPDATE entries SET parent = ? WHERE parent = ? AND ino <> ?", (-section, section, winner[0]))
    db.execute("UPDATE entries SET parent = ? WHERE parent = ? AND ino = ?", (section, -section, winner[0]))
