"""What `stat` shows of an entry."""

import os
import stat
from typing import Final

from pyfuse3 import EntryAttributes

from libraryfs.nodes import Entry, Kind

CACHED: Final = 86_400.0
"""Seconds that the kernel keeps names and attributes; the refresh takes them back when they change."""

PAGE: Final = 4096
BLOCKS_A_PAGE: Final = PAGE // 512  # st_blocks counts blocks of 512 bytes; like most disks we give whole pages
FOLDER_MODE: Final = stat.S_IFDIR | 0o555
FILE_MODE: Final = stat.S_IFREG | 0o444


class Attributes:
    """Makes EntryAttributes: owner and timeouts are the same for the whole mount."""

    def __init__(self, *, cached: float = CACHED) -> None:
        self._uid = os.geteuid()
        self._gid = os.getegid()
        self._cached = cached

    def of(self, entry: Entry) -> EntryAttributes:
        """The attributes of an entry."""
        attributes = self.blank()
        self.fill(attributes, entry.ino, entry.kind, entry.size, entry.mtime_ns, entry.ctime_ns)
        return attributes

    def blank(self) -> EntryAttributes:
        """What all entries have in common. A listing makes one and fills it anew for each entry."""
        attributes = EntryAttributes()
        attributes.st_nlink = 1
        attributes.st_uid = self._uid
        attributes.st_gid = self._gid
        attributes.entry_timeout = attributes.attr_timeout = self._cached
        return attributes

    @staticmethod
    def fill(attributes: EntryAttributes, ino: int, kind: int, size: int, mtime_ns: int, ctime_ns: int) -> None:
        """Writes one entry's own attributes into `attributes`."""
        attributes.st_ino = ino
        if kind <= Kind.PREFIX:  # a folder
            attributes.st_mode = FOLDER_MODE
            attributes.st_size = PAGE
            attributes.st_blocks = BLOCKS_A_PAGE
        else:
            attributes.st_mode = FILE_MODE
            attributes.st_size = size
            attributes.st_blocks = -(-size // PAGE) * BLOCKS_A_PAGE
        attributes.st_mtime_ns = attributes.st_atime_ns = mtime_ns
        attributes.st_ctime_ns = ctime_ns

    def absent(self) -> EntryAttributes:
        """The answer to a look-up of a name that is not there: the kernel remembers that too."""
        attributes = EntryAttributes()
        attributes.st_ino = 0
        attributes.entry_timeout = self._cached
        return attributes

    def control(self, ino: int, size: int, mtime_ns: int, *, shared: bool) -> EntryAttributes:
        """The attributes of a control file: never cached, and what is written into it is a request."""
        attributes = EntryAttributes()
        attributes.st_ino = ino
        attributes.st_mode = stat.S_IFREG | (0o666 if shared else 0o644)
        attributes.st_size = size
        attributes.st_blocks = -(-size // PAGE) * BLOCKS_A_PAGE
        attributes.st_nlink = 1
        attributes.st_uid = self._uid
        attributes.st_gid = self._gid
        attributes.st_mtime_ns = attributes.st_atime_ns = attributes.st_ctime_ns = mtime_ns
        attributes.entry_timeout = attributes.attr_timeout = 0
        return attributes
