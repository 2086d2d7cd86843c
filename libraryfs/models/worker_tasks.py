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

    def describe(self) -> wire.Header:
        """What the parent wants to know of the model."""

    def run(self, task: Task) -> tuple[wire.Header, bytes]:
        """The answer to a request: header and body. Raises Stopped soon after `task.stopped` is set."""


class Requests:
    """The queue between the reading thread and the computing one: first come, first served; cancelled ones leave it.

    Parts of bulk jobs have a queue of their own, and the two take turns: a question waits for one batch at most, and
    many questions do not stop a bulk job.
    """

    def __init__(self) -> None:
        self._ready = threading.Condition()
        self._questions: OrderedDict[int, Task] = OrderedDict()
        self._bulk: OrderedDict[int, Task] = OrderedDict()
        self._running: Task | None = None

    def add(self, task: Task) -> None:
        """Queue a request."""
        with self._ready:
            waiting = self._bulk if task.header.get("bulk") else self._questions
            waiting[task.header["id"]] = task
            self._ready.notify()

    def cancel(self, request: int) -> None:
        """Take a request out of the queue, or stop it if it is at work."""
        with self._ready:
            self._questions.pop(request, None)
            self._bulk.pop(request, None)
            if self._running is not None and self._running.header["id"] == request:
                self._running.stopped.set()

    def next(self) -> Task:
        """The request to work on now; waits for one."""
        with self._ready:
            last, self._running = self._running, None
            self._ready.wait_for(lambda: bool(self._questions or self._bulk))
            after_bulk = last is None or bool(last.header.get("bulk"))
            waiting = self._questions if self._questions and (after_bulk or not self._bulk) else self._bulk
            _, self._running = waiting.popitem(last=False)
            return self._running
