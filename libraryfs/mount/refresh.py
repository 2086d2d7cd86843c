"""Keeps the kernel's caches true: what another process commits is taken out of them within a moment."""

import logging
from array import array
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, Protocol

import trio

from libraryfs.errors import LibraryError
from libraryfs.library.resolver import Library
from libraryfs.mount.view import View
from libraryfs.nodes import ROOT_INO
from libraryfs.store import changes, entries, inodes
from libraryfs.store.changes import Change, Op

log = logging.getLogger(__name__)

BATCH: Final = 5000
LARGEST_INO: Final = (1 << inodes.ENTRY_BITS) - 1


class Kernel(Protocol):
    """What the kernel is told. Both may block until requests in work are answered: never on the loop's thread."""

    def forget_name(self, parent: int, name: bytes) -> None:
        """Drop the name, known or known to be absent, and what is below it."""

    def forget_inode(self, ino: int, *, attributes_only: bool = False) -> None:
        """Drop the attributes, and the pages too."""


class _Access(NamedTuple):
    """Grants (4) and revocations (5) of one namespace, and its folder."""

    folder: Change
    ops: set[int]


class Refresh:
    """Looks for commits by other processes, and tells the kernel what they changed.

    `outdated` is called when answers that were given may hold what is not to be seen any more: after a revocation, and
    when another file has the snapshot's path.
    """

    def __init__(self, view: View, kernel: Kernel, interval: float, outdated: Callable[[], None]) -> None:
        self._view = view
        self._kernel = kernel
        self._interval = interval
        self._tell_outdated = outdated
        self._start(view.library)
        self._missing = False
        self._said = ""
        self._old = array("q")  # inode numbers of a file that was replaced, until the kernel has forgotten them

    def _start(self, library: Library) -> None:
        # The order matters: a commit in between is seen as new at the next look, never missed.
        self._version = library.snapshot.data_version()
        self._visible = library.visible()
        self._seq = changes.latest(library.snapshot.db)

    async def run(self) -> None:
        """Looks every `interval` seconds until it is cancelled. No fault of the snapshot ends it."""
        while True:
            await trio.sleep(self._interval)
            try:
                await self.look()
                self._said = ""
            except LibraryError as error:
                if error.message != self._said:  # each look would say it again
                    log.warning("refresh: %s", error.message)
                self._said = error.message
            except Exception as error:
                if repr(error) != self._said:
                    log.exception("refresh: cannot look for changes")
                self._said = repr(error)

    async def look(self) -> None:
        """One look: nothing to do, or the changes since the last one, or another file."""
        identity = self._view.identity_now()
        if identity is None:
            if not self._missing:
                log.warning("%s: deleted; the mount goes on with what it had", self._view.path)
            self._missing = True
        elif identity != self._view.identity:
            await self._replaced()
            return
        version = self._view.library.snapshot.data_version()
        if version != self._version:
            self._version = version
            if await trio.to_thread.run_sync(self._catch_up, abandon_on_cancel=True):
                self._tell_outdated()

    async def _replaced(self) -> None:
        self._missing = False
        if self._view.is_open:
            log.warning("%s: replaced by another file; reading that from now on", self._view.path)
            try:
                self._old = await trio.to_thread.run_sync(self._numbers, abandon_on_cancel=True)
            except Exception as error:  # it was damaged: the more reason to leave it
                log.warning("%s: the old file cannot be read to its end: %s", self._view.path, error)
        self._tell_outdated()
        self._view.replace()
        self._start(self._view.library)
        await trio.to_thread.run_sync(self._forget_everything, abandon_on_cancel=True)
        self._old = array("q")

    def _numbers(self) -> "array[int]":
        with self._view.borrow() as library:
            return array("q", (ino for ino, _, _ in entries.between(library.snapshot.db, ROOT_INO, LARGEST_INO)))

    def _catch_up(self) -> bool:
        """Whether something that the principal saw is hidden now."""
        with self._view.borrow() as library:
            db = library.snapshot.db
            if not changes.is_complete_since(db, self._seq):
                log.info("the change log was cut; everything is read anew")
                self._seq, self._visible = changes.latest(db), library.visible()
                self._forget_all_of(library)
                return True
            access: dict[int, _Access] = {}
            while batch := changes.since(db, self._seq, BATCH):
                self._tell(batch, access)
                self._seq = batch[-1].seq
            return self._tell_access(library, access)

    def _tell(self, batch: Iterable[Change], access: dict[int, _Access]) -> None:
        parents: set[int] = set()
        for change in batch:
            if change.op in (Op.GRANTED, Op.REVOKED):
                access.setdefault(change.namespace_id or 0, _Access(change, set())).ops.add(change.op)
                continue
            if change.op in (Op.ADDED, Op.REMOVED):
                self._kernel.forget_name(change.parent, change.name)
                parents.add(change.parent)
            if change.op in (Op.CHANGED, Op.REMOVED):
                self._kernel.forget_inode(change.ino)
        for parent in parents:
            self._kernel.forget_inode(parent, attributes_only=True)

    def _tell_access(self, library: Library, access: dict[int, _Access]) -> bool:
        """What grants and revocations, of whomever, mean for this principal; whether it lost any.

        Both may have come since the last look, with look-ups between them: not only the net change counts.
        """
        before, now = self._visible, library.visible()
        self._visible = now
        lost = False
        for namespace_id, (folder, ops) in access.items():
            shown, was_shown = namespace_id in now, namespace_id in before
            if (shown and was_shown and Op.REVOKED not in ops) or (
                not shown and not was_shown and Op.GRANTED not in ops
            ):
                continue  # somebody else's
            self._kernel.forget_name(folder.parent, folder.name)
            self._kernel.forget_inode(folder.parent, attributes_only=True)
            if not shown:  # files that are held open, and what is below a folder that somebody stands in
                self._forget_range(library, *inodes.cluster_of(folder.ino))
                lost = True
        return lost

    def _forget_everything(self) -> None:
        for folder, name in ((ROOT_INO, b"ring"), (ROOT_INO, b"agent")):  # with all below them that nobody holds
            self._kernel.forget_name(folder, name)
        for ino in self._old:
            self._kernel.forget_inode(ino)
        with self._view.borrow() as library:
            self._forget_all_of(library)

    def _forget_all_of(self, library: Library) -> None:
        self._forget_range(library, ROOT_INO, LARGEST_INO)

    def _forget_range(self, library: Library, first: int, last: int) -> None:
        for ino, parent, name in entries.between(library.snapshot.db, first, last):
            self._kernel.forget_name(parent, name)
            self._kernel.forget_inode(ino)
