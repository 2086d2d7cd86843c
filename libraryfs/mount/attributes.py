"""What `stat` shows of an entry."""

import os
import stat
from typing import Final

from pyfuse3 import EntryAttributes

from libraryfs.nodes import Entry

CACHED: Final = 86_400.0
"""Seconds that the kernel keeps names and attributes; the refresh takes them back when they change."""

PAGE: Final = 4096
BLOCKS_A_PAGE: Final = PAGE // 512  # st_blocks counts blocks of 512 bytes; like most disks we give whole pages


class Attributes:
    """Makes EntryAttributes: owner and timeouts are the same for the whole mount."""

    def __init__(self, *, cached: float = CACHED) -> None:
        self._uid = os.geteuid()
        self._gid = os.getegid()
        self._cached = cached

    def of(self, entry: Entry, into: EntryAttributes | None = None) -> EntryAttributes:
        """The attributes of an entry; with `into`, written over that object (a listing makes one for all)."""
        attributes = into or EntryAttributes()
        attributes.st_ino = entry.ino
        if entry.is_folder:
            attributes.st_mode = stat.S_IFDIR | 0o555
            attributes.st_size = PAGE
            attributes.st_blocks = BLOCKS_A_PAGE
        else:
            attributes.st_mode = stat.S_IFREG | 0o444
            attributes.st_size = entry.size
            attributes.st_blocks = -(-entry.size // PAGE) * BLOCKS_A_PAGE
        attributes.st_nlink = 1
        attributes.st_uid = self._uid
        attributes.st_gid = self._gid
        attributes.st_mtime_ns = attributes.st_atime_ns = entry.mtime_ns
        attributes.st_ctime_ns = entry.ctime_ns
        attributes.entry_timeout = attributes.attr_timeout = self._cached
        return attributes

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
