"""The snapshot file: opening, creating, bringing up to date, transactions, and what SQLite's errors mean to a user."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib import resources
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import apsw

from libraryfs import errors
from libraryfs.settings import settings
from libraryfs.store import bodies, keywords
from libraryfs.store.texts import TextState

APPLICATION_ID: Final = 0x4C696266  # "Libf"
SCHEMA_VERSION: Final = 3
KEPT_CHANGES: Final = 200_000
"""Rows of the change log that a writer leaves; a mount that is further behind re-reads everything."""

MOST_STEPS: Final = 1_000_000_000
"""Steps of SQLite's machine (about half a minute of them) that one statement of a reader may take, unless set."""
STEPS_AT_ONCE: Final = 1_000_000
NEEDED: Final = frozenset(
    {"entries", "bodies", "chunks", "memories", "items", "artifacts", "edges", "namespaces", "grants", "changes"}
)
"""Tables that every version has, and that reading does not work without."""
VIRTUAL: Final = frozenset({"words", "words_found", "vectors"})
"""Tables that an extension of SQLite keeps."""

_OF_THE_FILE: Final = (
    apsw.CorruptError,
    apsw.NotADBError,
    apsw.IOError,
    apsw.FullError,
    apsw.BusyError,
    apsw.InterruptError,
)


