"""The bytes of content files: what an open, a READ and a close of one do."""

import time
from collections import OrderedDict
from typing import Final

import trio

from libraryfs.library.resolver import Library
from libraryfs.mount.readahead import ReadAhead
from libraryfs.mount.view import View
from libraryfs.mount.warming import Warming
from libraryfs.nodes import Entry
from libraryfs.store.bodies import CHUNK, check_empty

KNOWN_WHOLE: Final = 1024
"""Large files of which is remembered that their parts can be trusted."""


class Content:
    """Reads content through the mount's view, and keeps the read-ahead informed."""

    def __init__(self, view: View, ahead: ReadAhead, warming: Warming) -> None:
        self._view = view
        self._ahead = ahead
        self._warming = warming
        self._buffer = bytearray()
        self._known_whole: OrderedDict[tuple[int, bytes | None], None] = OrderedDict()

    def opened(self, ino: int) -> None:
        """A content file is opened; pairs with `released`. Raises PathNotFound when the row is gone or hidden."""
        library = self._view.library
        # so that a name which the kernel remembers too long is looked up again (ESTALE), not opened
        check_empty(library.entry(ino))
        self._ahead.opened(ino, library)

    def released(self, ino: int) -> None:
        """The open has ended."""
        self._ahead.released(ino)

    async def read(self, ino: int, offset: int, size: int) -> bytes | memoryview:
        """Up to `size` bytes from `offset`; valid until the next call.

        Raises PathNotFound where the row is gone or hidden, SnapshotDamaged where the bytes are not what was stored. On
        the loop, and not in a thread: the kernel asks for a MiB at most, which takes less than handing it over.
        """
        library = self._view.library
        entry = library.entry(ino)
        if entry.size > CHUNK:
            if (ino, entry.digest) not in self._known_whole:
                await self._check_whole(entry)
                library = self._view.library
                entry = library.entry(ino)
            size = min(size, max(entry.size - offset, 0))
            buffer = self._buffer if len(self._buffer) == size else bytearray(size)
            self._buffer = buffer  # READs of one file are of one size: it is seldom made anew
            began = time.perf_counter()
            count = library.read_into(entry, offset, buffer)
            self._warming.after_read(entry, offset, count, time.perf_counter() - began)
            return memoryview(buffer)[:count]
        data = library.read(entry, offset, size)
        if offset == 0:
            self._ahead.read(entry, library)
        return data

    async def _check_whole(self, entry: Entry) -> None:
        """A large file that an earlier version stored, without sums of its chunks, is read to its end before the first
        byte of it is given."""
        if not self._view.library.has_sums(entry):
            await trio.to_thread.run_sync(self._read_whole, entry.ino, abandon_on_cancel=True)
        self._known_whole[entry.ino, entry.digest] = None
        if len(self._known_whole) > KNOWN_WHOLE:
            self._known_whole.popitem(last=False)

    def _read_whole(self, ino: int) -> None:
        with self._view.borrow() as library:
            library.check_content(library.entry(ino))


class ExtendedAttributes:
    """The extended attributes of entries. Those of one are kept until the next, since a tool asks for one by one."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._key: tuple[Library, int, int] | None = None
        self._listed: dict[bytes, bytes] = {}

    def of(self, ino: int) -> dict[bytes, bytes]:
        """By full name; as many as the kernel takes in one list. Raises PathNotFound when the row is gone or hidden."""
        library = self._view.library
        entry = library.entry(ino)
        key = (library, library.snapshot.data_version(), ino)
        if key != self._key:
            self._key, self._listed = key, _listed(library, entry)
        return self._listed


def _listed(library: Library, entry: Entry) -> dict[bytes, bytes]:
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
