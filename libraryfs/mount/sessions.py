"""Who asked what, by path: which exchange of a control file a reader gets.

That of its own thread; else of its process; else of the nearest process of its ancestry that asked, by itself or
through a command that it ran and that has ended; else the session's newest. So jobs side by side in one shell, make or
thread pool each read their own. A session that has asked nothing itself reads what an ended one of the same user asked:
for tools that run each command in a session of its own.
"""

import time
from collections import deque
from itertools import count
from typing import Final

from libraryfs.mount.asked import Asked, Place
from libraryfs.mount.control import ControlKind
from libraryfs.mount.exchange import Exchange
from libraryfs.mount.processes import Caller, Callers, Link, Session, is_single, parent_of, process_of
from libraryfs.mount.walks import Walks

FIRST_INO: Final = 7 << 60
"""Exchanges have inode numbers of their own, above those of the control files themselves."""

KEPT_SECONDS: Final = 600.0
KEPT_ANSWERS: Final = 4096
KEPT_A_PLACE: Final = 2048
"""Exchanges of one control file."""
LOOKED_AT: Final = 64
"""Sessions of which it is asked whether they have ended, for one look-up: a few microseconds each."""
KEPT_REPLACED: Final = 2048
"""Exchanges that nobody can read any more and whose inode numbers still lead somewhere: for who has one open, or is
between the look-up and the open of it, when its session asks again."""


