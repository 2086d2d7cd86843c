"""What an import has read, before it writes: row numbers and edges in temporary tables, so that memory stays flat.

Rows are written in inode order: each table then grows at its end, which is faster, leaves no half-empty pages, and lays
out the bodies on disk in the order in which a listing, and so `grep -r`, reads them.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

import apsw

from libraryfs.store import inodes
from libraryfs.store.edges import Edge
from libraryfs.store.snapshot import Snapshot, translate
from libraryfs.store.sources import ROW_TABLES

STORES: Final = ("memory", "item", "artifact")
"""The stores' names in inode numbers, in the order of `sources.ROW_TABLES`."""

_BATCH: Final = 2000
_CACHE_KIB: Final = 128 * 1024
_TABLES: Final = """
CREATE TEMP TABLE read_rows (ino INTEGER, store INTEGER, namespace INTEGER, locator TEXT, place TEXT);
CREATE TEMP TABLE read_edges (source_ns INTEGER, source_id TEXT, kind TEXT, target_ns INTEGER, target_id TEXT);
CREATE TEMP TABLE staged (ino INTEGER PRIMARY KEY, store INTEGER, namespace INTEGER, locator TEXT, place TEXT);
CREATE TEMP TABLE staged_edges (source_ns, source_id, kind, target_ns, target_id,
    PRIMARY KEY (source_ns, source_id, kind, target_ns, target_id)) WITHOUT ROWID;
CREATE TEMP TABLE staged_namespaces (number INTEGER PRIMARY KEY, id INTEGER);
"""
_DROP: Final = "".join(
    f"DROP TABLE IF EXISTS temp.{name};"
    for name in ("read_rows", "read_edges", "staged", "staged_edges", "staged_namespaces")
)


class StagedRow(NamedTuple):
    """A row to write. `store` indexes STORES, `owner` is the source that the stored row came from, if any."""

    ino: int
    store: int
    namespace: str
    locator: str
    place: str
    owner: int | None


