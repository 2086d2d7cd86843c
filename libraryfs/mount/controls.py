"""Control files: look-up, open, write, read and close of them.

By path, a request belongs to the writer's session, and `open` for reading waits for its answer. On one handle (opened
for reading and writing) the exchange is private, and reads take the answer as it is made.

A request is complete at the writer's last close, or when its session opens the file to read, or when the same handle is
read. Not at a flush: the mount answers flush with ENOSYS, which saves every close of a content file a round trip, and
the kernel knows no such answer for some files only. It is the better moment, too: a shell's `( … ; … ) > .ask` closes
once for each command in it.
"""

import errno
import os
from contextlib import suppress
from functools import partial
from itertools import count
from typing import Final

import pyfuse3
import trio
from pyfuse3 import EntryAttributes, FileInfo, FUSEError, RequestContext

from libraryfs.mount.asked import Place
from libraryfs.mount.attributes import Attributes
from libraryfs.mount.control import MAX_REQUEST, ControlKind
from libraryfs.mount.exchange import MAX_UNFINISHED, Exchange, Runner
from libraryfs.mount.handles import Handle, Private, Reader, Writer
from libraryfs.mount.privates import PRIVATE_INO, Privates
from libraryfs.mount.processes import sid_of
from libraryfs.mount.sessions import FIRST_INO, Sessions
from libraryfs.mount.view import View
from libraryfs.mount.waiting import Waiting
from libraryfs.mount.walks import Walks
from libraryfs.nodes import Entry

CONTROL_BASE: Final = 1 << 60
"""Inode numbers and handles from here on are control files'."""

FOLDER_MASK: Final = CONTROL_BASE - 1


