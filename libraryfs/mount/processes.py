"""What /proc tells of the processes that use the mount."""

import os
import signal
from pathlib import Path
from typing import Final, NamedTuple

ENDING: Final = sum(
    1 << (number - 1)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGHUP, signal.SIGKILL, signal.SIGPIPE)
)
"""Signals that end a wait. One that a process dies of shows as SIGKILL, whichever it was; others (SIGCHLD, SIGWINCH,
the SIGURG and SIGALRM of runtimes) are nobody's wish to stop."""


class Session(NamedTuple):
    """Whose an answer is: a user and a process session (setsid). `sid` is 0 where the process is not told."""

    uid: int
    sid: int


def session_of(uid: int, pid: int) -> Session:
    """The session of a process. One that has ended by now is a session of its own."""
    if pid == 0:
        return Session(uid, 0)
    try:
        return Session(uid, os.getsid(pid))
    except OSError:
        return Session(uid, -pid)


def group_of(pid: int) -> int:
    """The process that a thread belongs to: the kernel tells us threads. The number itself when it cannot be told."""
    try:
        for line in Path(f"/proc/{pid}/status").read_bytes().splitlines():
            if line.startswith(b"Tgid:"):
                return int(line.split()[1])
    except OSError:
        pass
    return pid


def parent_of(pid: int) -> int:
    """The parent's number; 0 when it cannot be told."""
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
        return int(text.rpartition(b")")[2].split()[1])
    except (OSError, IndexError, ValueError):
        return 0


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
