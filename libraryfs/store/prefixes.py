"""Folders that no row has: made for the files in them, and gone with the last one.

Artifacts have them from their filenames, and a memory section has them where a source kept its memories in sub-folders.
"""

import apsw

from libraryfs.nodes import Entry, Kind
from libraryfs.store import entries, inodes, names
from libraryfs.store.namespaces import Namespace


def ensure(
    db: apsw.Connection, namespace: Namespace, section: str, parts: list[bytes], shown: list[str] | None = None
) -> int:
    """The inode number of the folder `parts` below a section, made where it is missing.

    `shown` has the names that an export recorded, one for each part. Raises ValueError when a number is taken.
    """
    parent = inodes.section_ino(namespace.path, section)
    given: list[str | None] = [*shown] if shown and len(shown) == len(parts) else [None] * len(parts)
    for depth, part in enumerate(parts, 1):
        prefix = b"/".join(parts[:depth])
        ino = _ino(namespace, section, prefix)
        found = entries.get(db, ino)
        if found is None:
            folder = parent
            taken = lambda label, folder=folder: entries.taken(db, folder, label)  # noqa: E731
            name = names.kept_name(given[depth - 1], part, "prefix", taken)
            entries.insert(db, Entry(ino, parent, name, int(Kind.PREFIX), namespace.id, 0, 0, 0, None))
        elif found.kind != Kind.PREFIX:
            raise ValueError(f"the folder {names.from_bytes(prefix)!r} gives an inode number that is taken")
        parent = ino
    return parent


def _ino(namespace: Namespace, section: str, prefix: bytes) -> int:
    if section == "artifacts":
        return inodes.row_ino(namespace.path, "prefix", prefix)
    return inodes.row_ino(namespace.path, "section-prefix", section.encode() + b"/" + prefix)


def prune(db: apsw.Connection, ino: int) -> None:
    """Removes the folder `ino` when it is one of these and empty, and then those above it."""
    folder = entries.get(db, ino)
    while folder is not None and folder.kind == Kind.PREFIX and not entries.children(db, folder.ino, 0, 1):
        entries.remove(db, folder.ino)
        folder = entries.get(db, folder.parent)


def section_above(db: apsw.Connection, parent: int) -> int:
    """The number of the section that a file with this `parent` is in: the parent itself, or what its folders are in."""
    folder = entries.get(db, parent)
    while folder is not None and folder.kind == Kind.PREFIX:
        parent = folder.parent
        folder = entries.get(db, parent)
    return parent


def has_any(db: apsw.Connection, section: int) -> bool:
    """Whether a section has such folders."""
    row = db.execute("SELECT 1 FROM entries WHERE parent = ? AND kind = ? LIMIT 1", (section, int(Kind.PREFIX)))
    return row.fetchone() is not None
