"""Keeps the kernel's caches true: what another process commits is taken out of them within a moment.

What a look finds is handled in this order: answers that may hold what is hidden now are emptied, then the pages of open
files are dropped, then names and the rest.

Any fault on the way (a row of the log that is damaged, a table that is gone) has one cure: everything is forgotten, and
the log's place moves on to its end. While even that cannot be done, the kernel may hold what is not to be seen any
more: after PATIENCE seconds of it, requests are answered with EIO, until it is done.
"""

import logging
import threading
import time
from array import array
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple, Protocol

import trio

from libraryfs.errors import LibraryError
from libraryfs.library.resolver import Library
from libraryfs.mount.view import View
from libraryfs.nodes import ROOT_INO
from libraryfs.store import access, changes, entries, inodes
from libraryfs.store.changes import Change, Op

log = logging.getLogger(__name__)

BATCH: Final = 5000
PATIENCE: Final = 5.0
"""Seconds without progress after which the mount answers EIO rather than what may be hidden by now."""
AFTER_A_FAULT: Final = 3
"""How many intervals to wait before the next try."""


class Kernel(Protocol):
    """What the kernel is told. Both may block until requests in work are answered: never on the loop's thread."""

    def forget_name(self, parent: int, name: bytes) -> None:
        """Drop the name, known or known to be absent, and what is below it."""

    def forget_inode(self, ino: int, *, attributes_only: bool = False) -> None:
        """Drop the attributes, and the pages too."""


class _News(NamedTuple):
    """What one look found: changes up to `last`, and the folders of namespaces that came or went for this principal."""

    last: int
    visible: frozenset[int]
    moved: list[Change]
    hidden: list[Change]
    """Those of `moved` that are not visible now."""


