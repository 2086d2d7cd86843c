"""A model's worker process, seen from a process that asks: joined, or started, on first use and after a crash.

All processes of a user share it (home.py), and it ends by itself when it is idle. Requests that a crash caught waiting
go to the next worker by themselves; the one at work is lost and says so.
"""

from __future__ import annotations

import itertools
import queue
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from libraryfs import errors
from libraryfs.errors import Cancelled, DeadlineExceeded, LibraryError, ModelBusy, ModelCrashed
from libraryfs.models import home, wire
from libraryfs.models.cancel import Cancel
from libraryfs.models.spawn import Joined, join

ATTEMPTS = 2
"""Workers that a waiting request may see die before it is given up."""
JOINS = 8
"""Workers that it may meet in all: one that is about to end for idleness costs nothing."""


@dataclass
class Ticket:
    """A request under way. `wait` for it in one thread."""

    worker: Worker
    number: int
    header: wire.Header
    body: bytes
    attempts: int = 1
    joins: int = 1
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
    """One model's worker: at most one connection at a time. Thread-safe."""

    def __init__(self, order: wire.Header, *, idle_seconds: float, waiting: int) -> None:
        """`order` says what to load, and how; `waiting` requests of this process at most, then ModelBusy.

        The worker ends when nobody has asked it for `idle_seconds`, as the process that joined it last wants them.
        """
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
        """The process id of the worker that this process is connected to."""
        life = self._life
        return None if life is None else life.joined.pid

    def close(self) -> None:
        """Leave the worker to others, and to its end when it is idle; what waits for it here fails."""
        self._leave()

    def end(self) -> None:
        """End the worker, for everybody who shares it."""
        self._leave({"leave": True})

    def forgive(self) -> None:
        """Let a model that died be tried again at once."""
        home.place(self.order).forget_deaths()

    def _leave(self, last: wire.Header | None = None) -> None:
        with self._lock:
            life, self._life = self._life, None
        if life is not None:
            life.closed = True
            if last is not None:
                life.send(last)
            life.end()

    def _place(self, ticket: Ticket) -> None:
        with self._lock:
            if self._life is None:
                self._life = _Life(self, join(self.order), self._idle_seconds)
            life = self._life
            if len(life.tickets) >= self._waiting:
                raise ModelBusy(f"{self._waiting} requests wait for the {self.name} already; try again later")
            life.tickets[ticket.number] = ticket
        life.send({"id": ticket.number, **ticket.header}, ticket.body)

    @property
    def name(self) -> str:
        """What messages call it."""
        return str(self.order["kind"])

    def finish(self, life: _Life, number: int) -> Ticket | None:
        """The ticket of an answer that came; None when it was dropped."""
        with self._lock:
            return life.tickets.pop(number, None)

    def ended(self, life: _Life) -> None:
        """A life is over: what it had not begun goes to the next one where that may help, the rest gets the reason."""
        with self._lock:
            if self._life is life:
                self._life = None
            tickets, life.tickets = list(life.tickets.values()), {}
        if not tickets:
            return
        died, reason = life.died, life.reason()
        if died:
            life.joined.place.note_death(life.name, str(reason))
        for ticket in tickets:
            ticket.attempts += died
            ticket.joins += 1
            if life.again and not ticket.started and ticket.attempts <= ATTEMPTS and ticket.joins <= JOINS:
                try:
                    self._place(ticket)
                except LibraryError as error:
                    ticket.news.put(error)
            else:
                ticket.news.put(reason)


class _Life:
    """One connection to a worker, from start to end, with the thread that reads its answers."""

    def __init__(self, worker: Worker, joined: Joined, idle_seconds: float) -> None:
        self.joined = joined
        self.tickets: dict[int, Ticket] = {}  # under the worker's lock
        self.closed = False
        self._worker = worker
        self._sending = threading.Lock()
        self._load_error: wire.Header | None = None
        self._heard = False
        self._leaving = False
        self._works = False
        self.send({"order": worker.order, "idle_seconds": idle_seconds})
        threading.Thread(target=self._read, name=f"{worker.name}-answers", daemon=True).start()

    @property
    def name(self) -> str:
        """Which process it is, or was."""
        return str(self.joined.pid)

    @property
    def died(self) -> bool:
        """Whether the process failed, and did not just end for idleness while we came."""
        return not (self.closed or self._leaving) and (self._heard or self.joined.fresh)

    @property
    def again(self) -> bool:
        """Whether another process may do what this one did not begin."""
        return self._load_error is None and not self.closed

    def send(self, header: wire.Header, body: bytes = b"") -> None:
        """Send; a process that is gone or stuck is left to the reading thread to notice."""
        with self._sending:
            try:
                wire.send(self.joined.connection, header, body)
            except OSError:
                self.end()

    def end(self) -> None:
        """Close the connection, and so end the reading thread."""
        try:
            self.joined.connection.shutdown(socket.SHUT_RDWR)
        except OSError:  # it is closed already
            return

    def reason(self) -> LibraryError:
        """Why the connection is over."""
        if self.closed:
            return Cancelled(f"the {self._worker.name} was closed")
        if self._load_error is not None:
            return self._error(self._load_error)
        return ModelCrashed(
            f"the {self._worker.name}'s process {self.joined.how_it_ended()}; this answer is lost, the next use "
            "starts it again"
        )

    def _read(self) -> None:
        try:
            while True:
                self._take(*wire.receive(self.joined.connection))
        except (wire.Closed, OSError):
            self.joined.connection.close()
        self._worker.ended(self)

    def _take(self, header: wire.Header, body: bytearray) -> None:
        if "id" not in header:
            self._heard = True
            self.joined.pid = header.get("pid", self.joined.pid)
            self._leaving = "leaving" in header
            self._load_error = header.get("failed")
            return
        number = header["id"]
        if "started" in header or "piece" in header:
            ticket = self.tickets.get(number)
            if ticket is not None:
                ticket.started = True
                if "piece" in header:
                    ticket.news.put(header["piece"])
            return
        if "done" in header and not self._works:
            self._works = True
            self.joined.place.forget_deaths()
        ticket = self._worker.finish(self, number)
        if ticket is not None:
            ticket.news.put(self._error(header["failed"]) if "failed" in header else (header["done"], body))

    def _error(self, sent: wire.Header) -> LibraryError:
        kind = getattr(errors, sent["error"])
        error: LibraryError = kind(f"{self._worker.name}: {sent['message']}")
        return error