class Controls:
    """All control files of a mount."""

    def __init__(
        self,
        kinds: tuple[ControlKind, ...],
        view: View,
        runner: Runner,
        waiting: Waiting,
        attributes: Attributes,
        *,
        shared: bool,
    ) -> None:
        self.walks = Walks()
        self.sessions = Sessions(self.walks)
        self._privates = Privates()
        self._kinds = {kind.name: kind for kind in kinds}
        self._by_number = {kind.number: kind for kind in kinds}
        self._view = view
        self._runner = runner
        self._waiting = waiting
        self._attributes = attributes
        self._shared = shared  # whether other users may write too
        self._handles: dict[int, Handle] = {}
        self._numbers = count(CONTROL_BASE)

    def is_name(self, name: bytes, folder: Entry) -> bool:
        """Whether the name is that of a control file in this folder."""
        kind = self._kinds.get(name)
        return kind is not None and kind.answers_in(folder)

    def listed(self, folder: Entry) -> list[tuple[bytes, EntryAttributes]]:
        """The control files that the folder's listing shows, by inode."""
        return [
            (kind.name, self._show(_ino(kind, folder.ino), 0, folder.mtime_ns))
            for number, kind in sorted(self._by_number.items())
            if kind.listed_in(folder)
        ]

    async def lookup(self, folder: Entry, name: bytes, ctx: RequestContext) -> EntryAttributes:
        """A control file, as the caller's session sees it."""
        kind = self._kinds[name]
        own = self._privates.promised(ctx.pid, Place(kind.number, folder.ino))
        if own is not None:
            return self._show(own, 0, folder.mtime_ns)
        exchange = self.sessions.newest(Place(kind.number, folder.ino), ctx.uid, ctx.pid)
        if exchange is not None and exchange.ino is not None:
            return self._show(exchange.ino, exchange.size, exchange.changed_ns)
        idle = await self._runner.idle(kind, folder.ino)
        return self._show(_ino(kind, folder.ino), len(idle), folder.mtime_ns)

    async def getattr(self, ino: int, ctx: RequestContext) -> EntryAttributes:
        """The attributes of a control file."""
        if FIRST_INO <= ino < PRIVATE_INO:
            exchange = self._exchange(ino)
            return self._show(ino, exchange.size, exchange.changed_ns)
        kind, folder = self._place(ino)
        if ino >= PRIVATE_INO:
            return self._show(ino, 0, folder.mtime_ns)
        idle = await self._runner.idle(kind, folder.ino)
        return self._show(ino, len(idle), folder.mtime_ns)

    async def open(self, ino: int, flags: int, ctx: RequestContext) -> FileInfo:
        """A handle. To read by path, it comes when the session's answer is there."""
        kind, folder = self._place(ino)
        place = Place(kind.number, folder.ino)
        mode = flags & os.O_ACCMODE
        if mode == os.O_RDWR:
            if ino < PRIVATE_INO:
                promised = self._privates.promise(ctx.pid, place)
                raise FUSEError(errno.ESTALE if promised else errno.EAGAIN)
            self._privates.opened(ino, ctx.pid)
            return self._handle(Private(kind, folder.ino, sid_of(ctx.pid), ino))
        if mode == os.O_WRONLY:
            caller = self.sessions.caller(ctx.uid, ctx.pid)
            if flags & os.O_TRUNC:
                self.sessions.empty(kind, folder.ino, caller)
            return self._handle(Writer(ino, kind, folder.ino, caller))
        asked = self.sessions.newest(place, ctx.uid, ctx.pid, take=True)
        if asked is None:
            below = None if folder.namespace_id is None else {folder.namespace_id}
            return self._handle(Reader(ino, await self._runner.idle(kind, folder.ino), below))
        data = await self._answer(asked, ctx.pid)
        if asked.ino == ino and data:
            await self._store(ino, data)
        return self._handle(Reader(ino, data, asked.touched), keep_cache=asked.ino == ino)

    async def read(self, fh: int, offset: int, size: int) -> bytes:
        """Bytes of an answer."""
        handle = self._handles[fh]
        if isinstance(handle, Reader):
            return handle.data[offset : offset + size]
        if isinstance(handle, Private):
            return await self._read_on(handle, size)
        raise FUSEError(errno.EBADF)

    def write(self, fh: int, data: bytes) -> int:
        """Bytes of a request, in the order in which they come; offsets mean nothing here."""
        handle = self._handles[fh]
        if isinstance(handle, Reader):
            raise FUSEError(errno.EBADF)
        if isinstance(handle, Writer) and handle.refused:
            raise FUSEError(errno.EFBIG)
        exchange = handle.exchange
        if exchange is None or exchange.started:
            exchange = self._begin(handle)
        if len(exchange.request) + len(data) > MAX_REQUEST:
            self._refuse(handle, exchange)
            raise FUSEError(errno.EFBIG)
        exchange.request += data
        return len(data)

    def release(self, fh: int) -> None:
        """The last close: a writer's request is complete, a private exchange is over."""
        handle = self._handles.pop(fh)
        self.sessions.let_go(handle.ino)
        if isinstance(handle, Writer) and handle.exchange is not None:
            self._commit(handle.exchange)
        elif isinstance(handle, Private):
            self._privates.released(handle.ino)
            if handle.exchange is not None:
                handle.exchange.cancel()

    def outdate(self, hidden: frozenset[int] | None) -> None:
        """Empties what was answered so far, on open handles too, where it may hold something of these namespaces (None:
        of any). What is being answered from them ends, and says that it is to be asked again."""
        self.sessions.outdate(hidden)
        for handle in self._handles.values():
            if isinstance(handle, Reader):
                if hidden is None or handle.touched is None or handle.touched & hidden:
                    handle.data = b""
            elif isinstance(handle, Private):
                handle.idle = None
                if handle.exchange is not None:
                    handle.exchange.outdate(hidden)

    def _place(self, ino: int) -> tuple[ControlKind, Entry]:
        place: Place | None = Place(ino >> 60, ino & FOLDER_MASK)
        if ino >= PRIVATE_INO:
            place = self._privates.place(ino)
        elif ino >= FIRST_INO:
            exchange = self._exchange(ino)
            place = Place(exchange.kind.number, exchange.folder)
        if place is None or place.kind not in self._by_number:
            raise FUSEError(errno.ESTALE)
        return self._by_number[place.kind], self._view.library.entry(place.folder)

    def _exchange(self, ino: int) -> Exchange:
        exchange = self.sessions.by_ino(ino)
        if exchange is None:
            raise FUSEError(errno.ESTALE)
        self._view.library.entry(exchange.folder)  # raises when it was hidden since
        return exchange

    def _show(self, ino: int, size: int, changed_ns: int) -> EntryAttributes:
        return self._attributes.control(ino, size, changed_ns, shared=self._shared)

    def _handle(self, handle: Handle, *, keep_cache: bool = False) -> FileInfo:
        number = next(self._numbers)
        self._handles[number] = handle
        self.sessions.hold(handle.ino)
        return FileInfo(fh=number, direct_io=True, keep_cache=keep_cache)

    def _begin(self, handle: Writer | Private) -> Exchange:
        if self._runner.unfinished >= MAX_UNFINISHED:
            raise FUSEError(errno.EAGAIN)
        if isinstance(handle, Writer):
            handle.exchange = self.sessions.begin(handle.kind, handle.folder, handle.caller)
        else:
            if handle.exchange is not None:
                handle.exchange.cancel()
            handle.exchange, handle.cursor = Exchange(handle.kind, handle.folder), 0
        return handle.exchange

    def _refuse(self, handle: Writer | Private, exchange: Exchange) -> None:
        handle.exchange = None
        if isinstance(handle, Writer):
            handle.refused = True
            self.sessions.forget(exchange)

    def _commit(self, exchange: Exchange, *, streaming: bool = False) -> None:
        if not exchange.started and not exchange.done:
            self._runner.start(exchange, streaming=streaming)

    async def _answer(self, exchange: Exchange, pid: int) -> bytes:
        self._commit(exchange)
        if not exchange.done:
            exchange.waiters += 1
            interrupted = True
            try:
                await self._waiting.opener(exchange.finished, pid)
                interrupted = False
            except FUSEError as error:
                interrupted = error.errno == errno.EINTR
                raise
            finally:
                exchange.waiters -= 1
                if interrupted and not exchange.waiters:
                    exchange.cancel()
        return bytes(exchange.data)

    async def _store(self, ino: int, data: bytes) -> None:
        # Before the reply to open: busybox's cat and cp go by the size that the kernel has. In a thread, for another
        # reader of the same answer may hold the page while it waits for the loop.
        store = partial(pyfuse3.notify_store, ino, 0, data)
        with suppress(FileNotFoundError):  # the kernel has let go of the inode in the meantime
            await trio.to_thread.run_sync(store, abandon_on_cancel=True)

    async def _read_on(self, handle: Private, size: int) -> bytes:
        exchange = handle.exchange
        if exchange is None:
            if handle.idle is None:
                handle.idle = await self._runner.idle(handle.kind, handle.folder)
            part = handle.idle[handle.cursor : handle.cursor + size]
        else:
            self._commit(exchange, streaming=True)
            while len(exchange.data) <= handle.cursor and not exchange.done:
                await self._waiting.reader(exchange.grown, handle.sid, handle.kind.name)
            if exchange.is_cut(handle.cursor):  # an end of file would make a part look like the whole
                raise FUSEError(errno.ESTALE)
            part = bytes(exchange.data[handle.cursor : handle.cursor + size])
        handle.cursor += len(part)
        return part


def _ino(kind: ControlKind, folder: int) -> int:
    return kind.number << 60 | folder
