"""The pages of a listing: the next one is read while the kernel works through the last one."""

import trio

from libraryfs.mount.view import View
from libraryfs.nodes import Entry
from libraryfs.store.entries import Listed

Page = tuple[list[Listed], bool]
EMPTY: Page = ([], False)


class Listing:
    """Reads pages for readdir, and one page ahead. What was read ahead is used only if nothing was committed since."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._ahead: tuple[object, Page] = (None, EMPTY)
        self._wanted: tuple[Entry, int, int] | None = None

    def page(self, folder: Entry, after: int, limit: int) -> Page:
        """Up to `limit` entries after the number `after`, [] at the end; and whether damaged ones were left out."""
        self._wanted = None
        key, page = self._ahead
        self._ahead = (None, EMPTY)
        return page if key == self._key(folder, after) else self._view.library.listing(folder, after, limit)

    def expect(self, folder: Entry, after: int, limit: int) -> None:
        """This page will be asked for next: it is read as soon as the loop has nothing else to do."""
        if self._wanted is None:
            trio.lowlevel.spawn_system_task(self._read)
        self._wanted = (folder, after, limit)

    async def _read(self) -> None:
        if self._wanted is None:
            return  # it was asked for before the loop came to this
        folder, after, limit = self._wanted
        self._wanted = None
        try:
            key = self._key(folder, after)
            self._ahead = (key, self._view.library.listing(folder, after, limit))
        except Exception:
            self._ahead = (None, EMPTY)  # the request itself will meet the fault, and say so

    def _key(self, folder: Entry, after: int) -> object:
        return self._view.identity, self._view.library.snapshot.data_version(), folder.ino, after