class Sessions:
    """The exchanges that can be read by path. An answer is kept until its asker's next question, or ten minutes."""

    def __init__(self, walks: Walks) -> None:
        self._walks = walks
        self._callers = Callers()
        self._numbers = count(FIRST_INO)
        self._places: dict[Place, list[Asked]] = {}  # the newest at the end
        self._by_ino: dict[int, Exchange] = {}
        self._replaced: deque[int] = deque()
        self._held: dict[int, int] = {}  # how many open handles an inode number has
        self._due: set[int] = set()  # numbers that are forgotten at the close of their last handle
        self._awaited: dict[int, list[Exchange]] = {}  # by folder: those that were not answered when last looked at

    def caller(self, uid: int, pid: int) -> Caller:
        """Who a request of the kernel comes from."""
        return self._callers.caller(uid, pid)

    def begin(self, kind: ControlKind, folder: int, caller: Caller) -> Exchange:
        """A new exchange in place of the caller's last one, whose work ends unless somebody waits for it."""
        exchange = self._add(kind, folder, caller).exchange
        self._awaited.setdefault(folder, []).append(exchange)
        return exchange

    def empty(self, kind: ControlKind, folder: int, caller: Caller) -> None:
        """From here on the caller reads nothing, until it asks."""
        if Place(kind.number, folder) in self._places:
            asked = self._add(kind, folder, caller)
            asked.blank = True
            asked.exchange.finish()

    def _add(self, kind: ControlKind, folder: int, caller: Caller) -> Asked:
        place = Place(kind.number, folder)
        for old in self._of_session(place, caller.session):
            if old.caller.thread == caller.thread:
                self._drop(old)
        exchange = Exchange(kind, folder, next(self._numbers))
        assert exchange.ino is not None, "just given"
        self._by_ino[exchange.ino] = exchange
        there = self._places.setdefault(place, [])
        there.append(Asked(exchange, place, caller))
        if len(there) > KEPT_A_PLACE:
            self._drop(there[0])
        return there[-1]

    def _drop(self, asked: Asked) -> None:
        """Nobody comes to the exchange any more; who has it open goes on."""
        exchange = asked.exchange
        assert exchange.ino is not None, "begun here"
        there = self._places[asked.place]
        there.remove(asked)
        if not there:
            del self._places[asked.place]
        self._replaced.append(exchange.ino)
        if len(self._replaced) > KEPT_REPLACED:
            oldest = self._replaced.popleft()
            if oldest in self._held:
                self._due.add(oldest)
            else:
                del self._by_ino[oldest]
        if not exchange.waiters:
            exchange.cancel()

    def hold(self, ino: int) -> None:
        """A handle is open on this number: it leads somewhere until `let_go`."""
        self._held[ino] = self._held.get(ino, 0) + 1

    def let_go(self, ino: int) -> None:
        """The handle's close."""
        self._held[ino] -= 1
        if not self._held[ino]:
            del self._held[ino]
            if ino in self._due:
                self._due.discard(ino)
                del self._by_ino[ino]

    def forget(self, exchange: Exchange) -> None:
        """Takes the question back: its asker reads nothing."""
        for asked in self._every():
            if asked.exchange is exchange:
                asked.blank = True
                if not exchange.waiters:
                    exchange.cancel()

    def outdate(self, hidden: frozenset[int] | None) -> None:
        """Empties every answer that may hold something of these namespaces; None: every answer.

        Inode numbers go on to lead somewhere: a reader may be on its way.
        """
        for asked in self._every():
            if asked.exchange.done and asked.exchange.touches(hidden):
                self._drop(asked)
        for exchange in self._by_ino.values():
            exchange.outdate(hidden)

    def newest(self, place: Place, uid: int, pid: int, *, take: bool = False) -> Exchange | None:
        """What this thread gets to read; `take` says that it does read it, and does not only look.

        None where there is nothing for it, and for one that only walks by, as long as the answer is not there.
        """
        if place not in self._places:
            return None
        caller = self.caller(uid, pid)
        own = self._of_session(place, caller.session)
        if any(not asked.inherited for asked in own):
            asked = self._nearest(own, caller, take=take)
        else:
            asked = self._left(place, caller, take=take)
        if asked is None or asked.blank:
            return None
        if not asked.exchange.done and self._walks_by(asked, caller):
            return None
        asked.was_read |= take
        return asked.exchange

    def _nearest(self, own: list[Asked], caller: Caller, *, take: bool) -> Asked | None:
        for link in caller.line:
            found = [asked for asked in reversed(own) if asked.belongs_to(link.process)]
            if len(found) > 1 and not is_single(link.process):
                found = [asked for asked in found if asked.comes_through(link)] or found
            if found:
                if take:
                    self._settle(found, link)
                return found[0]
        return next((asked for asked in reversed(own) if not asked.blank), None)

    def _settle(self, found: list[Asked], reader: Link) -> None:
        """The first of those that the process has asked is read: nobody comes to the others of its commands now."""
        found[0].read_by(reader)
        for asked in found[1:]:
            if asked.caller.process != reader.process and not asked.exchange.waiters:
                self._drop(asked)

    def _left(self, place: Place, caller: Caller, *, take: bool) -> Asked | None:
        """The newest that sessions of the same user have left, or that this one has got in this way."""
        if caller.session.sid <= 0:
            return None
        ended = {caller.session: True}
        for asked in reversed(self._places[place]):
            session = asked.session
            if session.uid != caller.session.uid:
                continue
            if session not in ended:
                if len(ended) > LOOKED_AT:
                    return None
                ended[session] = asked.has_ended()
            if not ended[session] or (asked.was_read and not asked.exchange.kind.silent):
                continue  # with nothing asked there is something to read: that, and not what another asked once
            if self._walks.passes_by(caller, asked.began):
                return None
            if take:
                asked.inherit(caller.session)
            return asked
        return None

    def by_ino(self, ino: int) -> Exchange | None:
        """The exchange of an inode number; None when it was forgotten."""
        return self._by_ino.get(ino)

    def listed(self, folder: int, pid: int) -> None:
        """The process lists a folder in which somebody may wait for an answer."""
        if folder not in self._awaited:
            return
        lister = process_of(pid)
        left = [exchange for exchange in self._awaited.pop(folder) if not exchange.done]
        for exchange in left:
            exchange.listers.add(lister)
        if left:
            self._awaited[folder] = left

    def _walks_by(self, asked: Asked, caller: Caller) -> bool:
        reader, asker = caller.process, asked.caller.process
        if reader == asker or not reader.pid:
            return False
        if reader in asked.exchange.listers or self._walks.is_walking(reader.pid):
            return True
        parent = parent_of(reader.pid)  # find -exec cat
        return self._walks.is_walking(parent) and parent != asker.pid

    def sweep(self) -> None:
        """Forgets answers that are too old, and the oldest when there are too many."""
        now = time.monotonic()
        done = sorted(
            (asked for asked in self._every() if asked.exchange.done), key=lambda asked: asked.exchange.finished_at
        )
        excess = len(done) - KEPT_ANSWERS
        for number, asked in enumerate(done):
            if number < excess or now - asked.exchange.finished_at > KEPT_SECONDS:
                self._drop(asked)
        for folder, exchanges in list(self._awaited.items()):
            if all(exchange.done for exchange in exchanges):
                del self._awaited[folder]

    def _of_session(self, place: Place, session: Session) -> list[Asked]:
        return [asked for asked in self._places.get(place, ()) if asked.session == session]

    def _every(self) -> list[Asked]:
        return [asked for there in self._places.values() for asked in there]
