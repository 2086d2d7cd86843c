"""What the worker's threads and its models share: connections, a request at work, and the queue of those that wait."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections import OrderedDict
from typing import Protocol

from libraryfs.models import wire


class Connection:
    """One client."""

    def __init__(self, end: socket.socket) -> None:
        self.end = end
        self._sending = threading.Lock()

    def send(self, header: wire.Header, body: bytes = b"") -> None:
        """Send; a client that is gone or stuck is left to its reading thread to notice."""
        with self._sending:
            try:
                wire.send(self.end, header, body)
            except OSError:
                with contextlib.suppress(OSError):
                    self.end.shutdown(socket.SHUT_RDWR)


class Task:
    """One request at work: what was asked, the switch that stops it, and where pieces of the answer go."""

    def __init__(self, header: wire.Header, body: bytearray, connection: Connection) -> None:
        self.header = header
        self.body = body
        self.stopped = threading.Event()
        self.connection = connection

    @property
    def key(self) -> tuple[int, int]:
        """Which request of which client it is."""
        return id(self.connection), self.header["id"]

    def send(self, header: wire.Header, body: bytes = b"") -> None:
        """Send something of the answer."""
        self.connection.send({"id": self.header["id"], **header}, body)

    def piece(self, text: str) -> None:
        """Send a piece of streamed text."""
        self.send({"piece": text})


class Stopped(Exception):
    """The request was cancelled; nobody waits for its answer."""


class Model(Protocol):
    """What a worker serves. `run` gives the answer's header and body; it looks at `task.stopped` often."""

    def describe(self) -> wire.Header:
        """What a client wants to know of the model."""

    def run(self, task: Task) -> tuple[wire.Header, bytes]:
        """The answer to a request: header and body. Raises Stopped soon after `task.stopped` is set."""


class Requests:
    """The queue between the reading threads and the computing one: first come, first served; cancelled ones leave it.

    Parts of bulk jobs have a queue of their own, and the two take turns: a question waits for one batch at most, and
    many questions do not stop a bulk job.
    """

    def __init__(self) -> None:
        self._ready = threading.Condition()
        self._questions: OrderedDict[tuple[int, int], Task] = OrderedDict()
        self._bulk: OrderedDict[tuple[int, int], Task] = OrderedDict()
        self._running: Task | None = None
        self._used = time.monotonic()

    def add(self, task: Task) -> None:
        """Queue a request."""
        with self._ready:
            waiting = self._bulk if task.header.get("bulk") else self._questions
            waiting[task.key] = task
            self._ready.notify()

    def cancel(self, connection: Connection, request: int) -> None:
        """Take a request out of the queue, or stop it if it is at work."""
        key = (id(connection), request)
        with self._ready:
            self._questions.pop(key, None)
            self._bulk.pop(key, None)
            if self._running is not None and self._running.key == key:
                self._running.stopped.set()

    def drop(self, connection: Connection) -> None:
        """A client is gone: cancel all of its requests."""
        with self._ready:
            for waiting in (self._questions, self._bulk):
                for key in [key for key, task in waiting.items() if task.connection is connection]:
                    del waiting[key]
            if self._running is not None and self._running.connection is connection:
                self._running.stopped.set()

    def idle_seconds(self) -> float:
        """For how long there has been nothing to do."""
        with self._ready:
            if self._running is not None or self._questions or self._bulk:
                return 0.0
            return time.monotonic() - self._used

    def next(self) -> Task:
        """The request to work on now; waits for one."""
        with self._ready:
            last, self._running = self._running, None
            self._used = time.monotonic()
            self._ready.wait_for(lambda: bool(self._questions or self._bulk))
            after_bulk = last is None or bool(last.header.get("bulk"))
            waiting = self._questions if self._questions and (after_bulk or not self._bulk) else self._bulk
            _, self._running = waiting.popitem(last=False)
            return self._running
