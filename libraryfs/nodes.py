"""What a path resolves to: one row of the snapshot's `entries` table, whatever store it comes from."""

from enum import IntEnum
from typing import Final, NamedTuple

ROOT_INO: Final = 1
RINGS_INO: Final = 2
AGENTS_INO: Final = 3


class Kind(IntEnum):
    """What an entry is. The numbers are stored."""

    ROOT = 0
    NAMESPACE = 1
    SECTION = 2
    FOLDER = 3  # a workspace folder: a row
    PREFIX = 4  # an artifact folder: made from filenames, no row
    MEMORY = 5
    ITEM = 6
    ARTIFACT = 7


class Entry(NamedTuple):
    """A folder or a file. `size` in bytes, times in nanoseconds since the epoch, `digest` of the content (files only).

    A NamedTuple and not a pydantic model: the mount makes one for every look-up.
    """

    ino: int
    parent: int
    name: bytes
    kind: int
    namespace_id: int | None
    size: int
    mtime_ns: int
    ctime_ns: int
    digest: bytes | None

    @property
    def is_folder(self) -> bool:
        """True for everything that can be listed."""
        return self.kind <= Kind.PREFIX
