"""One entry as it is told to a reader: what `stat` and a listing say, by path."""

from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel, ConfigDict

from libraryfs.library.resolver import Library
from libraryfs.library.tree import kind_name, listing
from libraryfs.nodes import Entry
from libraryfs.store import names


class Listed(BaseModel):
    """A folder or a file. `kind` is folder, memory, item or artifact, `size` in bytes, `inode` as in a mount."""

    model_config = ConfigDict(frozen=True)

    name: str
    path: str
    kind: str
    size: int
    inode: int
    modified: datetime


class Stat(Listed):
    """With its attributes, those that a mount shows as `user.library.*`: id, type, namespace, title, confidence, …"""

    attributes: dict[str, str]


def stat(library: Library, path: str) -> Stat:
    """What the path is. Raises InvalidPath, PathNotFound."""
    entry = library.resolve(path)
    found = {name: value.decode("utf-8", "surrogateescape") for name, value in library.attributes(entry).items()}
    return Stat(**_fields(entry, library.path_of(entry)), attributes=found)


def list_folder(library: Library, path: str) -> list[Listed]:
    """All entries of a folder, sections in their order, others by name; of a file, the file itself, as `ls` does.

    Raises InvalidPath, PathNotFound.
    """
    entry = library.resolve(path)
    above = library.path_of(entry)
    if not entry.is_folder:
        return [Listed(**_fields(entry, above))]
    prefix = above.rstrip("/")
    return [Listed(**_fields(child, f"{prefix}/{names.from_bytes(child.name)}")) for child in listing(library, entry)]


def _fields(entry: Entry, path: str) -> dict[str, Any]:
    modified = datetime.fromtimestamp(entry.mtime_ns / 1e9, UTC)
    return {
        "name": names.from_bytes(entry.name),
        "path": path,
        "kind": kind_name(entry),
        "size": entry.size,
        "inode": entry.ino,
        "modified": modified,
    }
