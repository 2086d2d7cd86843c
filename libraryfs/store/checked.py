"""Rows of a snapshot, checked as they are read: SQLite keeps any value in any column, a damaged page holds anything.

Nothing that goes on to the kernel, to a model or to a terminal is of another type or length than the code after it
expects: the one bad row is an error, and says so, and the others are read.
"""

import json
from typing import Any, Final, NoReturn

from libraryfs.errors import SnapshotDamaged
from libraryfs.nodes import Entry, Kind
from libraryfs.paths import MAX_SEGMENT_BYTES
from libraryfs.store.inodes import LARGEST_INO

DIGEST_BYTES: Final = 16
_LAST_KIND: Final = int(Kind.ARTIFACT)
_LAST_FIXED: Final = 3  # the inode numbers of /, /ring and /agent, which are nobody's


def damaged(what: str) -> NoReturn:
    """Raises SnapshotDamaged for a part of the snapshot."""
    raise SnapshotDamaged(f"{what}; see 'libraryfs check', restore a backup, or import again into a new file")


def entry(row: tuple[Any, ...]) -> Entry:
    """The entry of a row of `entries`. Raises SnapshotDamaged."""
    ino, parent, name, kind, namespace_id, size, mtime_ns, ctime_ns, digest = row
    if (
        is_listable((ino, name, kind, size, mtime_ns, ctime_ns))
        and type(parent) is int
        and (ino <= _LAST_FIXED if namespace_id is None else type(namespace_id) is int)
        and (kind < Kind.MEMORY or (type(digest) is bytes and len(digest) == DIGEST_BYTES))
    ):
        return Entry._make(row)
    damaged(f"entry {ino!r} is damaged")


def is_listable(row: tuple[Any, ...]) -> bool:
    """Whether (ino, name, kind, size, mtime_ns, ctime_ns) can be what a folder shows."""
    ino, name, kind, size, mtime_ns, ctime_ns = row
    return (
        type(ino) is int
        and 0 < ino <= LARGEST_INO
        and type(kind) is int
        and 0 <= kind <= _LAST_KIND
        and (kind == Kind.ROOT) == (ino <= _LAST_FIXED)
        and type(name) is bytes
        and 0 < len(name) <= MAX_SEGMENT_BYTES
        and b"\0" not in name
        and (b"/" not in name or ino == 1)
        and name not in (b".", b"..")
        and type(size) is int
        and size >= 0
        and type(mtime_ns) is int
        and type(ctime_ns) is int
    )


def columns(table: str, row: tuple[Any, ...], types: tuple[type | tuple[type, ...], ...]) -> tuple[Any, ...]:
    """The row, whose values are of these types. Raises SnapshotDamaged."""
    if len(row) != len(types) or not all(map(isinstance, row, types)):
        damaged(f"row {row[0]!r} of {table} is damaged")
    return row


def json_object(table: str, key: object, text: str) -> dict[str, Any]:
    """The JSON object in a column. Raises SnapshotDamaged."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        damaged(f"the metadata of row {key!r} of {table} is damaged")
    return value