class Staging:
    """The rows and edges of one import. Used by `staging()`."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db
        self._rows: list[tuple[int, int, int, str, str]] = []
        self._edges: list[tuple[int, str, str, int, str]] = []
        self._numbers: dict[str, int] = {}
        self._namespaces: list[str] = []

    def add_row(self, store: int, namespace: str, row_id: str, locator: str, place: str) -> None:
        """Notes a row; `locator` finds it again, `place` names it in a message."""
        ino = inodes.row_ino(namespace, STORES[store], row_id)
        self._rows.append((ino, store, self._number(namespace), locator, place))
        if len(self._rows) >= _BATCH:
            self._flush()

    def add_edge(self, source: tuple[str, str], kind: str, target: tuple[str, str]) -> None:
        """Notes an edge between two (namespace, memory id)."""
        self._edges.append((self._number(source[0]), source[1], kind, self._number(target[0]), target[1]))
        if len(self._edges) >= _BATCH:
            self._flush()

    def finish(self) -> list[tuple[str, str]]:
        """Sorts what was noted. Returns the places of two rows that are one (same namespace, store and id).

        Of each such pair the first is kept.
        """
        self._flush()
        twice: list[tuple[str, str]] = [
            (first, place)
            for first, place in self._db.execute(
                "SELECT f.place, r.place FROM read_rows r JOIN (SELECT ino, min(rowid) AS first FROM read_rows"
                " GROUP BY ino HAVING count(*) > 1) d ON d.ino = r.ino JOIN read_rows f ON f.rowid = d.first"
                " WHERE r.rowid <> d.first ORDER BY r.rowid"
            )
        ]
        self._db.execute(
            "INSERT OR IGNORE INTO staged SELECT * FROM read_rows ORDER BY ino, rowid; DROP TABLE read_rows"
        )
        return twice

    def namespaces(self) -> list[str]:
        """The paths of all namespaces that rows and edges name, in the order of their first use."""
        return list(self._namespaces)

    def resolve(self, ids: dict[str, int]) -> None:
        """Gives the namespaces their ids in the snapshot, and with them the edges."""
        self._db.executemany(
            "INSERT INTO staged_namespaces VALUES (?, ?)",
            [(number, ids[path]) for number, path in enumerate(self._namespaces)],
        )
        self._db.execute(
            "INSERT OR IGNORE INTO staged_edges SELECT s.id, e.source_id, e.kind, t.id, e.target_id FROM read_edges e"
            " JOIN staged_namespaces s ON s.number = e.source_ns JOIN staged_namespaces t ON t.number = e.target_ns"
            " ORDER BY 1, 2, 3, 4, 5; DROP TABLE read_edges"
        )

    def count(self) -> int:
        """How many rows there are to write."""
        number: int = self._db.execute("SELECT count(*) FROM staged").get
        return number

    def rows(self) -> Iterator[StagedRow]:
        """All rows in inode order."""
        owners = ", ".join(f"(SELECT source_id FROM {table} t WHERE t.ino = s.ino)" for table in ROW_TABLES)
        for ino, store, number, locator, place, owner in self._db.execute(
            f"SELECT ino, store, namespace, locator, place, coalesce({owners}) FROM staged s ORDER BY ino"
        ):
            yield StagedRow(ino, store, self._namespaces[number], locator, place, owner)

    def gone(self, source_id: int) -> list[tuple[int, int, int]]:
        """(index in STORES, namespace id, ino) of the rows that came from the source and are not in it any more."""
        return [
            (store, namespace_id, ino)
            for store, table in enumerate(ROW_TABLES)
            for namespace_id, ino in self._db.execute(
                f"SELECT namespace_id, ino FROM {table} WHERE source_id = ? AND ino NOT IN (SELECT ino FROM staged)",
                (source_id,),
            )
        ]

    def edges_gone(self, source_id: int, *, is_whole: bool) -> list[Edge]:
        """The edges that the source declared and does not any more. Of a part of a source, only those that start at a
        memory which was read, or is gone."""
        here = (
            ""
            if is_whole
            else " AND NOT EXISTS (SELECT 1 FROM memories m WHERE m.namespace_id = edges.source_ns"
            " AND m.id = edges.source_id AND m.ino NOT IN (SELECT ino FROM staged))"
        )
        rows = self._db.execute(
            f"SELECT source_ns, source_id, kind, target_ns, target_id FROM edges WHERE origin_id = ?{here} EXCEPT"
            " SELECT source_ns, source_id, kind, target_ns, target_id FROM staged_edges",
            (source_id,),
        )
        return [Edge._make(row) for row in rows]

    def put_edges(self, source_id: int, *, is_whole: bool) -> int:
        """Stores the edges that are not there yet; returns how many the source declares."""
        self._db.execute(
            "INSERT OR IGNORE INTO edges (source_ns, source_id, kind, target_ns, target_id, origin_id)"
            " SELECT source_ns, source_id, kind, target_ns, target_id, ? FROM staged_edges",
            (source_id,),
        )
        count = "SELECT count(*) FROM staged_edges" if is_whole else "SELECT count(*) FROM edges WHERE origin_id = ?"
        number: int = self._db.execute(count, () if is_whole else (source_id,)).get
        return number

    def _number(self, namespace: str) -> int:
        number = self._numbers.get(namespace)
        if number is None:
            number = self._numbers[namespace] = len(self._namespaces)
            self._namespaces.append(namespace)
        return number

    def _flush(self) -> None:
        with self._db:
            self._db.executemany("INSERT INTO read_rows VALUES (?, ?, ?, ?, ?)", self._rows)
            self._db.executemany("INSERT INTO read_edges VALUES (?, ?, ?, ?, ?)", self._edges)
        self._rows.clear()
        self._edges.clear()


@contextmanager
def staging(snapshot: Snapshot) -> Iterator[Staging]:
    """An empty staging area on a writing connection, removed at the end; the page cache is larger meanwhile.

    It lies in SQLite's temporary files. Raises SnapshotFull when there is no room for them.
    """
    db = snapshot.db
    cache = db.pragma("cache_size")
    try:
        db.execute(_DROP + _TABLES)
        db.pragma("cache_size", -_CACHE_KIB)
        yield Staging(db)
    except apsw.Error as error:
        raise translate(error, snapshot.path) from error
    finally:
        db.execute(_DROP)
        db.pragma("cache_size", cache)
