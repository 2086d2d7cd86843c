"""Waiting for an answer without holding up the mount, and without holding up a reader who wants to leave."""

import errno
import os
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

import trio
from pyfuse3 import FUSEError

from libraryfs.mount import processes

MAX_WAITING: Final = 256
"""Requests that may wait at once; one more gets EAGAIN. Well below the loop's tasks, so others are always served."""

MAX_TASKS: Final = 400
"""Requests that the loop takes at once."""

POLL_SECONDS: Final = 0.15
"""How often a waiting reader's pending signals are looked at: the kernel does not pass them on to pyfuse3."""

WAIT_SECONDS: Final = 600.0
"""The longest wait; then ETIMEDOUT, and the next open waits on."""


class Waiting:
    """Counts and bounds the waits of a mount."""

    def __init__(self, mountpoint: str) -> None:
        self._mountpoint = os.fsencode(mountpoint)
        self._count = 0

    async def opener(self, event: trio.Event, pid: int) -> None:
        """Waits for the event on behalf of a process in open(2). Raises FUSEError: EINTR, EAGAIN, ETIMEDOUT."""

        async def left() -> bool:
            return processes.is_ending(pid)

        await self._until(event, left)

    async def reader(self, event: trio.Event, sid: int, name: bytes) -> None:
        """Waits for the event on behalf of whoever, in a session, reads the control file `name`. Raises as `opener`."""
        look = partial(processes.reader_is_ending, sid, self._mountpoint, name)

        async def left() -> bool:
            return await trio.to_thread.run_sync(look, abandon_on_cancel=True)

        await self._until(event, left)

    async def _until(self, event: trio.Event, left: Callable[[], Awaitable[bool]]) -> None:
        if self._count >= MAX_WAITING:
            raise FUSEError(errno.EAGAIN)
        self._count += 1
        try:
            with trio.move_on_after(WAIT_SECONDS):
                while not event.is_set():
                    with trio.move_on_after(POLL_SECONDS):
                        await event.wait()
                    if not event.is_set() and await left():
                        raise FUSEError(errno.EINTR)
                return
            raise FUSEError(errno.ETIMEDOUT)
        finally:
            self._count -= 1
