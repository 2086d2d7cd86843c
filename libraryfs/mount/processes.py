"""What /proc tells of the processes that use the mount."""

import os
import signal
from collections import OrderedDict
from pathlib import Path
from typing import Final, NamedTuple

ENDING: Final = sum(
    1 << (number - 1)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGHUP, signal.SIGKILL, signal.SIGPIPE)
)
"""Signals that end a wait. One that a process dies of shows as SIGKILL, whichever it was; others (SIGCHLD, SIGWINCH,
the SIGURG and SIGALRM of runtimes) are nobody's wish to stop."""

MAX_ANCESTRY: Final = 64
MAX_THREADS: Final = 256
MAX_LEADERS: Final = 4096


class Process(NamedTuple):
    """A process or a thread. Numbers are given again, so that `start` (clock ticks after boot, 0: not told) is part."""

    pid: int
    start: int


class _Stat(NamedTuple):
    state: bytes
    parent: int
    sid: int
    start: int


def _read(pid: int, name: str) -> bytes:
    """A file of /proc, in one read: the kernel makes it anew at each, and pathlib takes twice as long."""
    descriptor = os.open(f"/proc/{pid}/{name}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, 4096)
    finally:
        os.close(descriptor)


def _stat(pid: int) -> _Stat | None:
    try:
        text = _read(pid, "stat")
        fields = text.rpartition(b")")[2].split()  # the name before it may hold anything
        return _Stat(fields[0], int(fields[1]), int(fields[3]), int(fields[19]))
    except (OSError, IndexError, ValueError):
        return None


def process(pid: int) -> Process:
    """The process, or the thread, that has this number now."""
    found = _stat(pid)
    return Process(pid, 0 if found is None else found.start)


def is_alive(process: Process) -> bool:
    """Whether it runs still; one that has ended and that its parent has not yet asked about does not."""
    found = _stat(process.pid)
    return found is not None and found.state not in b"ZX" and found.start == process.start


def is_single(process: Process) -> bool:
    """Whether the process has one thread, or none any more."""
    try:
        return len(os.listdir(f"/proc/{process.pid}/task")) == 1
    except OSError:
        return True


def group_of(pid: int) -> int:
    """The process that a thread belongs to: the kernel tells us threads. The number itself when it cannot be told."""
    try:
        return int(_read(pid, "status").partition(b"\nTgid:")[2].split(maxsplit=1)[0])
    except (OSError, IndexError, ValueError):
        return pid


def process_of(pid: int) -> Process:
    """The process that a thread belongs to."""
    return process(group_of(pid))


def parent_of(pid: int) -> int:
    """The parent's number; 0 when it cannot be told."""
    found = _stat(pid)
    return 0 if found is None else found.parent


class Link(NamedTuple):
    """A process of an ancestry, and the thread of it that the ancestry goes through."""

    process: Process
    thread: Process


def ancestry(pid: int) -> tuple[Link, ...]:
    """The thread with its process, and the ancestors of the same session, the nearest first; never empty."""
    group = group_of(pid)
    found = _stat(group)
    first = Process(group, 0 if found is None else found.start)
    line = [Link(first, first if group == pid else process(pid))]
    if found is None:
        return tuple(line)
    while len(line) < MAX_ANCESTRY:
        above = _stat(found.parent)
        if above is None or above.sid != found.sid:
            break
        parent = Process(found.parent, above.start)
        line.append(Link(parent, _spawner(parent, line[-1].process.pid)))
        found = above
    return tuple(line)


def _spawner(parent: Process, child: int) -> Process:
    """The parent's thread that has started the child: where threads run commands, it tells whose a command is."""
    try:
        threads = os.listdir(f"/proc/{parent.pid}/task")
        if 1 < len(threads) <= MAX_THREADS:
            for thread in threads:
                if str(child).encode() in Path(f"/proc/{parent.pid}/task/{thread}/children").read_bytes().split():
                    return process(int(thread))
    except OSError:
        pass  # it ends, or this kernel does not tell
    return parent


class Session(NamedTuple):
    """Whose an answer is: a user and a process session (setsid). `sid` is 0 where the process is not told.

    `start` is that of the session's leader.
    """

    uid: int
    sid: int
    start: int = 0


class Caller(NamedTuple):
    """Who asks or reads: its session, and its thread and process with the ancestors of that in the session."""

    session: Session
    line: tuple[Link, ...]

    @property
    def process(self) -> Process:
        """The caller's own process."""
        return self.line[0].process

    @property
    def thread(self) -> Process:
        """The caller itself."""
        return self.line[0].thread


NOBODY: Final = Link(Process(0, 0), Process(0, 0))


class Callers:
    """Tells who calls. Remembers when leaders started: one that has ended cannot be asked, and its session lives on."""

    def __init__(self) -> None:
        self._leaders: OrderedDict[tuple[int, int], int] = OrderedDict()

    def caller(self, uid: int, pid: int) -> Caller:
        """The caller of a request. One that has ended by now is a session of its own."""
        if pid == 0:
            return Caller(Session(uid, 0), (NOBODY,))
        return Caller(self.session(uid, pid), ancestry(pid))

    def session(self, uid: int, pid: int) -> Session:
        """The session of a process."""
        sid = sid_of(pid)
        if sid <= 0:
            return Session(uid, sid)
        leader = _stat(sid)
        if leader is None:  # the number stays taken as long as the session has a process
            return Session(uid, sid, self._leaders.get((uid, sid), 0))
        self._leaders[uid, sid] = leader.start
        self._leaders.move_to_end((uid, sid))
        if len(self._leaders) > MAX_LEADERS:
            self._leaders.popitem(last=False)
        return Session(uid, sid, leader.start)


def sid_of(pid: int) -> int:
    """The number of a process's session; 0 where the process is not told, its negative number where it has ended."""
    if pid == 0:
        return 0
    try:
        return os.getsid(pid)
    except OSError:
        return -pid


def is_ending(pid: int) -> bool:
    """Whether a process was told to stop and has not come to it, for it waits in the kernel for us; or has ended."""
    if pid == 0:
        return False
    try:
        text = Path(f"/proc/{pid}/status").read_bytes()
    except OSError:
        return True
    pending = blocked = 0
    for line in text.splitlines():
        if line.startswith((b"SigPnd:", b"ShdPnd:")):
            pending |= int(line.split()[1], 16)
        elif line.startswith(b"SigBlk:"):
            blocked = int(line.split()[1], 16)
    return bool(pending & ~blocked & ENDING)


def reader_is_ending(sid: int, mountpoint: bytes, name: bytes) -> bool:
    """Whether, in session `sid`, a process that has a control file `name` below `mountpoint` open was told to stop.

    A READ does not say who reads, and on a shared handle it is not who opened it.
    """
    for process in os.scandir("/proc"):
        if not process.name.isdecimal():
            continue
        pid = int(process.name)
        try:
            if os.getsid(pid) == sid and is_ending(pid) and _holds(pid, mountpoint, name):
                return True
        except OSError:
            continue
    return False


def _holds(pid: int, mountpoint: bytes, name: bytes) -> bool:
    # "(deleted)": the name leads to another inode by now, for another session has asked something
    ends = (b"/" + name, b"/" + name + b" (deleted)")
    links = [os.readlink(link.path) for link in os.scandir(f"/proc/{pid}/fd".encode())]
    return any(link.startswith(mountpoint + b"/") and link.endswith(ends) for link in links)