class Refresh:
    """Looks for commits by other processes, and tells the kernel what they changed.

    `outdated` is called when answers that were given may hold what is not to be seen any more, with the ids of the
    namespaces that are hidden now, or None for all. `opened` gives the inode numbers of the files that are open.
    """

    def __init__(
        self,
        view: View,
        kernel: Kernel,
        interval: float,
        outdated: Callable[[frozenset[int] | None], None],
        opened: Callable[[], Sequence[int]],
    ) -> None:
        self._view = view
        self._kernel = kernel
        self._interval = interval
        self._tell_outdated = outdated
        self._opened = opened
        self._start(view.unguarded)
        self._missing = False
        self._said = ""
        self._old = array("q")  # inode numbers of a file that was replaced, until the kernel has forgotten them
        self._since: float | None = None  # monotonic: when work began that is not done, or last got on
        self._furthest = 0  # how far forgetting everything has come, in all tries

    def _start(self, library: Library) -> None:
        # The order matters: a commit in between is seen as new at the next look, never missed.
        self._version = library.snapshot.data_version()
        with library.snapshot.reading() as db:
            self._seq: int | None = changes.latest(db)
            self._visible = access.visible(db, library.principal)

    async def run(self) -> None:
        """Looks every `interval` seconds until it is cancelled. No fault of the snapshot ends it."""
        while True:
            await trio.sleep(self._interval)
            try:
                await self.look()
            except Exception as error:
                self._say(error)
                try:
                    await self._start_over()
                except Exception as again:
                    self._say(again)
                    await trio.sleep((AFTER_A_FAULT - 1) * self._interval)

    async def watch(self) -> None:
        """Has the mount answer EIO while the refresh does not get on, until it is cancelled."""
        while True:
            await trio.sleep(self._interval)
            is_late = self._since is not None and time.monotonic() - self._since > PATIENCE
            if is_late and not self._view.is_held_back:
                log.error("refresh: no progress for %g s; requests get EIO until it has caught up", PATIENCE)
                self._view.hold_back(True)
                self._tell_outdated(None)
                # in a thread of its own: the refresh's may hang in the kernel, and so may this one
                threading.Thread(target=self._forget_in_use, args=((),), daemon=True).start()
            elif self._since is None and self._view.is_held_back:
                log.warning("refresh: has caught up; requests are answered again")
                self._view.hold_back(False)

    def _say(self, error: Exception) -> None:
        if repr(error) == self._said:
            return  # each look would say it again
        self._said = repr(error)
        if isinstance(error, LibraryError):
            log.warning("refresh: %s; everything is read anew", error.message)
        else:
            log.error("refresh: cannot look for changes; everything is read anew", exc_info=error)

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
        version = self._view.unguarded.snapshot.data_version()
        if version == self._version and self._seq is not None:
            return
        self._since = self._since or time.monotonic()
        self._version = version
        news = self._news(self._view.unguarded)
        if news is None:
            await self._start_over()
            return
        if news.hidden:
            self._tell_outdated(frozenset(self._visible - news.visible) | {_namespace(one) for one in news.hidden})
        self._visible = news.visible
        await trio.to_thread.run_sync(self._tell_kernel, news, abandon_on_cancel=True)
        self._since, self._furthest, self._said = None, 0, ""

    def _news(self, library: Library) -> _News | None:
        """What was committed since the last look; None when that cannot be told, and everything must be forgotten.

        On the loop, whose requests see the same moment or a later one: what is read or pushed after this is not
        outdated by anything that this returns.
        """
        seq = self._seq
        if seq is None:
            return None
        with library.snapshot.reading() as db:
            if not changes.is_complete_since(db, seq):
                log.info("the change log was cut; everything is read anew")
                return None
            last = changes.latest(db)
            told = changes.access_since(db, seq, last)
            now = access.visible(db, library.principal)
        if (self._visible ^ now) - {change.namespace_id for change in told}:
            return None  # access that changed past the log
        moved, hidden = [], []
        for namespace_id in {change.namespace_id: change for change in told}:
            ops = {change.op for change in told if change.namespace_id == namespace_id}
            shown, was_shown = namespace_id in now, namespace_id in self._visible
            # Both may have come since the last look, with look-ups between them: not only the net change counts.
            if (shown and was_shown and Op.REVOKED not in ops) or (
                not shown and not was_shown and Op.GRANTED not in ops
            ):
                continue  # somebody else's
            folder = next(change for change in told if change.namespace_id == namespace_id)
            moved.append(folder)
            if not shown:
                hidden.append(folder)
        return _News(last, now, moved, hidden)

    def _tell_kernel(self, news: _News) -> None:
        hidden = sorted(news.hidden, key=lambda folder: folder.ino)
        for folder in hidden:  # first the files that are held open
            first, last = inodes.cluster_of(folder.ino)
            for ino in self._opened():
                if first <= ino <= last:
                    self._kernel.forget_inode(ino)
        for folder in news.moved:
            self._kernel.forget_name(folder.parent, folder.name)
            self._kernel.forget_inode(folder.parent, attributes_only=True)
        with self._view.borrow(guarded=False) as library:
            for folder in hidden:  # and what is below a folder that somebody stands in
                self._forget_range(library, *inodes.cluster_of(folder.ino))
            assert self._seq is not None, "the look has seen to it"
            while batch := changes.since(library.snapshot.db, self._seq, news.last, BATCH):
                self._tell(batch)
                self._seq = batch[-1].seq
                self._since = time.monotonic()
            self._seq = news.last

    def _tell(self, batch: Iterable[Change]) -> None:
        parents: set[int] = set()
        for change in batch:
            if change.op in (Op.GRANTED, Op.REVOKED):
                continue
            if change.op in (Op.ADDED, Op.REMOVED):
                self._kernel.forget_name(change.parent, change.name)
                parents.add(change.parent)
            # of an added one too: its removal may have been in a part of the log that could not be read
            self._kernel.forget_inode(change.ino)
        for parent in parents:
            self._kernel.forget_inode(parent, attributes_only=True)

    async def _replaced(self) -> None:
        self._missing = False
        self._since = self._since or time.monotonic()
        if self._view.is_open:
            log.warning("%s: replaced by another file; reading that from now on", self._view.path)
            try:
                self._old = await trio.to_thread.run_sync(self._numbers, abandon_on_cancel=True)
            except Exception as error:  # it was damaged: the more reason to leave it
                log.warning("%s: the old file cannot be read to its end: %s", self._view.path, error)
            self._seq = None
            self._tell_outdated(None)
        self._view.replace()
        await self._start_over()
        self._said = ""

    def _numbers(self) -> "array[int]":
        with self._view.borrow(guarded=False) as library:
            return array("q", (ino for ino, _, _ in entries.between(library.snapshot.db, ROOT_INO, inodes.LARGEST_INO)))

    async def _start_over(self) -> None:
        """Forgets everything, and goes on from the log's end. Raises what the snapshot raises; call it again then."""
        self._since = self._since or time.monotonic()
        if self._seq is not None:
            self._seq = None
            self._tell_outdated(None)
        old, self._old = self._old, array("q")
        await trio.to_thread.run_sync(self._forget_in_use, old, abandon_on_cancel=True)
        self._start(self._view.unguarded)
        seq, self._seq = self._seq, None  # not before it is done
        await trio.to_thread.run_sync(self._forget_all, abandon_on_cancel=True)
        self._seq, self._since, self._furthest = seq, None, 0

    def _forget_in_use(self, old: Iterable[int]) -> None:
        """What can be forgotten without the snapshot: all paths, and what is open."""
        for name in (b"ring", b"agent"):  # with all below them that nobody holds
            self._kernel.forget_name(ROOT_INO, name)
        for ino in self._opened():
            self._kernel.forget_inode(ino)
        for ino in old:
            self._kernel.forget_inode(ino)

    def _forget_all(self) -> None:
        with self._view.borrow(guarded=False) as library:
            self._forget_range(library, ROOT_INO, inodes.LARGEST_INO)

    def _forget_range(self, library: Library, first: int, last: int) -> None:
        for ino, parent, name in entries.between(library.snapshot.db, first, last):
            self._kernel.forget_name(parent, name)
            self._kernel.forget_inode(ino)
            if ino > self._furthest:  # a try that ends where the last one did is no progress
                self._furthest, self._since = ino, time.monotonic()


def _namespace(folder: Change) -> int:
    return folder.namespace_id or 0
