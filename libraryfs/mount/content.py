"""The bytes of content files: what an open, a READ and a close of one do."""

from functools import partial
from typing import Final

import trio

from libraryfs.library.resolver import Library
from libraryfs.mount.readahead import ReadAhead
from libraryfs.mount.view import View
from libraryfs.nodes import Entry

IN_PLACE: Final = 128 * 1024
"""READs up to this many bytes are answered on the loop: a thread would cost more than the read."""


class Content:
    """Reads content through the mount's view, and keeps the read-ahead informed."""

    def __init__(self, view: View, ahead: ReadAhead) -> None:
        self._view = view
        self._ahead = ahead
        self._doubtful = False

    def doubt(self) -> None:
        """Rows have gone. The kernel has been told, but a process that stands in a folder keeps names alive: from now
        on an open looks whether the row is there."""
        self._doubtful = True

    def opened(self, ino: int) -> None:
        """A content file is opened; pairs with `released`. Raises PathNotFound when the row is gone or hidden."""
        if self._doubtful:
            self._view.library.entry(ino)
        self._ahead.opened(ino, self._view.library)

    def released(self, ino: int) -> None:
        """The open has ended."""
        self._ahead.released(ino)

    async def read(self, ino: int, offset: int, size: int) -> bytes:
        """Up to `size` bytes from `offset`. Raises PathNotFound when the row is gone or hidden."""
        library = self._view.library
        entry = library.entry(ino)
        if size > IN_PLACE and entry.size > IN_PLACE:
            return await trio.to_thread.run_sync(
                partial(self._read_elsewhere, entry, offset, size), abandon_on_cancel=True
            )
        data = library.read(entry, offset, size)
        if offset == 0:
            self._ahead.read(entry, library)
        return data

    def _read_elsewhere(self, entry: Entry, offset: int, size: int) -> bytes:
        with self._view.borrow() as library:
            return library.read(entry, offset, size)


def attributes_of(library: Library, entry: Entry) -> dict[bytes, bytes]:
    """The extended attributes of an entry, by full name; as many as the kernel takes in one list."""
    listed: dict[bytes, bytes] = {}
    room = MAX_LIST
    for name, value in library.attributes(entry).items():
        raw = PREFIX + name.encode("utf-8", "surrogateescape")
        room -= len(raw) + 1
        if room < 0:
            break
        listed[raw] = value
    return listed


PREFIX: Final = b"user.library."
MAX_LIST: Final = 65_536
