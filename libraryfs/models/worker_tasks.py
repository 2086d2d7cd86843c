"""What the worker's two threads and its models share: a request at work, and the queue of those that wait."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol

from libraryfs.models import wire

Send = Callable[[wire.Header, bytes], None]


class Task:
    """One request at work: what was asked, the switch that stops it, and where pieces of the answer go."""

    def __init__(self, header: wire.Header, body: bytearray, send: Send) -> None:
        self.header = header
        self.body = body
        self.stopped = threading.Event()
        self._send = send

    def piece(self, text: str) -> None:
        """Send a piece of streamed text."""
        self._send({"id": self.header["id"], "piece": text}, b"")


class Stopped(Exception):
    """The request was cancelled; nobody waits for its answer."""


class Model(Protocol):
    """What a worker serves. `run` gives the answer's header and body; it looks at `task.stopped` often."""

    def describe(self) -> wire.Header: ...

    def run(self, task: Task) -> tuple[wire.Header, bytes]: ...


class Requests:
    """The queue between the reading thread and the computing one: first come, first served; cancelled ones leave it."""

    def __init__(self) -> None:
        self._ready = threading.Condition()
        self._waiting: OrderedDict[int, Task] = OrderedDict()
        self._running: Task | None = None

    def add(self, task: Task) -> None:
        with self._ready:
            self._waiting[task.header["id"]] = task
            self._ready.notify()

    def cancel(self, request: int) -> None:
        with self._ready:
            self._waiting.pop(request, None)
            if self._running is not None and self._running.header["id"] == request:
                self._running.stopped.set()

    def next(self) -> Task:
        with self._ready:
            self._running = None
            self._ready.wait_for(lambda: bool(self._waiting))
            _, self._running = self._waiting.popitem(last=False)
            return self._running
