"""Whether every row is one, and every file's content is what was stored: all of a snapshot's bytes are read."""

from collections.abc import Callable, Iterator
from typing import Any, Final

import apsw

from libraryfs.errors import SnapshotDamaged
from libraryfs.nodes import Entry, Kind
from libraryfs.store import artifacts, bodies, entries, memory, workspace
from libraryfs.store.problem import Problem

_ROWS: Final[dict[str, Callable[[apsw.Connection, int], Any]]] = {
    "memories": memory.get,
    "items": workspace.get,
    "artifacts": artifacts.get,
}
_TABLE_OF: Final = {
    Kind.FOLDER: "items",
    Kind.MEMORY: "memories",
    Kind.ITEM: "items",
    Kind.ARTIFACT: "artifacts",
}

Report = Callable[[int, int], None]
"""How many of how many files were looked at."""


def rows(db: apsw.Connection) -> Iterator[Problem]:
    """Entries and rows with values that they cannot have; rows without an entry, entries without a row."""
    for ino in _numbers(db, "SELECT ino FROM entries"):
        try:
            entry = entries.get(db, ino)
        except SnapshotDamaged:
            yield _problem(db, ino, "its place in the tree is damaged, so that it cannot be shown")
            continue
        table = _TABLE_OF.get(Kind(entry.kind)) if entry else None
        if table and db.execute(f"SELECT 1 FROM {table} WHERE ino = ?", (ino,)).fetchone() is None:
            yield _problem(db, ino, f"entry {ino}: its row in {table} is missing")
    for table, get in _ROWS.items():
        for ino in _numbers(db, f"SELECT ino FROM {table}"):
            try:
                get(db, ino)
            except (SnapshotDamaged, UnicodeDecodeError):
                yield _problem(db, ino, f"its row in {table} is damaged")
            if not entries.exists(db, ino):
                yield _problem(db, ino, f"its row in {table} has no place in the tree")


def contents(db: apsw.Connection, report: Report) -> Iterator[Problem]:
    """Files whose content is missing, short, or of another digest."""
    files = _numbers(db, f"SELECT ino FROM entries WHERE kind >= {int(Kind.MEMORY)} ORDER BY ino")
    for number, ino in enumerate(files, 1):
        try:
            entry = entries.get(db, ino)
        except SnapshotDamaged:
            continue  # `rows` says so
        if entry is not None and not _is_whole(db, entry):
            yield Problem(
                "damaged_content", *_name(db, ino), f"{_shown(db, ino)}: its content is damaged or missing{_CURE}"
            )
        report(number, len(files))


_CURE: Final = "; restore a backup, or import again into a new file"


def _is_whole(db: apsw.Connection, entry: Entry) -> bool:
    try:
        bodies.check_whole(db, entry)
    except (SnapshotDamaged, apsw.CorruptError):
        return False
    return True


def _numbers(db: apsw.Connection, statement: str) -> list[int]:
    return [int(ino) for (ino,) in db.execute(statement).fetchall() if isinstance(ino, int)]


def _problem(db: apsw.Connection, ino: int, what: str) -> Problem:
    return Problem("damaged_row", *_name(db, ino), f"{_shown(db, ino)}: {what}{_CURE}")


def _shown(db: apsw.Connection, ino: int) -> str:
    _, row_id = _name(db, ino)
    return f"row {row_id!r}" if row_id else f"entry {ino}"


def _name(db: apsw.Connection, ino: int) -> tuple[str, str]:
    """(namespace, id), as far as they can be read."""
    for table in _ROWS:
        row = db.execute(
            "SELECT CAST(coalesce(n.kind, '') AS BLOB), CAST(coalesce(n.name, '') AS BLOB), CAST(r.id AS BLOB)"
            f" FROM {table} r LEFT JOIN namespaces n ON n.id = r.namespace_id WHERE r.ino = ?",
            (ino,),
        ).fetchone()
        if row:
            kind, name, row_id = ((value or b"").decode("utf-8", "replace") for value in row)
            return (f"/{kind}/{name}" if kind else "", row_id)
    return "", ""


def guarded(part: Iterator[Problem], is_damaged: bool) -> Iterator[Problem]:
    """The findings of one part. Where rows are damaged, as `rows` has said, a part ends at the first that it meets."""
    try:
        yield from part
    except (SnapshotDamaged, ValueError, TypeError, AttributeError):
        if not is_damaged:
            raise
