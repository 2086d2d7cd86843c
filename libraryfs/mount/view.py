"""The mount's connections to the snapshot: one for the loop, a few for threads; and a file that takes its place."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from libraryfs.errors import SnapshotError
from libraryfs.library.resolver import Library
from libraryfs.store.snapshot import Snapshot

KEPT: Final = 4
"""Idle connections that are kept for threads."""

MOST_STEPS: Final = 20_000_000
"""Steps of SQLite for one use of the loop's Library: some hundred are usual, and this many take half a second."""


class View:
    """One principal's Library, for the loop's thread (`library`) and for others (`borrow`)."""

    def __init__(self, path: Path, principal: str) -> None:
        self.path = path
        self.principal = principal
        self._lock = threading.Lock()
        self._idle: list[Library] = []
        self.identity = self.identity_now()
        self.is_held_back = False
        self._library: Library | None = self._open_for_the_loop()

    @property
    def library(self) -> Library:
        """The loop's own Library. Raises SnapshotError while another file is in the snapshot's place that is none, and
        while the mount is held back."""
        self._check_held_back()
        return self.unguarded

    @property
    def unguarded(self) -> Library:
        """The same also while the mount is held back: for the refresh, whose end that waits for."""
        if self._library is None:
            raise SnapshotError(f"{self.path}: was replaced by a file that cannot be used")
        self._library.snapshot.steps = 0
        return self._library

    def hold_back(self, held: bool) -> None:
        """Whether nothing is to be read: what the kernel remembers cannot be brought up to date."""
        self.is_held_back = held

    def _check_held_back(self) -> None:
        if self.is_held_back:
            raise SnapshotError(f"{self.path}: the mount cannot keep up with its changes; see the mount's log")

    def _open(self) -> Library:
        return Library(Snapshot.open(self.path), self.principal)

    def _open_for_the_loop(self) -> Library:
        library = self._open()
        library.snapshot.limit_steps(MOST_STEPS)
        return library

    def identity_now(self) -> tuple[int, int] | None:
        """Device and number of the file that has the snapshot's path now; None when there is none."""
        try:
            status = os.stat(self.path)
        except OSError:
            return None
        return status.st_dev, status.st_ino

    @property
    def is_open(self) -> bool:
        """Whether `library` can be used."""
        return self._library is not None

    @contextmanager
    def borrow(self, *, guarded: bool = True) -> Iterator[Library]:
        """A Library for the calling thread alone, as long as the block lasts. Raises SnapshotError, as `library` does
        (or as `unguarded`)."""
        if guarded:
            self._check_held_back()
        with self._lock:
            library = self._idle.pop() if self._idle else None
            current = self._library
        if library is None:
            library = self._open()
        try:
            yield library
        finally:
            with self._lock:
                keep = current is not None and self._library is current and len(self._idle) < KEPT
                if keep:
                    self._idle.append(library)
            if not keep:
                library.snapshot.close()

    def replace(self) -> None:
        """Turns to the file that has the path now. Raises SnapshotError when that cannot be used; call it again later.

        The old connections end first. SQLite's journal and its index go by the path, so that connections to both files
        would share them, and each would take the other's for its own.
        """
        self.close()
        self.identity = None
        identity, library = self.identity_now(), self._open_for_the_loop()
        with self._lock:
            self._library, self.identity = library, identity

    def close(self) -> None:
        """Ends all connections that no thread holds."""
        with self._lock:
            ended = self._idle if self._library is None else [*self._idle, self._library]
            self._idle, self._library = [], None
        for library in ended:
            library.snapshot.close()
