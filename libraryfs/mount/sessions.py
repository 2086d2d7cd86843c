"""Who asked what, by path: the newest exchange of each control file and process session."""

import time
from collections import deque
from itertools import count
from typing import Final, NamedTuple

from libraryfs.mount.control import ControlKind
from libraryfs.mount.exchange import Exchange
from libraryfs.mount.processes import Session, group_of, parent_of
from libraryfs.mount.walks import Walks

FIRST_INO: Final = 7 << 60
"""Exchanges have inode numbers of their own, above those of the control files themselves."""

KEPT_SECONDS: Final = 600.0
KEPT_ANSWERS: Final = 4096
KEPT_REPLACED: Final = 2048
"""Exchanges that are nobody's newest any more and whose inode numbers still lead somewhere: for who has one open, or is
between the look-up and the open of it, when its session asks again."""


class Key(NamedTuple):
    """One control file, as one session sees it."""

    kind: int
    folder: int
    session: Session


class Sessions:
    """The exchanges that can be read by path. An answer is kept until the session's next question, or ten minutes."""

    def __init__(self, walks: Walks) -> None:
        self._walks = walks
        self._numbers = count(FIRST_INO)
        self._newest: dict[Key, Exchange] = {}
        self._by_ino: dict[int, Exchange] = {}
        self._replaced: deque[int] = deque()
        self._awaited: dict[int, list[Exchange]] = {}  # by folder: those that were not answered when last looked at

    def begin(self, kind: ControlKind, folder: int, session: Session, pid: int) -> Exchange:
        """A new exchange in place of the session's last one, whose work ends unless somebody waits for it."""
        key = Key(kind.number, folder, session)
        self.drop(key)
        exchange = Exchange(kind, folder, next(self._numbers))
        exchange.writers.add(group_of(pid))
        assert exchange.ino is not None, "just given"
        self._newest[key] = self._by_ino[exchange.ino] = exchange
        self._awaited.setdefault(folder, []).append(exchange)
        return exchange

    def drop(self, key: Key) -> None:
        """Forgets the session's exchange."""
        old = self._newest.pop(key, None)
        if old is not None:
            assert old.ino is not None, "begun here"
            self._replaced.append(old.ino)
            if len(self._replaced) > KEPT_REPLACED:
                del self._by_ino[self._replaced.popleft()]
            if not old.waiters:
                old.cancel()

    def outdate(self) -> None:
        """Empties every answer that there is. Inode numbers go on to lead somewhere: a reader may be on its way."""
        for key, exchange in list(self._newest.items()):
            if exchange.done:
                self.drop(key)
        for exchange in self._by_ino.values():
            exchange.outdate()

    def forget(self, exchange: Exchange) -> None:
        """Forgets this exchange, if it is still its session's newest."""
        for key, newest in self._newest.items():
            if newest is exchange:
                self.drop(key)
                return

    def newest(self, key: Key, pid: int) -> Exchange | None:
        """What this process gets to read; None for one that only walks by, as long as the answer is not there."""
        exchange = self._newest.get(key)
        if exchange is None or exchange.done or not self._walks_by(exchange, pid):
            return exchange
        return None

    def by_ino(self, ino: int) -> Exchange | None:
        """The exchange of an inode number; None when it was forgotten."""
        return self._by_ino.get(ino)

    def listed(self, folder: int, pid: int) -> None:
        """The process lists a folder in which somebody may wait for an answer."""
        if folder not in self._awaited:
            return
        process = group_of(pid)
        left = [exchange for exchange in self._awaited.pop(folder) if not exchange.done]
        for exchange in left:
            exchange.listers.add(process)
        if left:
            self._awaited[folder] = left

    def _walks_by(self, exchange: Exchange, pid: int) -> bool:
        process = group_of(pid)
        if process in exchange.writers or pid == 0:
            return False
        if process in exchange.listers or self._walks.is_walking(process):
            return True
        parent = parent_of(process)  # find -exec cat
        return self._walks.is_walking(parent) and parent not in exchange.writers

    def sweep(self) -> None:
        """Forgets answers that are too old, and the oldest when there are too many."""
        now = time.monotonic()
        finished = sorted((exchange.finished_at, key) for key, exchange in self._newest.items() if exchange.done)
        excess = len(finished) - KEPT_ANSWERS
        for number, (finished_at, key) in enumerate(finished):
            if number < excess or now - finished_at > KEPT_SECONDS:
                self.drop(key)
        for folder, exchanges in list(self._awaited.items()):
            if all(exchange.done for exchange in exchanges):
                del self._awaited[folder]
