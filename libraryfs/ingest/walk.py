"""Walking a source folder: what there is to read, what is as it was, and what is left out and why.

Nothing outside of the folder is read, and no symlink is followed: what a link inside the folder leads to is met at its
own place. So no walk can loop, and devices, FIFOs and sockets are never opened.
"""

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from libraryfs.ingest.ignore import Chain, Rules

LINK_INSIDE: Final = "symlink to what is imported at its own place"
LINK_OUTSIDE: Final = "symlink that leads nowhere or out of the source"
NOT_A_FILE: Final = "device, FIFO or socket"
OWN_SNAPSHOT: Final = "a libraryfs snapshot"
OWN_MOUNT: Final = "a mounted library"

FOLDER: Final = -1
"""The size of a folder in a Stat."""

Skip = Callable[[str, str], None]
"""Hears of each path that is left out, and the reason."""
Enter = Callable[[str, frozenset[str]], None]
"""Hears of each folder, and the names in it, before anything of it is given."""


class Stat(NamedTuple):
    """What tells that a file is as it was; of a folder only that it is one."""

    size: int
    mtime_ns: int
    inode: int


class Found(NamedTuple):
    """A folder or a regular file below the source. `path` is relative to it, with `/`."""

    path: str
    stat: Stat

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder."""
        return self.stat.size == FOLDER


A_FOLDER: Final = Stat(FOLDER, 0, 0)


class Walk:
    """One walk over `root`. After it, `known` holds what was not met as it was, `kept` counts what was.

    `unreadable` has folders that could not be listed, with the reason: nothing is known of what is below them.
    """

    def __init__(
        self,
        root: Path,
        rules: Rules,
        known: dict[str, Stat],
        skip: Skip,
        enter: Enter,
        own: frozenset[str],
        *,
        trust: bool = True,
    ) -> None:
        """`known` maps paths to what they were; what is still so is taken out of it and not given. With `trust` the
        rules let in what is known. `own`: real paths of snapshots that are never read."""
        self.root = root
        self.known = known
        self.kept = 0
        self.unreadable: dict[str, str] = {}
        self._trust = trust
        self._rules = rules
        self._skip = skip
        self._enter = enter
        self._own = own
        self._own_names = frozenset(os.path.basename(one) for one in own)
        self._real_root = os.path.realpath(root)
        self._mounts = _library_mounts()

    def __iter__(self) -> Iterator[Found]:
        """Everything that is new or changed, each folder before what it holds, by name."""
        pending: list[tuple[str, Chain, bool]] = [("", self._rules.above(), False)]
        while pending:
            folder, chain, only_included = pending.pop()
            subfolders: list[tuple[str, Chain, bool]] = []
            entries = self._list(folder)
            names = frozenset(entry.name for entry in entries)
            chain = self._rules.enter(chain, folder, names)
            self._enter(folder, names)
            for entry in entries:
                path = f"{folder}/{entry.name}" if folder else entry.name
                found, wanted = self._look(entry, path, chain, names, only_included)
                if found is None:
                    continue
                if found.is_folder:
                    subfolders.append((path, chain, not wanted))
                if not wanted:
                    continue
                if self.known.get(path) == found.stat:
                    del self.known[path]
                    self.kept += 1
                else:
                    yield found
            pending.extend(reversed(subfolders))

    def _list(self, folder: str) -> list["os.DirEntry[str]"]:
        try:
            with os.scandir(f"{self.root}/{folder}" if folder else self.root) as listing:
                return sorted(listing, key=_name_of)
        except OSError as error:
            if not folder:
                raise
            self.unreadable[folder] = error.strerror or str(error)
            return []

    def _look(
        self, entry: "os.DirEntry[str]", path: str, chain: Chain, names: frozenset[str], only_included: bool
    ) -> tuple[Found | None, bool]:
        """An entry, and whether it is wanted. A folder that is not is given where it may hold what is wanted."""
        try:
            if entry.is_symlink():
                self._link(entry, path, chain, names, only_included)
                return None, False
            is_folder = entry.is_dir(follow_symlinks=False)
            status = None if is_folder else entry.stat(follow_symlinks=False)
        except OSError as error:
            self.unreadable[path] = error.strerror or str(error)
            return None, False
        wanted = True
        if only_included:
            wanted = not is_folder and self._rules.is_included(path)
        elif not (self._trust and path in self.known) and (reason := self._rules.reason(chain, path, is_folder, names)):
            self._skip(path + "/" if is_folder else path, reason)
            wanted = False
        if not wanted and not (is_folder and self._rules.may_hold_included(path)):
            return None, False
        return self._regular(entry, path, status), wanted

    def _regular(self, entry: "os.DirEntry[str]", path: str, status: os.stat_result | None) -> Found | None:
        if status is None:
            if self._mounts and os.path.join(self._real_root, path) in self._mounts:
                self._skip(path + "/", OWN_MOUNT)
                return None
            return Found(path, A_FOLDER)
        if not stat.S_ISREG(status.st_mode):
            self._skip(path, NOT_A_FILE)
            return None
        if entry.name in self._own_names and os.path.realpath(entry.path) in self._own:
            self._skip(path, OWN_SNAPSHOT)
            return None
        return Found(path, Stat(status.st_size, status.st_mtime_ns, status.st_ino))

    def _link(
        self, entry: "os.DirEntry[str]", path: str, chain: Chain, names: frozenset[str], only_included: bool
    ) -> None:
        if only_included:
            return
        if reason := self._rules.reason(chain, path, False, names):
            self._skip(path, reason)
            return
        try:
            target = os.path.realpath(entry.path, strict=True)
            mode = os.stat(target).st_mode
        except OSError:  # dangling, or a loop of links
            self._skip(path, LINK_OUTSIDE)
            return
        if os.path.commonpath((target, self._real_root)) != self._real_root:
            self._skip(path, LINK_OUTSIDE)
        elif stat.S_ISDIR(mode) or stat.S_ISREG(mode):
            self._skip(path, LINK_INSIDE)
        else:
            self._skip(path, NOT_A_FILE)


def _name_of(entry: "os.DirEntry[str]") -> str:
    return entry.name


def _library_mounts() -> frozenset[str]:
    """Where libraries are mounted on this machine: one must not be read into another, least of all into itself."""
    try:
        lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return frozenset()
    points = (line.split(" - ") for line in lines)
    found = (left.split()[4] for left, right in points if "libraryfs" in right.split()[0])
    return frozenset(point.encode("latin-1", "replace").decode("unicode_escape") for point in found)
