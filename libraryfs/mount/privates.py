"""Inode numbers of control files that are open for reading and writing: one for each such handle.

The kernel keeps one size and one set of pages an inode, and sendfile(2) and splice(2) read through those, whatever the
handle is. On the file's own inode they would cut a handle's answer to another size, and keep it for others to read. On
an inode of its own, of size 0, they read nothing.

An inode number is chosen in a look-up, which does not tell what the file will be opened for. So the first `open` is
answered with ESTALE: the kernel then looks the name up again, for the same thread, and opens what it gets.
"""

import time
from collections import OrderedDict
from dataclasses import dataclass
from itertools import count
from typing import Final

from libraryfs.mount.asked import Place
from libraryfs.mount.sessions import FIRST_INO

PRIVATE_INO: Final = FIRST_INO | 1 << 59
"""Numbers from here on are these; those below, down to FIRST_INO, are of answers that are read by path."""

MAX_PROMISES: Final = 256
"""Threads that open one file side by side each undo the others' look-ups: n of them need about n look-ups each."""

PROMISE_SECONDS: Final = 30.0
"""From the thread's last look-up. The kernel comes back at once, or never: when the opener was killed on the way. Among
many openers its way to `open` is long, and one whose number was withdrawn on it would see ESTALE."""


@dataclass
class Promise:
    """A number that a thread gets at its next look-up of the file.

    `claims`: how many opens it is for. More than one where the kernel cannot tell us threads, and all of them are 0.
    """

    place: Place
    ino: int
    until: float  # seconds, monotonic
    claims: int = 1


class Privates:
    """The numbers in use, and those that are promised."""

    def __init__(self) -> None:
        self._numbers = count(PRIVATE_INO)
        self._places: dict[int, Place] = {}
        self._handles: dict[int, int] = {}
        self._promises: OrderedDict[int, Promise] = OrderedDict()  # by thread, the one to expire first in front

    def promise(self, pid: int, place: Place) -> bool:
        """The thread's next look-up of this file gets a number of its own. False when too many wait for theirs."""
        if self.promised(pid, place) is not None:
            if not pid:
                self._promises[pid].claims += 1
            return True
        self._withdraw(pid)
        self._withdraw_old()
        if len(self._promises) >= MAX_PROMISES:
            return False
        ino = next(self._numbers)
        self._places[ino] = place
        self._promises[pid] = Promise(place, ino, time.monotonic() + PROMISE_SECONDS)
        return True

    def promised(self, pid: int, place: Place) -> int | None:
        """The number that this look-up gets; None when nothing was promised."""
        promise = self._promises.get(pid)
        if promise is None or promise.place != place:
            return None
        now = time.monotonic()
        if promise.until < now:
            self._withdraw(pid)
            return None
        promise.until = now + PROMISE_SECONDS
        self._promises.move_to_end(pid)
        return promise.ino

    def place(self, ino: int) -> Place | None:
        """The file of a number; None when it is in use no more."""
        return self._places.get(ino)

    def opened(self, ino: int, pid: int) -> None:
        """One more handle on the number."""
        self._handles[ino] = self._handles.get(ino, 0) + 1
        promise = self._promises.get(pid)
        if promise is not None and promise.ino == ino:
            promise.claims -= 1
            if not promise.claims:
                del self._promises[pid]

    def released(self, ino: int) -> None:
        """One handle fewer; the last one takes the number with it."""
        self._handles[ino] -= 1
        if not self._handles[ino]:
            del self._handles[ino]
            if all(promise.ino != ino for promise in self._promises.values()):
                del self._places[ino]

    def _withdraw_old(self) -> None:
        now = time.monotonic()
        while self._promises and next(iter(self._promises.values())).until < now:
            self._withdraw(next(iter(self._promises)))

    def _withdraw(self, pid: int) -> None:
        promise = self._promises.pop(pid, None)
        if promise is not None and promise.ino not in self._handles:
            del self._places[promise.ino]
