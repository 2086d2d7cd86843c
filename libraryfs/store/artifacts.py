"""Artifact rows: flat, with filenames that may hold `/`; folders are made from them and go with the last one."""

import json
from collections.abc import Iterator
from types import NoneType
from typing import Any, NamedTuple

import apsw

from libraryfs.nodes import Entry, Kind
from libraryfs.rows import ArtifactRow
from libraryfs.store import bodies, checked, entries, inodes, names, prefixes
from libraryfs.store.bodies import Body
from libraryfs.store.namespaces import Namespace
from libraryfs.store.outcome import Outcome, times

_COLUMNS = "ino, namespace_id, id, filename, media_type, metadata, created_ns, updated_ns, source_id"
_TYPES = (int, int, str, bytes, (str, NoneType), str, int, int, (int, NoneType))


class Artifact(NamedTuple):
    """A stored artifact without its content."""

    ino: int
    namespace_id: int
    id: str
    filename: bytes
    media_type: str | None
    metadata: dict[str, Any]
    created_ns: int
    updated_ns: int
    source_id: int | None


def _artifact(row: tuple[Any, ...]) -> Artifact:
    checked.columns("artifacts", row, _TYPES)
    return Artifact._make((*row[:5], checked.json_object("artifacts", row[0], row[5]), *row[6:]))


def get(db: apsw.Connection, ino: int) -> Artifact | None:
    """The artifact of this inode number."""
    row = db.execute(f"SELECT {_COLUMNS} FROM artifacts WHERE ino = ?", (ino,)).fetchone()
    return _artifact(row) if row else None


def find(db: apsw.Connection, namespace_id: int, row_id: str) -> Artifact | None:
    """The artifact of this id in a namespace."""
    row = db.execute(
        f"SELECT {_COLUMNS} FROM artifacts WHERE namespace_id = ? AND id = ?", (namespace_id, row_id)
    ).fetchone()
    return _artifact(row) if row else None


def every(db: apsw.Connection, namespace_id: int) -> Iterator[Artifact]:
    """All artifacts of a namespace, by inode number."""
    for row in db.execute(f"SELECT {_COLUMNS} FROM artifacts WHERE namespace_id = ? ORDER BY ino", (namespace_id,)):
        yield _artifact(row)


def upsert(
    db: apsw.Connection, namespace: Namespace, row: ArtifactRow, body: Body, source_id: int | None, now_ns: int
) -> Outcome:
    """Stores an artifact under its id. A row that is stored as it is costs no write.

    `now_ns` stands in for a time that the row does not give. Raises ValueError when the id's inode number is taken.
    """
    old = find(db, namespace.id, row.id)
    filename = names.to_bytes(row.filename)
    if old is None:
        _add(db, namespace, row, body, source_id, now_ns)
        return Outcome.ADDED
    entry = entries.get(db, old.ino)
    assert entry is not None, "an artifact has an entry"
    created, updated = times(row, old.created_ns, old.updated_ns)
    new = (filename, row.media_type, json.dumps(row.metadata), created, updated)
    if (*old[3:5], json.dumps(old.metadata), old.created_ns, old.updated_ns) == new and entry.digest == body.digest:
        if old.source_id != source_id:
            db.execute("UPDATE artifacts SET source_id = ? WHERE ino = ?", (source_id, old.ino))
        return Outcome.UNCHANGED
    updated = times(row, 0, now_ns)[1]
    parent, name = entry.parent, entry.name
    if old.filename != filename:
        own = (entry.parent, entry.name)
        parent = _folders(db, namespace, filename)
        leaf = filename.rpartition(b"/")[2]
        name = names.shown_name(leaf, row.id, lambda label: (parent, label) != own and entries.taken(db, parent, label))
    _write(db, old.ino, namespace, row, created, updated, source_id)
    if entry.digest != body.digest:
        bodies.write(db, old.ino, body)
    moved = entry._replace(parent=parent, name=name)
    entries.update(db, moved._replace(size=body.size, mtime_ns=updated, ctime_ns=updated, digest=body.digest))
    if parent != entry.parent:
        prefixes.prune(db, entry.parent)
    return Outcome.CHANGED


def _add(
    db: apsw.Connection, namespace: Namespace, row: ArtifactRow, body: Body, source_id: int | None, now_ns: int
) -> None:
    ino = inodes.row_ino(namespace.path, "artifact", row.id)
    if entries.get(db, ino) is not None:
        raise ValueError(f"the id {row.id!r} gives an inode number that is taken; change the id")
    created, updated = times(row, now_ns, now_ns)
    filename = names.to_bytes(row.filename)
    parent = _folders(db, namespace, filename, row.shown_folder)
    leaf = filename.rpartition(b"/")[2]
    name = names.kept_name(row.shown_name, leaf, row.id, lambda label: entries.taken(db, parent, label))
    _write(db, ino, namespace, row, created, updated, source_id)
    bodies.insert(db, ino, body)
    kind = int(Kind.ARTIFACT)
    entries.insert(db, Entry(ino, parent, name, kind, namespace.id, body.size, updated, updated, body.digest))


def delete(db: apsw.Connection, ino: int) -> None:
    """Removes an artifact, and the folders that it leaves empty."""
    entry = entries.get(db, ino)
    db.execute("DELETE FROM artifacts WHERE ino = ?", (ino,))
    entries.remove(db, ino)
    if entry is not None:
        prefixes.prune(db, entry.parent)


def _folders(db: apsw.Connection, namespace: Namespace, filename: bytes, shown: str | None = None) -> int:
    """The folder of the filename's prefix; `shown` has the names that an export recorded."""
    return prefixes.ensure(db, namespace, "artifacts", filename.split(b"/")[:-1], shown.split("/") if shown else None)


def _write(
    db: apsw.Connection,
    ino: int,
    namespace: Namespace,
    row: ArtifactRow,
    created: int,
    updated: int,
    source_id: int | None,
) -> None:
    db.execute(
        f"INSERT OR REPLACE INTO artifacts ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            ino,
            namespace.id,
            row.id,
            names.to_bytes(row.filename),
            row.media_type,
            json.dumps(row.metadata),
            created,
            updated,
            source_id,
        ),
    )
