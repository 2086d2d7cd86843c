"""Which process lists which folder: a process that walks the tree never waits for an answer, nor reads another's."""

import os
import time
from collections import OrderedDict
from itertools import count
from typing import Final, NamedTuple

from libraryfs.mount.processes import Caller, group_of, parent_of, sid_of

FIRST_HANDLE: Final = 1
KEPT_LISTERS: Final = 1024
LISTER_SECONDS: Final = 600.0
WALK_SECONDS: Final = 30.0
"""So long after its last listing a walk may still hand out names, though its process has ended (`find | xargs`)."""


class _Open(NamedTuple):
    folder: int
    pid: int


class _Lister(NamedTuple):
    """A thread that has listed a folder, or several."""

    sid: int
    folder: int
    several: bool
    at: float  # seconds, monotonic: the last time


class Walks:
    """Handles of open folders, and who had some."""

    def __init__(self) -> None:
        self._numbers = count(FIRST_HANDLE)
        self._open: dict[int, _Open] = {}
        self._walking: dict[int, int] = {}  # pid: how many folders it has open
        self._damaged: set[int] = set()
        self._listers: OrderedDict[int, _Lister] = OrderedDict()  # by thread, the one that listed last at the end

    def opened(self, folder: int, pid: int) -> int:
        """A new handle."""
        handle = next(self._numbers)
        self._open[handle] = _Open(folder, pid)
        self._walking[pid] = self._walking.get(pid, 0) + 1
        now = time.monotonic()
        known = self._listers.pop(pid, None)
        if known is None or now - known.at > LISTER_SECONDS:
            known = _Lister(sid_of(pid), folder, False, now)
        self._listers[pid] = known._replace(several=known.several or known.folder != folder, at=now)
        if len(self._listers) > KEPT_LISTERS:
            self._listers.popitem(last=False)
        return handle

    def folder_of(self, handle: int) -> int:
        """The inode of the handle's folder."""
        return self._open[handle].folder

    def left_out(self, handle: int) -> None:
        """Rows of this listing could not be shown: it ends with an error, after all that could."""
        self._damaged.add(handle)

    def is_whole(self, handle: int) -> bool:
        """Whether nothing was left out so far."""
        return handle not in self._damaged

    def released(self, handle: int) -> None:
        """The handle's end."""
        self._damaged.discard(handle)
        pid = self._open.pop(handle).pid
        left = self._walking[pid] - 1
        if left:
            self._walking[pid] = left
        else:
            del self._walking[pid]

    def is_walking(self, pid: int) -> bool:
        """Whether a thread of the process has a folder of the mount open for listing."""
        return pid in self._walking or any(group_of(walker) == pid for walker in self._walking)

    def passes_by(self, caller: Caller, since: float) -> bool:
        """Whether the caller may have come to a file because somebody listed its folder, not to read just that one.

        So it is for who has listed a folder in the last minutes, and for its children (`find -exec`); and for each
        process of a session in which one has listed several folders `since` then, or just now (`find | xargs`): a
        walk of a folder that shows control files lists those below it as well, `ls` does not.
        """
        now = time.monotonic()
        if any(now - one.at <= LISTER_SECONDS for one in self._by(caller.process.pid)):
            return True
        if any(now - one.at <= LISTER_SECONDS for one in self._by(parent_of(caller.process.pid))):
            return True
        return any(
            one.sid == caller.session.sid
            and one.several
            and (one.at > since or now - one.at < WALK_SECONDS or sid_of(pid) == one.sid)
            for pid, one in self._listers.items()
        )

    def _by(self, pid: int) -> list[_Lister]:
        try:
            threads = [int(name) for name in os.listdir(f"/proc/{pid}/task")]
        except OSError:
            threads = [pid]
        return [self._listers[thread] for thread in threads if thread in self._listers]
