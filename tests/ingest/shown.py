"""What a principal sees of a snapshot, as plain values to compare."""

from collections.abc import Mapping
from pathlib import Path

from libraryfs.library.resolver import Library
from libraryfs.nodes import Entry
from libraryfs.store.snapshot import Snapshot


def walk(library: Library, folder: Entry) -> list[Entry]:
    """Everything below a folder, each folder's entries in listing order."""
    found = []
    for entry in library.children(folder, 0, 1_000_000):
        found.append(entry)
        if entry.is_folder:
            found += walk(library, entry)
    return found


def files(snapshot: Snapshot, path: str = "/", principal: str = "alice") -> dict[str, bytes]:
    """Path → content of every file below `path`."""
    library = Library(snapshot, principal)
    below = walk(library, library.resolve(path))
    return {library.path_of(entry): library.content(entry) for entry in below if not entry.is_folder}


def folders(snapshot: Snapshot, path: str, principal: str = "alice") -> set[str]:
    """The paths of the folders below `path`."""
    library = Library(snapshot, principal)
    return {library.path_of(entry) for entry in walk(library, library.resolve(path)) if entry.is_folder}


def attributes(snapshot: Snapshot, path: str, principal: str = "alice") -> dict[str, str]:
    """The attributes of one file or folder, as text."""
    library = Library(snapshot, principal)
    return {name: value.decode() for name, value in library.attributes(library.resolve(path)).items()}


def inodes(snapshot: Snapshot, path: str = "/", principal: str = "alice") -> dict[str, int]:
    """Path → inode number of everything below `path`."""
    library = Library(snapshot, principal)
    return {library.path_of(entry): entry.ino for entry in walk(library, library.resolve(path))}


def lay(root: Path, contents: Mapping[str, str | bytes]) -> Path:
    """Write files below `root`; a name that ends in `/` is an empty folder."""
    for name, content in contents.items():
        path = root / name
        if name.endswith("/"):
            path.mkdir(parents=True, exist_ok=True)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return root
