"""Workspace rows: a tree of folders and items. An item's place is its parent's id, whether that row is there or not."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import apsw

from libraryfs.nodes import Entry, Kind
from libraryfs.rows import WorkspaceRow
from libraryfs.store import bodies, entries, inodes, names
from libraryfs.store.bodies import Body
from libraryfs.store.namespaces import Namespace
from libraryfs.store.outcome import Outcome

_COLUMNS = "ino, namespace_id, id, parent_id, is_folder, name, media_type, metadata, created_ns, updated_ns, source_id"


class Item(NamedTuple):
    """A stored folder or item without its content. `name` is its true name."""

    ino: int
    namespace_id: int
    id: str
    parent_id: str | None
    is_folder: bool
    name: bytes
    media_type: str | None
    metadata: dict[str, Any]
    created_ns: int
    updated_ns: int
    source_id: int | None


def _item(row: tuple[Any, ...]) -> Item:
    return Item._make((*row[:4], bool(row[4]), *row[5:7], json.loads(row[7]), *row[8:]))


def get(db: apsw.Connection, ino: int) -> Item | None:
    """The item of this inode number."""
    row = db.execute(f"SELECT {_COLUMNS} FROM items WHERE ino = ?", (ino,)).fetchone()
    return _item(row) if row else None


def find(db: apsw.Connection, namespace_id: int, row_id: str) -> Item | None:
    """The item of this id in a namespace."""
    row = db.execute(
        f"SELECT {_COLUMNS} FROM items WHERE namespace_id = ? AND id = ?", (namespace_id, row_id)
    ).fetchone()
    return _item(row) if row else None


def every(db: apsw.Connection, namespace_id: int) -> Iterator[Item]:
    """All folders and items of a namespace, by inode number."""
    for row in db.execute(f"SELECT {_COLUMNS} FROM items WHERE namespace_id = ? ORDER BY ino", (namespace_id,)):
        yield _item(row)


def set_metadata(db: apsw.Connection, ino: int, metadata: dict[str, Any]) -> None:
    """Replaces an item's metadata; its content, size and times stay."""
    db.execute("UPDATE items SET metadata = ? WHERE ino = ?", (json.dumps(metadata), ino))


def upsert(
    db: apsw.Connection, namespace: Namespace, row: WorkspaceRow, body: Body, source_id: int | None, now_ns: int
) -> Outcome:
    """Stores a folder or an item under its id. A row that is stored as it is costs no write.

    `now_ns` stands in for a time that the row does not give. Raises ValueError when the id's inode number is taken.
    """
    old = find(db, namespace.id, row.id)
    true_name = names.to_bytes(row.name)
    parent = (
        inodes.section_ino(namespace.path, "workspace")
        if row.parent_id is None
        else inodes.row_ino(namespace.path, "item", row.parent_id)
    )
    kind = int(Kind.FOLDER if row.folder else Kind.ITEM)
    size, digest = (0, None) if row.folder else (body.size, body.digest)
    if old is None:
        ino = inodes.row_ino(namespace.path, "item", row.id)
        if entries.get(db, ino) is not None:
            raise ValueError(f"the id {row.id!r} gives an inode number that is taken; change the id")
        created = now_ns if row.created_at is None else row.created_at
        updated = now_ns if row.updated_at is None else row.updated_at
        name = names.kept_name(row.shown_name, true_name, row.id, lambda label: entries.taken(db, parent, label))
        _write(db, ino, namespace, row, created, updated, source_id)
        if not row.folder:
            bodies.write(db, ino, body)
        entries.insert(db, Entry(ino, parent, name, kind, namespace.id, size, updated, updated, digest))
        return Outcome.ADDED
    entry = entries.get(db, old.ino)
    assert entry is not None, "an item has an entry"
    created = old.created_ns if row.created_at is None else row.created_at
    updated = old.updated_ns if row.updated_at is None else row.updated_at
    new = (row.parent_id, row.folder, true_name, row.media_type, json.dumps(row.metadata), created, updated)
    was = (*old[3:7], json.dumps(old.metadata), old.created_ns, old.updated_ns)
    if was == new and entry.digest == digest:
        if old.source_id != source_id:
            db.execute("UPDATE items SET source_id = ? WHERE ino = ?", (source_id, old.ino))
        return Outcome.UNCHANGED
    if row.updated_at is None:
        updated = now_ns
    name = entry.name
    if entry.parent != parent or old.name != true_name:
        name = names.shown_name(
            true_name,
            row.id,
            lambda label: (parent, label) != (entry.parent, entry.name) and entries.taken(db, parent, label),
        )
    _write(db, old.ino, namespace, row, created, updated, source_id)
    if row.folder:
        bodies.remove(db, old.ino)
    elif entry.digest != digest:
        bodies.write(db, old.ino, body)
    entries.update(db, Entry(old.ino, parent, name, kind, namespace.id, size, updated, updated, digest))
    return Outcome.CHANGED


def _write(
    db: apsw.Connection,
    ino: int,
    namespace: Namespace,
    row: WorkspaceRow,
    created: int,
    updated: int,
    source_id: int | None,
) -> None:
    db.execute(
        f"INSERT OR REPLACE INTO items ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            ino,
            namespace.id,
            row.id,
            row.parent_id,
            int(row.folder),
            names.to_bytes(row.name),
            row.media_type,
            json.dumps(row.metadata),
            created,
            updated,
            source_id,
        ),
    )


def delete(db: apsw.Connection, ino: int) -> None:
    """Removes a folder or an item; what is in a removed folder becomes unreachable until its parent is back."""
    db.execute("DELETE FROM items WHERE ino = ?", (ino,))
    entries.remove(db, ino)
