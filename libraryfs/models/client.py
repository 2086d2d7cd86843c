"""A model's worker process, seen from the process that asks: started on first use and after a crash, ended when idle.

Requests that a crash caught waiting go to the next worker by themselves; the one at work is lost and says so.
"""

from __future__ import annotations

import itertools
import queue
import select
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from libraryfs import errors
from libraryfs.errors import Cancelled, DeadlineExceeded, LibraryError, ModelBusy, ModelCrashed
from libraryfs.models import wire
from libraryfs.models.cancel import Cancel
from libraryfs.models.spawn import Spawned, spawn

ATTEMPTS = 2
"""Workers that a waiting request may meet before it is given up."""


@dataclass
class Ticket:
    """A request under way. `wait` for it in one thread."""

    worker: Worker
    number: int
    header: wire.Header
    body: bytes
    attempts: int = 1
    started: bool = False
    news: queue.SimpleQueue[Any] = field(default_factory=queue.SimpleQueue)

    def wait(self, cancel: Cancel, on_text: Callable[[str], None] | None = None) -> tuple[wire.Header, bytearray]:
        """The answer. Raises what the worker answered, ModelCrashed, Cancelled or DeadlineExceeded."""
        finished = False
        with cancel.watch(lambda: self.news.put(None)):
            try:
                while True:
                    cancel.check()
                    try:
                        new = self.news.get(timeout=cancel.remaining())
                    except queue.Empty:
                        raise DeadlineExceeded from None
                    match new:
                        case str():
                            if on_text is not None:
                                on_text(new)
                        case LibraryError():
                            finished = True
                            raise new
                        case (header, body):
                            finished = True
                            return header, body
            finally:
                if not finished:
                    self.worker.drop(self)


class Worker:
    """One model's worker: at most one process at a time. Thread-safe."""

    def __init__(self, order: wire.Header, *, idle_seconds: float, waiting: int) -> None:
        """`order` is the worker's first message (what to load); `waiting` requests at most, then ModelBusy."""
        self.order = order
        self._idle_seconds = idle_seconds
        self._waiting = waiting
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._life: _Life | None = None

    def submit(self, header: wire.Header, body: bytes = b"") -> Ticket:
        """Queue a request, first come, first served; starts the process if there is none."""
        ticket = Ticket(self, next(self._numbers), header, body)
        self._place(ticket)
        return ticket

    def call(
        self, header: wire.Header, body: bytes, cancel: Cancel, on_text: Callable[[str], None] | None = None
    ) -> tuple[wire.Header, bytearray]:
        """`submit` and `wait`."""
        cancel.check()
        return self.submit(header, body).wait(cancel, on_text)

    def describe(self, cancel: Cancel) -> wire.Header:
        """What the loaded model says of itself; loads it."""
        return self.call({"do": "describe"}, b"", cancel)[0]

    def drop(self, ticket: Ticket) -> None:
        """Nobody waits for it any more: the worker stops the work, or never starts it."""
        with self._lock:
            life = self._life
            if life is None or life.tickets.pop(ticket.number, None) is None:
                return
        life.send({"cancel": ticket.number})

    @property
    def pid(self) -> int | None:
        """The running worker's process id."""
        life = self._life
        return None if life is None else life.process.pid

    def close(self) -> None:
        """End the process; what waits for it fails. The next request starts another."""
        with self._lock:
            life, self._life = self._life, None
        if life is not None:
            life.closed = True
            life.end()

    def _place(self, ticket: Ticket) -> None:
        with self._lock:
            if self._life is None:
                self._life = _Life(self, spawn(self.order["kind"], self.order["threads"]))
            life = self._life
            if len(life.tickets) >= self._waiting:
                raise ModelBusy(f"{self._waiting} requests wait for the {self.name} already; try again later")
            life.tickets[ticket.number] = ticket
            life.used = time.monotonic()
        life.send({"id": ticket.number, **ticket.header}, ticket.body)

    @property
    def name(self) -> str:
        """What messages call it."""
        return str(self.order["kind"])

    def retire(self, life: _Life) -> bool:
        """Whether a life that was idle for long enough was taken out of use."""
        with self._lock:
            if life.tickets or time.monotonic() - life.used < self._idle_seconds:
                return False
            if self._life is life:
                self._life = None
            return True

    def idle_left(self, life: _Life) -> float:
        """Seconds until the life may retire."""
        return max(0.0, self._idle_seconds - (time.monotonic() - life.used))

    def finish(self, life: _Life, number: int) -> Ticket | None:
        """The ticket of an answer that came; None when it was dropped."""
        with self._lock:
            life.used = time.monotonic()
            return life.tickets.pop(number, None)

    def ended(self, life: _Life, reason: Callable[[], LibraryError], *, again: bool) -> None:
        """A life is over: what it had not begun goes to the next one when `again`, the rest gets the reason."""
        with self._lock:
            if self._life is life:
                self._life = None
            tickets, life.tickets = list(life.tickets.values()), {}
        for ticket in tickets:
            if again and not ticket.started and ticket.attempts < ATTEMPTS:
                ticket.attempts += 1
                try:
                    self._place(ticket)
                except LibraryError as error:
                    ticket.news.put(error)
            else:
                ticket.news.put(reason())


