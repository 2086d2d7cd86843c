"""One request by path: its exchange, who asked it, and so who may read it."""

import time
from dataclasses import dataclass, field
from typing import NamedTuple

from libraryfs.mount.exchange import Exchange
from libraryfs.mount.processes import Caller, Process, Session, is_alive


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
    """Another thread of the asker's process has read it: threads here are not jobs of their own."""
    was_read: bool = False
    inherited: bool = False
    blank: bool = False
    """Nothing is asked: the file was emptied."""

    def __post_init__(self) -> None:
        self.session = self.caller.session

    def belongs_to(self, process: Process) -> bool:
        """Whether the process has asked this, by itself or through what it ran: a command that has ended."""
        line = self.caller.line
        if process not in line:
            return False
        above = line.index(process)
        return not above or ((self.home is None or self.home >= above) and not is_alive(line[above - 1]))

    def read_by(self, caller: Caller, process: Process) -> None:
        """The caller reads it as what this process of its line has asked."""
        above = self.caller.line.index(process)
        if self.home is None:
            self.home = above
        if not above and caller.thread != self.caller.thread:
            self.shared = True

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
        return not any(is_alive(one) for one in self.caller.line)
