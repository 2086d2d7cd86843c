"""One request and its answer, and the thread that makes the one from the other."""

import logging
import math
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Final

import trio

from libraryfs.errors import Cancelled, LibraryError
from libraryfs.library.resolver import Library
from libraryfs.mount.control import Call, ControlKind, Stop, render_error
from libraryfs.mount.processes import Process
from libraryfs.mount.view import View

log = logging.getLogger(__name__)

KEPT_IDLE: Final = 8
"""Answers to nothing asked that are kept until the next commit: look-up, stat and open of one file ask for the same."""

PATIENT_SHARE: Final = 0.5
"""Of its time, the part that a request waits for its turn."""

MAX_UNFINISHED: Final = 512
"""Requests that may be worked on or queued, of all control files together; one more gets EAGAIN."""


class OutdatedAnswer(Cancelled):
    """An answer that was made, in part, from what has been hidden since."""

    def __init__(self) -> None:
        super().__init__("what you may see has changed while this was answered; ask again")


class Exchange:
    """A request, from its first byte to the end of its answer. Used on the loop only.

    `ino` is a number of its own when the answer is read by path: the kernel has one size and one set of pages an inode,
    so that two sessions, or two questions, on one inode would cut and mix each other's answers.
    """

    def __init__(self, kind: ControlKind, folder: int, ino: int | None = None) -> None:
        self.kind = kind
        self.folder = folder
        self.ino = ino
        self.request = bytearray()
        self.data = bytearray()
        self.emptied = 0  # bytes that the answer had when it was emptied
        self.withdrawn = False
        self.started = False
        self.done = False
        self.since = 0.0  # when the request was complete, seconds, monotonic
        self.finished_at = 0.0  # the same clock
        self.changed_ns = time.time_ns()
        self.finished = trio.Event()
        self.grown = trio.Event()
        self.stop = Stop()
        self.touched: set[int] = set()
        """The ids of the namespaces of which something may be in the answer."""
        self._hidden: set[int] = set()  # those that were hidden since this began
        self.waiters = 0
        self.listers: set[Process] = set()
        """Processes that listed the folder since the request came: they walk, they did not come for the answer."""

    @property
    def size(self) -> int:
        """What `stat` shows. Before the answer is there that is 1: tar does not even open an empty file."""
        return len(self.data) if self.done else 1

    def add(self, part: bytes) -> None:
        """More of the answer."""
        if not self.done:
            self.data += part
            self.grown.set()
            self.grown = trio.Event()

    def finish(self) -> None:
        """The answer is whole."""
        self.done = True
        self.finished_at = time.monotonic()
        self.changed_ns = time.time_ns()
        self.finished.set()
        self.grown.set()

    def touch(self, namespaces: frozenset[int]) -> None:
        """Something of these namespaces may be in the answer from here on. From any thread."""
        self.touched |= namespaces
        if self._hidden & namespaces:
            raise OutdatedAnswer

    def touches(self, hidden: frozenset[int] | None) -> bool:
        """Whether the answer may hold something of these namespaces, None: of any."""
        return hidden is None or not self.touched.isdisjoint(hidden)

    def outdate(self, hidden: frozenset[int] | None) -> None:
        """What the answer was made from may be hidden now: it is emptied, and one that is being made is ended.

        One that has not begun sees what is left, and so does one that has not come to these namespaces.
        """
        if hidden is not None:
            self._hidden |= hidden
        if not self.touches(hidden):
            return
        if self.done:
            self._empty()
        elif self.started:
            self.withdraw()

    def _empty(self) -> None:
        self.emptied = max(self.emptied, len(self.data))
        self.data.clear()

    def is_cut(self, cursor: int) -> bool:
        """Whether a reader who has come so far has a part of an emptied answer, and will never have the rest."""
        return 0 < cursor < self.emptied or (0 < cursor == self.emptied and self.withdrawn)

    def withdraw(self) -> None:
        """Ends an answer that holds something which is hidden now, and says so."""
        if not self.done:
            self._empty()
            self.withdrawn = True
            self._end(OutdatedAnswer())
        self.stop.stop()

    def cancel(self) -> None:
        """Nobody wants the answer: ends the work, and says so to whoever still reads."""
        if not self.done:
            self._end(Cancelled("the reader went away before the answer was there; ask again"))
        self.stop.stop()

    def _end(self, error: LibraryError) -> None:
        self.add(render_error(error, bytes(self.request)))
        self.finish()


