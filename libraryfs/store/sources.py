"""Where rows came from, so that importing a source again can remove what it no longer has."""

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


def uri(db: apsw.Connection, source_id: int) -> str:
    """The name of a source; empty when it is not known."""
    row = db.execute("SELECT uri FROM sources WHERE id = ?", (source_id,)).fetchone()
    return str(row[0]) if row else ""
