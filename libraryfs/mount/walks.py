"""Which process has which folder open: a process that walks the tree never waits for an answer."""

from itertools import count
from typing import Final, NamedTuple

from libraryfs.mount.processes import group_of

FIRST_HANDLE: Final = 1


class _Open(NamedTuple):
    folder: int
    pid: int


class Walks:
    """Handles of open folders."""

    def __init__(self) -> None:
        self._numbers = count(FIRST_HANDLE)
        self._open: dict[int, _Open] = {}
        self._walking: dict[int, int] = {}  # pid: how many folders it has open
        self._damaged: set[int] = set()

    def opened(self, folder: int, pid: int) -> int:
        """A new handle."""
        handle = next(self._numbers)
        self._open[handle] = _Open(folder, pid)
        self._walking[pid] = self._walking.get(pid, 0) + 1
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