class _Life:
    """One process of a worker, from start to end, with the thread that reads its answers."""

    def __init__(self, worker: Worker, process: Spawned) -> None:
        self.process = process
        self.tickets: dict[int, Ticket] = {}  # under the worker's lock
        self.used = time.monotonic()
        self.closed = False
        self._worker = worker
        self._sending = threading.Lock()
        self._load_error: wire.Header | None = None
        self.send(worker.order)
        threading.Thread(target=self._read, name=f"{worker.name}-answers", daemon=True).start()

    def send(self, header: wire.Header, body: bytes = b"") -> None:
        """Send; a process that is gone or stuck is left to the reading thread to notice."""
        with self._sending:
            try:
                wire.send(self.process.connection, header, body)
            except OSError:
                self.end()

    def end(self) -> None:
        """Close the connection: the process ends by itself, at once, and the reading thread with it."""
        try:
            self.process.connection.shutdown(socket.SHUT_RDWR)
        except OSError:  # it is closed already
            return

    def _read(self) -> None:
        poll = select.poll()
        poll.register(self.process.connection, select.POLLIN)
        try:
            while True:
                if not poll.poll(self._worker.idle_left(self) * 1000 + 1):
                    if self._worker.retire(self):
                        break
                    continue
                self._take(*wire.receive(self.process.connection))
        except (wire.Closed, OSError):
            pass
        self.process.reap()
        self._worker.ended(self, self._reason, again=self._load_error is None and not self.closed)

    def _take(self, header: wire.Header, body: bytearray) -> None:
        if "failed" in header and "id" not in header:
            self._load_error = header["failed"]
            return
        number = header["id"]
        if "started" in header or "piece" in header:
            ticket = self.tickets.get(number)
            if ticket is not None:
                ticket.started = True
                if "piece" in header:
                    ticket.news.put(header["piece"])
            return
        ticket = self._worker.finish(self, number)
        if ticket is not None:
            ticket.news.put(self._error(header["failed"]) if "failed" in header else (header["done"], body))

    def _error(self, sent: wire.Header) -> LibraryError:
        kind = getattr(errors, sent["error"])
        error: LibraryError = kind(f"{self._worker.name}: {sent['message']}")
        return error

    def _reason(self) -> LibraryError:
        if self.closed:
            return Cancelled(f"the {self._worker.name} was closed")
        if self._load_error is not None:
            return self._error(self._load_error)
        return ModelCrashed(
            f"the {self._worker.name}'s process {self.process.how_it_ended()}; this answer is lost, the next use "
            "starts it again"
        )
