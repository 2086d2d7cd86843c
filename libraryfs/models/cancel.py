"""One object that says when a piece of work must stop: at a deadline, or because its user went away."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from libraryfs.errors import Cancelled, DeadlineExceeded

_T = TypeVar("_T")


class Cancel:
    """A monotonic deadline and a switch, shared by everything that works on one request. Thread-safe.

    `Cancel()` never ends by itself; `Cancel.after(seconds)` ends after that time.
    """

    def __init__(self, deadline: float | None = None) -> None:
        """`deadline` is on the clock of `time.monotonic()`, in seconds; None: no deadline."""
        self.deadline = deadline
        self._lock = threading.Lock()
        self._cancelled = False
        self._watchers: list[Callable[[], None]] = []

    @classmethod
    def after(cls, seconds: float) -> Cancel:
        """A deadline that many seconds from now."""
        return cls(time.monotonic() + seconds)

    @property
    def cancelled(self) -> bool:
        """Whether `cancel` was called (a passed deadline does not count)."""
        return self._cancelled

    def cancel(self) -> None:
        """Stop the work now; from any thread, any number of times."""
        with self._lock:
            if self._cancelled:
                return
            self._cancelled = True
            watchers = list(self._watchers)
        for watcher in watchers:
            watcher()

    def remaining(self) -> float | None:
        """Seconds until the deadline, at least 0; None without one."""
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())

    def check(self) -> None:
        """Raise `Cancelled` or `DeadlineExceeded` when the work must stop."""
        if self._cancelled:
            raise Cancelled()
        if self.deadline is not None and time.monotonic() >= self.deadline:
            raise DeadlineExceeded()

    @contextmanager
    def watch(self, watcher: Callable[[], None]) -> Iterator[None]:
        """Call `watcher` once (in the canceller's thread) if `cancel` comes while in the block, or came before."""
        with self._lock:
            already = self._cancelled
            if not already:
                self._watchers.append(watcher)
        if already:
            watcher()
        try:
            yield
        finally:
            with self._lock:
                if watcher in self._watchers:
                    self._watchers.remove(watcher)

    @contextmanager
    def sooner(self, seconds: float) -> Iterator[Cancel]:
        """One for a part of the work: its deadline comes so much before this one's, and its end is this one's too."""
        part = Cancel(None if self.deadline is None else self.deadline - seconds)
        with self.watch(part.cancel):
            yield part


def within(cancel: Cancel, work: Callable[[], _T]) -> _T:
    """What `work` gives, in time: it is for work that cannot be stopped, such as a model's check before its first use.

    With a deadline it runs in a thread of its own, which goes on when the time is up, so that next time it is done.
    Raises what the work raises, Cancelled, DeadlineExceeded.
    """
    cancel.check()
    if cancel.deadline is None:
        return work()
    outcome: queue.SimpleQueue[tuple[Any, BaseException | None] | None] = queue.SimpleQueue()

    def run() -> None:
        try:
            outcome.put((work(), None))
        except BaseException as error:
            outcome.put((None, error))

    threading.Thread(target=run, name="within", daemon=True).start()
    with cancel.watch(lambda: outcome.put(None)):
        try:
            done = outcome.get(timeout=cancel.remaining())
        except queue.Empty:
            raise DeadlineExceeded from None
    if done is None:
        raise Cancelled
    value, error = done
    if error is not None:
        raise error
    result: _T = value
    return result
