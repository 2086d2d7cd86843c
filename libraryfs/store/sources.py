"""Where rows came from, so that importing a source again can remove what it no longer has, and how each is read."""

import os
from pathlib import Path
from typing import Final, NamedTuple

import apsw

ROW_TABLES: Final = ("memories", "items", "artifacts")


class SourceRecord(NamedTuple):
    """A source that was imported. `namespace` is "" where its rows name their own, `options` JSON.

    `path` is None for one that an older libraryfs imported and whose path cannot be told from its name.
    """

    id: int
    uri: str
    namespace: str
    imported_ns: int
    path: Path | None
    options: str
    principal: str | None
    rows: int


def ensure(db: apsw.Connection, uri: str, namespace: str, now_ns: int) -> int:
    """The id of a source; `namespace` is "" where its rows name their own."""
    db.execute(
        "INSERT INTO sources (uri, namespace, imported_ns) VALUES (?, ?, ?)"
        " ON CONFLICT (uri, namespace) DO UPDATE SET imported_ns = excluded.imported_ns",
        (uri, namespace, now_ns),
    )
    number: int = db.execute("SELECT id FROM sources WHERE uri = ? AND namespace = ?", (uri, namespace)).get
    return number


def uri(db: apsw.Connection, source_id: int) -> str:
    """The name of a source; empty when it is not known."""
    row = db.execute("SELECT uri FROM sources WHERE id = ?", (source_id,)).fetchone()
    return str(row[0]) if row else ""


def find(db: apsw.Connection, uri: str, namespace: str) -> SourceRecord | None:
    """A source by its name and its place."""
    return next((one for one in every(db) if (one.uri, one.namespace) == (uri, namespace)), None)


def every(db: apsw.Connection) -> list[SourceRecord]:
    """All sources, by name."""
    optioned = db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'source_options'").get
    columns = "o.path, o.options, o.principal" if optioned else "NULL, NULL, NULL"
    join = "LEFT JOIN source_options o ON o.source_id = s.id" if optioned else ""
    counts = " + ".join(f"(SELECT count(*) FROM {table} WHERE source_id = s.id)" for table in ROW_TABLES)
    found = []
    for number, name, namespace, at_ns, path, options, principal, rows in db.execute(
        f"SELECT s.id, s.uri, s.namespace, s.imported_ns, {columns}, {counts} FROM sources s {join}"
        " ORDER BY s.uri, s.id"
    ):
        place = Path(os.fsdecode(path)) if path is not None else _path_in(name)
        found.append(SourceRecord(number, name, namespace, at_ns, place, options or "{}", principal, rows))
    return found


def _path_in(name: str) -> Path | None:
    """The path in the name of a source that has none recorded; names of odd bytes cannot be turned back."""
    text = name.partition(":")[2]
    return Path(text) if text and "\\" not in text else None


def of_row(db: apsw.Connection, ino: int) -> int | None:
    """The source that a row came from."""
    for table in ROW_TABLES:
        row = db.execute(f"SELECT source_id FROM {table} WHERE ino = ?", (ino,)).fetchone()
        if row:
            return None if row[0] is None else int(row[0])
    return None


def remember(
    db: apsw.Connection, source_id: int, path: Path, options: str, principal: str | None, rules: bytes | None
) -> None:
    """Keeps how a source is read, over what was kept. What is kept as it is costs no write."""
    kept = (os.fsencode(path), options, principal, rules)
    was = db.execute("SELECT path, options, principal, rules FROM source_options WHERE source_id = ?", (source_id,))
    if was.fetchone() != kept:
        db.execute(
            "INSERT OR REPLACE INTO source_options (source_id, path, options, principal, rules) VALUES (?, ?, ?, ?, ?)",
            (source_id, *kept),
        )


def forget(db: apsw.Connection, source_id: int) -> None:
    """Removes a source; its rows stay, as nobody's."""
    for table in ROW_TABLES:
        db.execute(f"UPDATE {table} SET source_id = NULL WHERE source_id = ?", (source_id,))
    db.execute("DELETE FROM source_files WHERE source_id = ?", (source_id,))
    db.execute("DELETE FROM source_options WHERE source_id = ?", (source_id,))
    db.execute("DELETE FROM sources WHERE id = ?", (source_id,))
