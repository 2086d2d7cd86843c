"""Workspace rows: a tree of folders and items. An item's place is its parent's id, whether that row is there or not."""

import json
from collections.abc import Iterator
from types import NoneType
from typing import Any, NamedTuple

import apsw

from libraryfs.nodes import Entry, Kind
from libraryfs.rows import WorkspaceRow
from libraryfs.store import bodies, checked, entries, inodes, names
from libraryfs.store.bodies import Body
from libraryfs.store.namespaces import Namespace
from libraryfs.store.outcome import Outcome, times

_COLUMNS = "ino, namespace_id, id, parent_id, is_folder, name, media_type, metadata, created_ns, updated_ns, source_id"
_TYPES = (int, int, str, (str, NoneType), int, bytes, (str, NoneType), str, int, int, (int, NoneType))

EVAL_KEYS = ("last_eval_pass_rate", "last_eval_total", "last_eval_at")
"""Keys of an item's metadata that an eval writes (store/evals.py)."""


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
    checked.columns("items", row, _TYPES)
    return Item._make((*row[:4], bool(row[4]), *row[5:7], checked.json_object("items", row[0], row[7]), *row[8:]))


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
    if old is None:
        _add(db, namespace, row, body, source_id, now_ns)
        return Outcome.ADDED
    kept = {key: old.metadata[key] for key in EVAL_KEYS if key in old.metadata and key not in row.metadata}
    if kept:  # a source knows nothing of them, so importing it again must not drop them
        row = row.model_copy(update={"metadata": {**row.metadata, **kept}})
    entry = entries.get(db, old.ino)
    assert entry is not None, "an item has an entry"
    created, updated = times(row, old.created_ns, old.updated_ns)
    digest = None if row.folder else body.digest
    new = (row.parent_id, row.folder, names.to_bytes(row.name), row.media_type, json.dumps(row.metadata))
    was = (*old[3:7], json.dumps(old.metadata))
    if (*was, old.created_ns, old.updated_ns) == (*new, created, updated) and entry.digest == digest:
        if old.source_id != source_id:
            db.execute("UPDATE items SET source_id = ? WHERE ino = ?", (source_id, old.ino))
        return Outcome.UNCHANGED
    _change(db, namespace, row, body, old, entry, (created, times(row, 0, now_ns)[1]), source_id)
    return Outcome.CHANGED


def _parent(namespace: Namespace, row: WorkspaceRow) -> int:
    if row.parent_id is None:
        return inodes.section_ino(namespace.path, "workspace")
    return inodes.row_ino(namespace.path, "item", row.parent_id)  # computed: the parent may come later, or never


def _add(
    db: apsw.Connection, namespace: Namespace, row: WorkspaceRow, body: Body, source_id: int | None, now_ns: int
) -> None:
    ino = inodes.row_ino(namespace.path, "item", row.id)
    if entries.get(db, ino) is not None:
        raise ValueError(f"the id {row.id!r} gives an inode number that is taken; change the id")
    created, updated = times(row, now_ns, now_ns)
    parent = _parent(namespace, row)
    true_name = names.to_bytes(row.name)
    name = names.kept_name(row.shown_name, true_name, row.id, lambda label: entries.taken(db, parent, label))
    _write(db, ino, namespace, row, created, updated, source_id)
    if row.folder:
        entry = Entry(ino, parent, name, int(Kind.FOLDER), namespace.id, 0, updated, updated, None)
    else:
        bodies.insert(db, ino, body)
        entry = Entry(ino, parent, name, int(Kind.ITEM), namespace.id, body.size, updated, updated, body.digest)
    entries.insert(db, entry)


def _change(
    db: apsw.Connection,
    namespace: Namespace,
    row: WorkspaceRow,
    body: Body,
    old: Item,
    entry: Entry,
    moments: tuple[int, int],
    source_id: int | None,
) -> None:
    created, updated = moments
    parent, name = _parent(namespace, row), entry.name
    true_name = names.to_bytes(row.name)
    if entry.parent != parent or old.name != true_name:
        own = (entry.parent, entry.name)
        name = names.shown_name(
            true_name, row.id, lambda label: (parent, label) != own and entries.taken(db, parent, label)
        )
    _write(db, old.ino, namespace, row, created, updated, source_id)
    if row.folder:
        bodies.remove(db, old.ino)
        entry = Entry(old.ino, parent, name, int(Kind.FOLDER), namespace.id, 0, updated, updated, None)
    else:
        if entry.digest != body.digest:
            bodies.write(db, old.ino, body)
        entry = Entry(old.ino, parent, name, int(Kind.ITEM), namespace.id, body.size, updated, updated, body.digest)
    entries.update(db, entry)


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