class Runner:
    """Answers exchanges in threads, at most `kind.parallel` of a kind at once."""

    def __init__(self, view: View, elsewhere: Callable[..., Awaitable[None]]) -> None:
        """`elsewhere(exchange, streaming=…)` answers those of kinds that are answered in another process."""
        self._view = view
        self._elsewhere = elsewhere
        self._nursery: trio.Nursery | None = None
        self._limiters: dict[int, trio.CapacityLimiter] = {}
        self._idle_answers: OrderedDict[tuple[int, int], tuple[object, bytes]] = OrderedDict()
        self.unfinished = 0

    def work_in(self, nursery: trio.Nursery) -> None:
        """Where the answering tasks live; before the first request."""
        self._nursery = nursery

    def start(self, exchange: Exchange, *, streaming: bool) -> None:
        """Begins to answer."""
        assert self._nursery is not None, "requests come when the mount serves"
        exchange.started = True
        exchange.since = time.monotonic()
        self.unfinished += 1
        self._nursery.start_soon(self._run, exchange, streaming)

    async def _run(self, exchange: Exchange, streaming: bool) -> None:
        kind = exchange.kind
        limiter = self._limiters.setdefault(kind.number, trio.CapacityLimiter(kind.parallel))
        try:
            if kind.elsewhere:
                async with _turn(limiter, exchange):
                    await self._elsewhere(exchange, streaming=streaming)
                return
            # abandoned when the mount ends: a thread at work must not hold up the exit
            await trio.to_thread.run_sync(
                partial(self._produce, exchange, streaming), abandon_on_cancel=True, limiter=limiter
            )
        except LibraryError as error:
            exchange.add(render_error(error, bytes(exchange.request)))
        except Exception:
            log.exception("%s: a bug", kind.name.decode())
            fault = LibraryError("a bug in libraryfs; the mount's log has it")
            exchange.add(render_error(fault, bytes(exchange.request)))
        finally:
            self.unfinished -= 1
            exchange.finish()

    def _produce(self, exchange: Exchange, streaming: bool) -> None:
        if exchange.stop.stopped():
            return
        with self._view.borrow() as library, telling(library, exchange.touch):
            folder = library.entry(exchange.folder)

            def emit(part: bytes) -> None:
                trio.from_thread.run_sync(exchange.add, part)

            call = Call(bytes(exchange.request), folder, library, streaming, exchange.stop, emit, exchange.since)
            for part in exchange.kind.answer(call):
                if exchange.stop.stopped():
                    return
                emit(part)

    async def idle(self, kind: ControlKind, folder: int) -> bytes:
        """What the file holds with nothing asked."""
        if kind.silent:
            return b""
        moment = (self._view.identity, self._view.library.snapshot.data_version())
        known = self._idle_answers.pop((kind.number, folder), None)
        if known is None or known[0] != moment:
            known = moment, await trio.to_thread.run_sync(partial(self._idle, kind, folder), abandon_on_cancel=True)
        self._idle_answers[kind.number, folder] = known
        if len(self._idle_answers) > KEPT_IDLE:
            self._idle_answers.popitem(last=False)
        return known[1]

    def _idle(self, kind: ControlKind, folder: int) -> bytes:
        with self._view.borrow() as library:
            entry = library.entry(folder)
            try:
                return kind.idle(Call(b"", entry, library))
            except LibraryError as error:
                return render_error(error, b"")


@asynccontextmanager
async def _turn(limiter: trio.CapacityLimiter, exchange: Exchange) -> AsyncIterator[None]:
    """A turn at `kind.parallel`, or none: who has little time goes to work without, for what can be had at once."""
    patience = exchange.kind.patience(bytes(exchange.request))
    waited = time.monotonic() - exchange.since
    left = math.inf if patience is None else max(0.0, patience * PATIENT_SHARE - waited)
    has_turn = False
    try:
        with trio.move_on_after(left):
            await limiter.acquire_on_behalf_of(exchange)
            has_turn = True
        yield
    finally:
        if has_turn:
            limiter.release_on_behalf_of(exchange)


@contextmanager
def telling(library: Library, touched: Callable[[frozenset[int]], None]) -> Iterator[None]:
    """Has the Library tell what it touches, as long as the block lasts."""
    library.tell_touched(touched)
    try:
        yield
    finally:
        library.tell_touched(None)  # it goes back to others
