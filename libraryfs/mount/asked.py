"""One request by path: its exchange, who asked it, and so who may read it."""

import time
from dataclasses import dataclass, field
from typing import NamedTuple

from libraryfs.mount.exchange import Exchange
from libraryfs.mount.processes import Caller, Link, Process, Session, is_alive


class Place(NamedTuple):
    """One control file."""

    kind: int
    folder: int


@dataclass(eq=False)
class Asked:
    """An exchange that can be read by path. `session` may read it: the asker's, or one that inherited it.

    `home` is where in the asker's line it was read first: one that a job has asked and read itself is that job's.
    """

    exchange: Exchange
    place: Place
    caller: Caller
    session: Session = field(init=False)
    began: float = field(default_factory=time.monotonic)
    home: int | None = None
    shared: bool = False
    """Another thread has read it than asked: threads here are not jobs of their own."""
    was_read: bool = False
    inherited: bool = False
    blank: bool = False
    """Nothing is asked: the file was emptied."""

    def __post_init__(self) -> None:
        self.session = self.caller.session

    def belongs_to(self, process: Process) -> bool:
        """Whether the process has asked this, by itself or through what it ran: a command that has ended."""
        above = self._above(process)
        if above is None:
            return False
        at_home = self.home is None or self.home >= above
        return not above or (at_home and not is_alive(self.caller.line[above - 1].process))

    def comes_through(self, link: Link) -> bool:
        """Whether it is this thread of the process that has asked it, or ran what has. Not if threads share it."""
        above = self._above(link.process)
        return above is not None and self.caller.line[above].thread == link.thread and not self.shared

    def read_by(self, reader: Link) -> None:
        """It is read as what this process has asked, through this thread of it."""
        above = self._above(reader.process)
        if self.home is None:
            self.home = above
        if above is not None and self.caller.line[above].thread != reader.thread:
            self.shared = True

    def _above(self, process: Process) -> int | None:
        """How far above its asker the process is."""
        return next((above for above, link in enumerate(self.caller.line) if link.process == process), None)

    def inherit(self, session: Session) -> None:
        """The session reads on where the asker's has ended."""
        self.session, self.inherited = session, True

    def has_ended(self) -> bool:
        """Whether the session that may read it has ended: its leader, and what is left of the asker's line."""
        sid = self.session.sid
        if sid == 0:
            return False  # processes that we are not told
        if sid > 0 and is_alive(Process(sid, self.session.start)):
            return False
        return not any(is_alive(link.process) for link in self.caller.line)
