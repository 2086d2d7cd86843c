"""The mount's connections to the snapshot: one for the loop, a few for threads; and a file that takes its place."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from libraryfs.library.resolver import Library
from libraryfs.store.snapshot import Snapshot

KEPT: Final = 4
"""Idle connections that are kept for threads."""


class View:
    """One principal's Library, for the loop's thread (`library`) and for others (`borrow`)."""

    def __init__(self, path: Path, principal: str) -> None:
        self.path = path
        self.principal = principal
        self._lock = threading.Lock()
        self._idle: list[Library] = []
        self.identity = self.identity_now()
        self.library = self._open()

    def _open(self) -> Library:
        return Library(Snapshot.open(self.path), self.principal)

    def identity_now(self) -> tuple[int, int] | None:
        """Device and number of the file that has the snapshot's path now; None when there is none."""
        try:
            status = os.stat(self.path)
        except OSError:
            return None
        return status.st_dev, status.st_ino

    @contextmanager
    def borrow(self) -> Iterator[Library]:
        """A Library for the calling thread alone, as long as the block lasts. Raises SnapshotError."""
        with self._lock:
            library = self._idle.pop() if self._idle else None
            current = self.library
        if library is None:
            library = self._open()
        try:
            yield library
        finally:
            with self._lock:
                keep = self.library is current and len(self._idle) < KEPT
                if keep:
                    self._idle.append(library)
            if not keep:
                library.snapshot.close()

    def replace(self) -> Library:
        """Turns to the file that has the path now, and returns the Library of the old one, still open.

        Raises SnapshotError when the new file cannot be used; then the old one stays in use.
        """
        identity = self.identity_now()
        library = self._open()
        with self._lock:
            old, idle = self.library, self._idle
            self.library, self._idle, self.identity = library, [], identity
        for unused in idle:
            unused.snapshot.close()
        return old

    def close(self) -> None:
        """Ends all connections that no thread holds."""
        with self._lock:
            idle, self._idle = self._idle, []
        for library in [*idle, self.library]:
            library.snapshot.close()
