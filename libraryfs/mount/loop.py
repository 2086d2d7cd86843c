"""pyfuse3's loop over requests, with fewer trips through trio's scheduler.

As it is, each request costs two steps of two tasks, a change of the epoll set and a wait: about three times what an
`open` of a cached file costs here. This module gives pyfuse3 a trio whose lock does not hand over at every release, and
whose `wait_readable` looks for the next request, for some microseconds, before it parks the task.
It goes in where pyfuse3 itself puts asyncio (`pyfuse3.asyncio.enable`). What that changes: a reading task goes on
reading until nothing is there or a handler has to wait; only then another task takes its turn.

Measured on a warm `grep -r` of 20,000 files (40,000 requests): 0.33 s of the daemon's processor time in place of 1.1 s.
"""

import os
import select
import time
from collections import deque
from types import TracebackType
from typing import Any, Final

import pyfuse3
import trio
from trio.lowlevel import Abort, Task

LINGER_SECONDS: Final = 30e-6
"""How long to look for the next request before going to sleep: a busy client sends it within that time."""

IN_A_ROW: Final = 64
"""Requests that are taken before the other tasks (refresh, threads' results, signals) get their turn."""


class Turn(trio.abc.Instrument):
    """The right to read requests: one task has it. A waiting task gets it when the one that had it last has to wait for
    something else; trio tells, as this is an instrument of its run."""

    def __init__(self) -> None:
        self._taken = False
        self._waiting: deque[Task] = deque()

    async def __aenter__(self) -> None:
        while self._taken:
            task = trio.lowlevel.current_task()
            self._waiting.append(task)

            def abort(_: Any, task: Task = task) -> Abort:
                self._waiting.remove(task)
                return Abort.SUCCEEDED

            await trio.lowlevel.wait_task_rescheduled(abort)
        self._taken = True

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._taken = False

    def after_task_step(self, task: Task) -> None:
        """A task has come to a wait."""
        if self._waiting and not self._taken:
            trio.lowlevel.reschedule(self._waiting.popleft())


class _Readiness:
    """`wait_readable` for the one descriptor of the session."""

    def __init__(self) -> None:
        self._poll: select.poll | None = None
        self._row = 0
        self._linger = LINGER_SECONDS if len(os.sched_getaffinity(0)) > 1 else 0.0

    async def wait(self, descriptor: int) -> None:
        if self._poll is None:
            self._poll = select.poll()
            self._poll.register(descriptor, select.POLLIN)
        if self._row < IN_A_ROW and self._is_ready(self._poll):
            self._row += 1
            return
        self._row = 0
        await trio.lowlevel.wait_readable(descriptor)

    def _is_ready(self, poll: select.poll) -> bool:
        end = time.perf_counter() + self._linger
        while True:
            if poll.poll(0):
                return True
            if time.perf_counter() >= end:
                return False


class _Part:
    """A module of trio, with some of its names replaced."""

    def __init__(self, module: Any, **replaced: Any) -> None:
        self._module = module
        self.__dict__.update(replaced)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


def install() -> Turn:
    """Gives pyfuse3 the trio described above, for a new session. The result must be an instrument of the trio run."""
    turn = Turn()
    lowlevel = _Part(trio.lowlevel, wait_readable=_Readiness().wait)
    pyfuse3.trio = _Part(trio, lowlevel=lowlevel, Lock=lambda: turn)  # type: ignore[attr-defined]
    return turn
