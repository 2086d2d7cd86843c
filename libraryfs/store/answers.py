"""A cache of texts by key, in a file of its own beside nothing: losing it costs time only."""

import os
from pathlib import Path
from typing import Final, Self

import apsw

KEPT_BYTES: Final = 256 * 1024 * 1024
KEPT_FRACTION: Final = 0.75  # of KEPT_BYTES that is left when it was too much
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS answers (key BLOB PRIMARY KEY, used INTEGER NOT NULL, value TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS answers_used ON answers (used);
"""


class Answers:
    """Key → text. Not to be shared between threads. What goes wrong with the file is a miss, never an error."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db

    @classmethod
    def open(cls, path: Path) -> Self | None:
        """The cache in this file, made when it is new and readable by its owner only; None where that cannot be."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
            db = apsw.Connection(str(path))
            db.set_busy_timeout(1000)
            db.pragma("journal_mode", "wal")
            db.pragma("synchronous", "off")  # a cache: losing the last of it in a crash is harmless
            db.execute(_SCHEMA)
        except (OSError, apsw.Error):
            return None
        return cls(db)

    def get(self, key: bytes) -> str | None:
        """The text of this key."""
        try:
            row = self._db.execute("SELECT value FROM answers WHERE key = ?", (key,)).fetchone()
            if row is None:
                return None
            self._db.execute(
                "UPDATE answers SET used = unixepoch() WHERE key = ? AND used < unixepoch() - 3600", (key,)
            )
        except apsw.Error:
            return None
        return str(row[0])

    def put(self, key: bytes, value: str) -> None:
        """Keeps a text; the ones not used for longest make room."""
        try:
            self._db.execute("INSERT OR REPLACE INTO answers VALUES (?, unixepoch(), ?)", (key, value))
        except apsw.Error:
            return

    def close(self) -> None:
        """Ends the connection; trims the file's content to its size."""
        try:
            size = self._db.execute("SELECT coalesce(sum(length(value)), 0) FROM answers").get
            if size > KEPT_BYTES:
                self._trim(size)
        except apsw.Error:
            pass
        finally:
            self._db.close()

    def _trim(self, size: int) -> None:
        gone: list[tuple[bytes]] = []
        for key, length in self._db.execute("SELECT key, length(value) FROM answers ORDER BY used"):
            if size <= KEPT_BYTES * KEPT_FRACTION:
                break
            gone.append((key,))
            size -= length
        self._db.executemany("DELETE FROM answers WHERE key = ?", gone)
