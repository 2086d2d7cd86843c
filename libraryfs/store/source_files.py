"""What the files of a source were at its last import: how an import knows what it need not read."""

import json
import os
from collections.abc import Iterable
from typing import Any

import apsw

from libraryfs.store import names
from libraryfs.store.sources import ROW_TABLES

State = tuple[str, int, int, int, int, str]
"""Path in the source, size, mtime_ns, the source's inode number, the row's number (0: none), a note."""


def load(db: apsw.Connection, source_id: int) -> list[State]:
    """All files of a source."""
    decode = os.fsdecode
    return [
        (decode(path), size, mtime_ns, inode, ino, note)
        for path, size, mtime_ns, inode, ino, note in db.execute(
            "SELECT path, size, mtime_ns, inode, ino, note FROM source_files WHERE source_id = ?", (source_id,)
        )
    ]


def rules(db: apsw.Connection, source_id: int) -> bytes:
    """The digest of the rules by which the files were chosen; empty when there is none."""
    row = db.execute("SELECT rules FROM source_options WHERE source_id = ?", (source_id,)).fetchone()
    return bytes(row[0]) if row and row[0] is not None else b""


def memories(db: apsw.Connection, source_id: int) -> list[tuple[str, str, str, dict[str, Any]]]:
    """(path, id, title, metadata) of the memories that the files of a source became."""
    return [
        (os.fsdecode(path), row_id, names.from_bytes(title), json.loads(metadata))
        for path, row_id, title, metadata in db.execute(
            "SELECT f.path, m.id, m.title, m.metadata FROM source_files f JOIN memories m ON m.ino = f.ino"
            " WHERE f.source_id = ?",
            (source_id,),
        )
    ]


def rows_of(db: apsw.Connection, source_id: int, paths: Iterable[str]) -> list[tuple[int, int, int]]:
    """(index in ROW_TABLES, namespace id, ino) of the rows of these files that are still the source's own."""
    found = []
    for path in paths:
        row = db.execute(
            "SELECT ino FROM source_files WHERE source_id = ? AND path = ?", (source_id, os.fsencode(path))
        ).fetchone()
        ino = row[0] if row else 0
        for number, table in enumerate(ROW_TABLES if ino else ()):
            owned = db.execute(
                f"SELECT namespace_id FROM {table} WHERE ino = ? AND source_id = ?", (ino, source_id)
            ).fetchone()
            if owned:
                found.append((number, owned[0], ino))
    return found


def replace(db: apsw.Connection, source_id: int, states: Iterable[State], gone: Iterable[str]) -> None:
    """Writes what files are now, and forgets the paths that are gone."""
    db.executemany(
        "DELETE FROM source_files WHERE source_id = ? AND path = ?", ((source_id, os.fsencode(path)) for path in gone)
    )
    db.executemany(
        "INSERT OR REPLACE INTO source_files (source_id, path, size, mtime_ns, inode, ino, note)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        ((source_id, os.fsencode(path), *rest) for path, *rest in states),
    )


def clear(db: apsw.Connection, source_id: int, keep: Iterable[int]) -> None:
    """Forgets all files of a source but those of the rows `keep`."""
    db.execute(
        "DELETE FROM source_files WHERE source_id = ? AND ino NOT IN (SELECT value FROM json_each(?))",
        (source_id, json.dumps(list(keep))),
    )


def disown(db: apsw.Connection, ino: int, source_id: int) -> None:
    """A row is another source's now: the files of all but `source_id` that stood for it are unknown."""
    db.execute("DELETE FROM source_files WHERE ino = ? AND source_id <> ?", (ino, source_id))
