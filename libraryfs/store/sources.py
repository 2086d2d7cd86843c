"""Where rows came from, so that importing a source again can remove what it no longer has."""

from collections.abc import Iterator

import apsw

ROW_TABLES = ("memories", "items", "artifacts")


def ensure(db: apsw.Connection, uri: str, namespace: str, now_ns: int) -> int:
    """The id of a source; `namespace` is "" where its rows name their own."""
    db.execute(
        "INSERT INTO sources (uri, namespace, imported_ns) VALUES (?, ?, ?)"
        " ON CONFLICT (uri, namespace) DO UPDATE SET imported_ns = excluded.imported_ns",
        (uri, namespace, now_ns),
    )
    number: int = db.execute("SELECT id FROM sources WHERE uri = ? AND namespace = ?", (uri, namespace)).get
    return number


def find(db: apsw.Connection, uri: str, namespace: str) -> int | None:
    """The id of a source that was imported before."""
    row = db.execute("SELECT id FROM sources WHERE uri = ? AND namespace = ?", (uri, namespace)).fetchone()
    return int(row[0]) if row else None


def rows_of(db: apsw.Connection, source_id: int) -> Iterator[tuple[str, int, int]]:
    """(table, namespace id, ino) of every row that came from the source."""
    for table in ROW_TABLES:
        for namespace_id, ino in db.execute(f"SELECT namespace_id, ino FROM {table} WHERE source_id = ?", (source_id,)):
            yield table, namespace_id, ino


def uri(db: apsw.Connection, source_id: int) -> str:
    """The name of a source; empty when it is not known."""
    row = db.execute("SELECT uri FROM sources WHERE id = ?", (source_id,)).fetchone()
    return str(row[0]) if row else ""