class Snapshot:
    """One connection to a snapshot file. Not to be shared between threads: open one a thread.

    A reader (`write=False`) sees each committed change from its next statement on, and cannot change anything.
    """

    def __init__(self, path: Path, db: apsw.Connection, write: bool) -> None:
        self.path = path
        self.db = db
        self.write = write
        self.most_steps = MOST_STEPS
        self.steps = 0
        """Of the statement that runs; see `limit_steps`."""

    @classmethod
    def open(cls, path: Path, *, write: bool = False, create: bool = False) -> Self:
        """A connection to `path`. With `create` a missing or empty file becomes a new snapshot (implies `write`).

        Raises SnapshotMissing, SnapshotDamaged, SnapshotTooNew, SnapshotBusy, SnapshotReadOnly.
        """
        write = write or create
        _check_file(path, create)
        try:
            db = _connect(path, write, create)
        except apsw.Error as error:
            raise translate(error, path) from error
        try:
            snapshot = cls(path, db, write)
            snapshot._prepare(create)
        except apsw.Error as error:
            db.close()
            raise translate(error, path) from error
        except BaseException:
            db.close()
            raise
        return snapshot

    def _prepare(self, create: bool) -> None:
        db = self.db
        if self.write:
            db.pragma("journal_mode", "wal")
            db.pragma("synchronous", "normal")
            db.pragma("foreign_keys", True)
        application, version = db.pragma("application_id"), db.pragma("user_version")
        empty = application == 0 and version == 0 and not db.execute("SELECT 1 FROM sqlite_schema LIMIT 1").get
        if not (empty and create):
            if application != APPLICATION_ID:
                raise errors.SnapshotDamaged(f"{self.path}: not a libraryfs snapshot; make one with 'libraryfs import'")
            if version > SCHEMA_VERSION:
                raise errors.SnapshotTooNew(
                    f"{self.path}: made by a newer libraryfs (schema {version}, this one reads up to {SCHEMA_VERSION});"
                    " upgrade libraryfs"
                )
            _check_tables(db, self.path)
        if self.write:
            _load_vectors(db)
            if empty or not _is_current(db):
                with self.transaction():
                    if not empty and version < 2:
                        _drop_words(db)
                    db.execute(_schema())
                    bodies.add_sums(db)
                    db.pragma("application_id", APPLICATION_ID)
                    db.pragma("user_version", SCHEMA_VERSION)
                    if not empty and version < 3:
                        _look_for_text(db)
                        keywords.index_queued(db)
                    db.execute(
                        "INSERT INTO settings (key, value) VALUES ('schema', ?)"
                        " ON CONFLICT DO UPDATE SET value = excluded.value",
                        (_schema_digest(),),
                    )
        else:
            self._be_careful()
            db.pragma("query_only", True)
        db.pragma("cache_size", -16_000)

    def _be_careful(self) -> None:
        """A reader of a file that is damaged, or that somebody made to harm, ends in an error and not in a wait."""
        db = self.db
        db.pragma("trusted_schema", False)
        db.pragma("cell_size_check", True)
        if not db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'chunk_sums'").get:  # of an earlier version
            db.execute("CREATE TEMP TABLE chunk_sums (pk INTEGER PRIMARY KEY, sum BLOB)")

        def is_over() -> bool:
            self.steps += STEPS_AT_ONCE
            return self.steps > self.most_steps

        db.exec_trace = self._begin_statement
        db.set_progress_handler(is_over, STEPS_AT_ONCE)

    def _begin_statement(self, *_: object) -> bool:
        self.steps = 0
        return True

    def limit_steps(self, most: int) -> None:
        """Limits a reader's steps to so many from one setting of `steps` to 0 to the next, which is the caller's to do.

        To have it done at each statement, as it is until then, costs a tenth of a small one.
        """
        self.db.exec_trace = None
        self.most_steps = most

    @contextmanager
    def transaction(self) -> Iterator[apsw.Connection]:
        """Everything in the block is committed at once, or nothing is. Raises SnapshotBusy, SnapshotFull, …"""
        try:
            self.db.execute("BEGIN IMMEDIATE")
        except apsw.Error as error:
            raise translate(error, self.path) from error
        try:
            yield self.db
            self.db.execute("DELETE FROM changes WHERE seq <= (SELECT max(seq) FROM changes) - ?", (KEPT_CHANGES,))
            self.db.execute("COMMIT")
        except BaseException as error:
            if self.db.in_transaction:  # SQLite has rolled back by itself on some errors, a full disk among them
                self.db.execute("ROLLBACK")
            if isinstance(error, apsw.Error):
                raise translate(error, self.path) from error
            raise

    @contextmanager
    def reading(self) -> Iterator[apsw.Connection]:
        """Everything in the block is read from one moment's state, whatever others write. Raises SnapshotDamaged, …"""
        try:
            with self.db:
                yield self.db
        except apsw.Error as error:
            raise translate(error, self.path) from error

    def enable_vectors(self) -> None:
        """Makes sqlite-vec's functions and tables usable on this connection; a writer has them from the start."""
        if not self.write:
            _load_vectors(self.db)

    def data_version(self) -> int:
        """A number that moves when another connection has committed."""
        value: int = self.db.pragma("data_version")
        return value

    def close(self) -> None:
        """Ends the connection. A writer leaves its journal empty: SQLite would play one that is left beside the file
        into whatever file takes that path next (`mv new.db library.db` under a live mount)."""
        if self.write:
            with suppress(apsw.Error):  # busy: a reader is at it right now, and its close will do
                self.db.set_busy_timeout(0)
                self.db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        self.db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Closes. What SQLite found wrong with the file in the block is raised as a SnapshotError."""
        self.close()
        if isinstance(value, _OF_THE_FILE):
            raise translate(value, self.path) from value


def _check_file(path: Path, create: bool) -> None:
    try:
        os.path.abspath(path).encode()
    except UnicodeEncodeError:
        raise errors.SnapshotError(f"{path}: SQLite opens names in UTF-8 only; rename the file or its folder") from None
    if create:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise errors.SnapshotReadOnly(f"{path.parent}: cannot make this folder: {error.strerror}") from None
    elif not path.exists():
        raise errors.SnapshotMissing(
            f"{path}: no such snapshot; make one with 'libraryfs import', or name one with --snapshot"
        )
    if path.is_dir():
        raise errors.SnapshotDamaged(f"{path}: is a folder; --snapshot names a file")
    if not create and path.stat().st_size == 0:
        raise errors.SnapshotDamaged(f"{path}: empty file, not a libraryfs snapshot; fill it with 'libraryfs import'")


def _connect(path: Path, write: bool, create: bool) -> apsw.Connection:
    timeout = settings().busy_timeout_ms
    name = os.path.abspath(path)  # a relative ":memory:" would be no file
    if write:
        if create:
            _create(name)
        flags = apsw.SQLITE_OPEN_READWRITE | (apsw.SQLITE_OPEN_CREATE if create else 0)
        db = apsw.Connection(name, flags=flags)
        db.set_busy_timeout(timeout)
        return db
    db = apsw.Connection(name, flags=apsw.SQLITE_OPEN_READONLY)
    db.set_busy_timeout(timeout)
    try:
        db.pragma("application_id")
    except (apsw.CantOpenError, apsw.ReadOnlyError):
        # In WAL mode a reader needs the -shm file; on a read-only disk it cannot be made, and nobody can write either.
        db.close()
        uri = path.resolve().as_uri() + "?immutable=1"
        db = apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    return db


def _check_tables(db: apsw.Connection, path: Path) -> None:
    """Raises SnapshotDamaged where a table is missing, or something else has its name: a view may have no end."""
    missing = set(NEEDED)
    rows = db.execute("SELECT name, type, rootpage FROM sqlite_schema WHERE type IN ('view', 'table')")
    for name, kind, page in rows:
        missing.discard(name)
        is_plain = kind == "table" and (page or name in VIRTUAL)
        if not is_plain and name in _tables() | VIRTUAL:  # the schema is read only then: it takes a file's reading
            raise errors.SnapshotDamaged(f"{path}: {name} is not a table, so this is not a libraryfs snapshot")
    if missing:
        raise errors.SnapshotDamaged(
            f"{path}: damaged: no table {min(missing)}; restore it from a backup, or import again into a new file"
        )


@cache
def _tables() -> frozenset[str]:
    return frozenset(re.findall(r"CREATE TABLE IF NOT EXISTS (\w+)", _schema()))


def _create(name: str) -> None:
    """Makes a missing file for its owner alone. SQLite gives its journal the same rights."""
    with suppress(OSError):  # it is there, or SQLite will say why it cannot be made
        os.close(os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def _load_vectors(db: apsw.Connection) -> None:
    import sqlite_vec  # here: a mount that never asks does not need it

    db.enable_load_extension(True)
    db.load_extension(sqlite_vec.loadable_path())
    db.enable_load_extension(False)


def _drop_words(db: apsw.Connection) -> None:
    """Takes away the keyword index of schema 1, which tore words apart at their vowel signs; all files are queued."""
    db.execute(
        "DROP TABLE IF EXISTS words_found; DROP TABLE IF EXISTS words; DROP TABLE IF EXISTS indexed;"
        "DELETE FROM indexed_totals"
    )


def _look_for_text(db: apsw.Connection) -> None:
    """Queues the files that schema 2 took for no text: those in another coding than UTF-8 are text now."""
    state = int(TextState.BINARY)
    db.execute("DELETE FROM indexed WHERE ino IN (SELECT ino FROM embedded WHERE state = ?)", (state,))
    db.execute("DELETE FROM embedded WHERE state = ?", (state,))


def _schema() -> str:
    return resources.files("libraryfs.store").joinpath("schema.sql").read_text(encoding="utf-8")


def _schema_digest() -> str:
    from hashlib import blake2b

    return blake2b(_schema().encode(), digest_size=8).hexdigest()


def _is_current(db: apsw.Connection) -> bool:
    if not db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'settings'").get:
        return False
    return bool(db.execute("SELECT value FROM settings WHERE key = 'schema'").get == _schema_digest())


def meaning(error: Exception) -> errors.SnapshotError | None:
    """What an exception of a reader means, where it is the snapshot's fault and not the program's."""
    if isinstance(error, _OF_THE_FILE):
        return translate(error, Path("the snapshot"))
    if isinstance(error, apsw.SQLError | UnicodeDecodeError):  # a table or a column that is gone, text that is none
        return errors.SnapshotDamaged(f"the snapshot cannot be read: {error}")
    return None


def translate(error: apsw.Error, path: Path) -> errors.SnapshotError:
    """What an error of SQLite means to the user of the snapshot at `path`."""
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        seconds = settings().busy_timeout_ms / 1000
        return errors.SnapshotBusy(
            f"{path}: another process has been writing for over {seconds:g} s; try again when it ends"
        )
    if isinstance(error, apsw.FullError):
        return errors.SnapshotFull(f"{path}: the disk is full; nothing was changed. Make room and try again")
    if isinstance(error, apsw.ReadOnlyError):
        return errors.SnapshotReadOnly(
            f"{path}: cannot be written; check the permissions of the file and of its folder"
        )
    if isinstance(error, apsw.CantOpenError | apsw.PermissionsError):
        return errors.SnapshotError(f"{path}: cannot be opened; check the permissions of the file and of its folder")
    if isinstance(error, apsw.NotADBError):
        return errors.SnapshotDamaged(f"{path}: not a SQLite file, so not a libraryfs snapshot")
    if isinstance(error, apsw.CorruptError):
        return errors.SnapshotDamaged(
            f"{path}: damaged or truncated; restore it from a backup, or import again into a new file"
        )
    if isinstance(error, apsw.InterruptError):
        return errors.SnapshotDamaged(f"{path}: reading does not come to an end: damaged, or made to be so")
    if isinstance(error, apsw.IOError):
        return errors.SnapshotError(f"{path}: disk I/O error: {error}; check that it is there and has room")
    return errors.SnapshotError(f"{path}: {error}")
