"""Read-ahead across files: the kernel gets the next small files of a folder before anybody asks for them.

Files are read in the order in which a folder lists them (grep, tar and os.walk do), and each first READ of one costs a
round trip. So a second cold READ that follows the first in that order begins a run: the next bodies are pushed into the
page cache. When the file in the middle of what was pushed is opened, the run goes on with twice as many, up to a cap in
files and bytes. A run whose files nobody opens costs one push and ends.

Nothing wrong can stay in the page cache: content is read and pushed by the loop's own thread with no other request in
between, so a later commit is noticed by the refresh after the push, and taken back. And a file that is open is never
pushed: the kernel may wait for its READ with the page locked, and the push would wait for the page.
"""

import errno
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from libraryfs.library.resolver import Library
from libraryfs.nodes import Entry
from libraryfs.store import bodies, entries

FIRST_WINDOW: Final = 16
LAST_WINDOW: Final = 128
WINDOW_BYTES: Final = 1024 * 1024
NEAR: Final = 8
"""A file is in order when it is among this many that follow the last one; several readers take turns."""
RUNS: Final = 32
"""Folders in which a run is remembered."""


@dataclass
class _Run:
    last: Entry
    """The last file that was read or pushed."""
    window: int = 0
    trigger: int = 0
    """The file whose opening makes the run go on; 0 before the first push."""


class ReadAhead:
    """Decides what to push. `push(ino, data)` stores data in the kernel's page cache, and raises OSError where the
    kernel does not know the inode (any more)."""

    def __init__(self, push: Callable[[int, bytes], None]) -> None:
        self._push = push
        self._runs: OrderedDict[int, _Run] = OrderedDict()
        self._triggers: dict[int, _Run] = {}
        self._open: dict[int, int] = {}

    def opened(self, ino: int, library: Library) -> None:
        """A content file is opened."""
        self._open[ino] = self._open.get(ino, 0) + 1
        run = self._triggers.pop(ino, None)
        if run is not None:
            run.window = min(run.window * 2, LAST_WINDOW)
            self._advance(run, library)

    def released(self, ino: int) -> None:
        """An open of a content file has ended."""
        count = self._open.get(ino, 0) - 1
        if count > 0:
            self._open[ino] = count
        else:
            self._open.pop(ino, None)

    def open_now(self) -> list[int]:
        """The inode numbers of content files that are open. From any thread."""
        return list(self._open)

    def read(self, entry: Entry, library: Library) -> None:
        """The kernel had to ask for the start of a file: the sign that its folder is cold."""
        run = self._runs.get(entry.parent)
        if run is None:
            self._runs[entry.parent] = _Run(entry)
            if len(self._runs) > RUNS:
                _, oldest = self._runs.popitem(last=False)
                self._triggers.pop(oldest.trigger, None)
            return
        self._runs.move_to_end(entry.parent)
        if entry.ino == run.last.ino:
            return
        in_order = entry.ino > run.last.ino and any(
            entry.ino == near.ino for near in entries.children(library.snapshot.db, entry.parent, run.last.ino, NEAR)
        )
        self._triggers.pop(run.trigger, None)
        run.last = entry
        if in_order:
            run.window = FIRST_WINDOW
            self._advance(run, library)

    def _advance(self, run: _Run, library: Library) -> None:
        """Pushes the next files of the run, and sets the trigger of the step after it."""
        found = bodies.following(library.snapshot.db, run.last, run.window, WINDOW_BYTES)
        for number, (entry, data) in enumerate(found):
            if number == len(found) // 2:
                run.trigger = entry.ino
                self._triggers[entry.ino] = run
            run.last = entry
            if entry.ino in self._open or not data:
                continue
            try:
                self._push(entry.ino, data)
            except OSError as error:
                if error.errno != errno.ENOENT:
                    raise
                break  # not listed that far yet
