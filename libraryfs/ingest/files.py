"""Walking a source folder: what is a file to import, and what is left out and why.

Nothing outside of the folder is read: a symlink is followed to a regular file inside it and nowhere else, so no
walk can loop. Devices, FIFOs and sockets are never opened.
"""

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from libraryfs.errors import InvalidSource
from libraryfs.paths import shown

LINK_TO_FOLDER: Final = "symlink to a folder"
LINK_OUTSIDE: Final = "symlink that leads nowhere or out of the source"
NOT_A_FILE: Final = "device, FIFO or socket"
HIDDEN: Final = "hidden"
NOT_MARKDOWN: Final = "not Markdown"
NOT_IN_A_SECTION: Final = "not in a section"
EMPTY_FOLDER: Final = "empty folder, which artifacts cannot hold"
OWN_SNAPSHOT: Final = "the snapshot itself"

Skip = Callable[[str, str], None]


class Found(NamedTuple):
    """A folder or a regular file below the source. `path` is relative to it, with `/`."""

    path: str
    is_folder: bool
    size: int
    mtime_ns: int


def walk(root: Path, below: str, skip: Skip, *, hidden: bool) -> Iterator[Found]:
    """Everything below `root/below`, each folder before what it holds, by name. `skip(path, reason)` hears the rest.

    `hidden` says whether names that start with a dot are wanted. Raises InvalidSource for what cannot be read.
    """
    pending = [below]
    while pending:
        subfolders = []
        for found in walk_one(root, pending.pop(), skip, hidden=hidden):
            if found.is_folder:
                subfolders.append(found.path)
            yield found
        pending.extend(reversed(subfolders))


def walk_one(root: Path, folder: str, skip: Skip, *, hidden: bool) -> Iterator[Found]:
    """What the folder `root/folder` holds, by name, and nothing below that. Otherwise as `walk`."""
    real_root = os.path.realpath(root)
    for entry in _entries(root, folder):
        path = f"{folder}/{entry.name}" if folder else entry.name
        if entry.name.startswith(".") and not hidden:
            skip(path, HIDDEN)
        elif found := _look(entry, path, real_root, skip):
            yield found


def _entries(root: Path, folder: str) -> list["os.DirEntry[str]"]:
    try:
        with os.scandir(root / folder) as listing:
            return sorted(listing, key=lambda entry: os.fsencode(entry.name))
    except OSError as error:
        raise unreadable(root / folder, error) from None


def _look(entry: "os.DirEntry[str]", path: str, real_root: str, skip: Skip) -> Found | None:
    try:
        if entry.is_symlink():
            return _follow(entry, path, real_root, skip)
        status = entry.stat(follow_symlinks=False)
    except OSError as error:
        raise unreadable(entry.path, error) from None
    if stat.S_ISDIR(status.st_mode) or stat.S_ISREG(status.st_mode):
        return Found(path, stat.S_ISDIR(status.st_mode), status.st_size, status.st_mtime_ns)
    skip(path, NOT_A_FILE)
    return None


def _follow(entry: "os.DirEntry[str]", path: str, real_root: str, skip: Skip) -> Found | None:
    try:
        target = os.path.realpath(entry.path, strict=True)
        status = os.stat(target)
    except OSError:  # dangling, or a loop of links
        skip(path, LINK_OUTSIDE)
        return None
    if os.path.commonpath((target, real_root)) != real_root:
        skip(path, LINK_OUTSIDE)
    elif stat.S_ISDIR(status.st_mode):
        skip(path, LINK_TO_FOLDER)
    elif not stat.S_ISREG(status.st_mode):
        skip(path, NOT_A_FILE)
    else:
        return Found(path, False, status.st_size, status.st_mtime_ns)
    return None


def open_file(root: Path, path: str) -> int:
    """A descriptor of a regular file below `root`. Never waits (a FIFO put there since the walk is refused)."""
    try:
        fd = os.open(f"{root}/{path}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise unreadable(root / path, error) from None
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise InvalidSource(f"{show(root / path)}: is no longer a regular file; import again. Nothing was imported")
    return fd


def unreadable(path: Path | str, error: OSError) -> InvalidSource:
    """The error for a file or folder of the source that cannot be read."""
    return InvalidSource(f"{show(path)}: cannot be read: {error.strerror}. Nothing was imported")


def show(path: Path | str) -> str:
    """A path for a message: one line, whatever its bytes are."""
    text = str(path)
    if text.isprintable():  # so it holds no surrogates either
        return text
    text = os.fsencode(path).decode("utf-8", "backslashreplace")
    return shown(text)
