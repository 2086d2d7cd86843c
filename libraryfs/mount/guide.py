"""`README.md` and `AGENTS.md` at the root of the mount: what is here and how to ask, in the words of this view.

Both hold the same text. It is not in the snapshot: it names what the principal sees, and changes when that changes.
"""

import logging
import time
from typing import Final

import trio
from pyfuse3 import EntryAttributes

from libraryfs.errors import LibraryError
from libraryfs.library.resolver import Library
from libraryfs.mount.attributes import Attributes
from libraryfs.mount.kernel import KernelCaches
from libraryfs.mount.view import View
from libraryfs.nodes import ROOT_INO, Entry, Kind
from libraryfs.paths import SECTIONS, shown
from libraryfs.store.snapshot import meaning

log = logging.getLogger(__name__)

NAMES: Final = {b"README.md": 4, b"AGENTS.md": 5}
"""Inode numbers next to those of /, /ring and /agent: no row has any so small."""

NAMED: Final = 20
"""How many rings and how many agents are named; the rest are counted."""

TEXT: Final = """\
# The library of {principal}

What a team knows, as plain files: a read-only view of what {principal} may see. Nothing can be changed here.

- `ring/NAME/` is a team's knowledge, in {sections}.
  Here: {rings}.
- `agent/NAME/memory/` is what one agent remembers. Here: {agents}.

Look: `ls`, `cat`, `grep -r`, `find` and editors work as on any disk, and start no model.
- `cat {example}/.tree` shows what is below a folder, `cat {example}/.drilldown` excerpts as well.
  Both answer in every folder; no `ls` shows them.
- `getfattr -d FILE` shows a file's attributes `user.library.*`: id, type, confidence, dates, …
  A file that has `superseded_by` is out of date.

Ask, in any folder, about what is below it (`ls` shows `.ask` here, in each ring and in each agent; it answers in all):

    cd {folder}
    echo "When do we deploy?" > .ask; cat .ask

- The answer cites its files. "not in the library" means just that: nothing is made up.
- JSON in, JSON out: `{{"question": "When do we deploy?", "ground": true}}`.
- An answer by path is for the session (setsid) and the job that asked, for ten minutes.
  Its last line says its question.
- Harnesses and tools: ask and read in one command. On one handle an exchange is nobody else's, and streams:
  `exec 3<>.ask; echo "When do we deploy?" >&3; cat <&3; exec 3>&-`

Check: `cat ring/NAME/.eval` shows how the ring's eval set did last; `echo run > .eval; cat .eval` runs it.
"""


def text(library: Library, mountpoint: str) -> bytes:
    """The text for what this principal sees now."""
    spaces = library.namespaces()
    rings = [space.name for space in spaces if space.kind == "ring"]
    agents = [space.name for space in spaces if space.kind == "agent"]
    example = f"ring/{shown(rings[0])}" if rings else f"agent/{shown(agents[0])}" if agents else "ring"
    made = TEXT.format(
        principal=library.principal,
        sections=", ".join(f"`{section}`" for section in SECTIONS),
        rings=_named(rings),
        agents=_named(agents),
        example=example,
        folder=f"{shown(mountpoint)}/{example}",
    )
    return made.encode("utf-8", "backslashreplace")


def _named(names: list[str]) -> str:
    if not names:
        return "none that you may see"
    rest = len(names) - NAMED
    return ", ".join(f"`{shown(name)}`" for name in names[:NAMED]) + (f" and {rest} more" if rest > 0 else "")


class Guide:
    """The two files. Their bytes stay until `watch` finds that the view has changed, so that sizes are exact."""

    def __init__(self, view: View, attributes: Attributes, kernel: KernelCaches, mountpoint: str) -> None:
        self._view = view
        self._attributes = attributes
        self._kernel = kernel
        self._mountpoint = mountpoint.rstrip("/")
        self._moment: object = None
        self._text = b""
        self._changed_ns = time.time_ns()
        try:
            self._text = text(view.library, self._mountpoint)
            self._changed_ns = view.library.entry(ROOT_INO).mtime_ns
        except LibraryError as error:
            log.warning("README.md: %s", error.message)  # the mount shows what can be read all the same

    @staticmethod
    def has(ino: int) -> bool:
        """Whether the number is one of the two files'."""
        return ino in NAMES.values()

    def lookup(self, folder: Entry, name: bytes) -> EntryAttributes | None:
        """The attributes of a name; None where it is not one of the two."""
        return self.attributes(NAMES[name]) if folder.ino == ROOT_INO and name in NAMES else None

    def listed(self, folder: Entry) -> list[tuple[bytes, EntryAttributes]]:
        """Both at the root, by inode; elsewhere none."""
        return [(name, self.attributes(ino)) for name, ino in NAMES.items()] if folder.ino == ROOT_INO else []

    def attributes(self, ino: int) -> EntryAttributes:
        """What stat shows. Raises as any request does where the view cannot be used."""
        self._view.library.visible()
        filled = self._attributes.blank()
        self._attributes.fill(filled, ino, Kind.ITEM, len(self._text), self._changed_ns, self._changed_ns)
        return filled

    def read(self, offset: int, size: int) -> bytes:
        """Bytes of either."""
        self._view.library.visible()
        return self._text[offset : offset + size]

    async def watch(self, seconds: float) -> None:
        """Looks that often whether the text is another one, and has the kernel forget the old one. Until cancelled."""
        while True:
            await trio.sleep(seconds)
            try:
                await self._look()
            except LibraryError:
                continue  # the refresh says what is wrong with the snapshot
            except Exception:
                log.exception("README.md: a bug")
                await trio.sleep(60)

    async def _look(self) -> None:
        moment: object = None
        try:
            moment = (self._view.identity, self._view.library.snapshot.data_version())
            if moment == self._moment:
                return
            made = text(self._view.library, self._mountpoint)
        except Exception as error:
            if not isinstance(error, LibraryError) and meaning(error) is None:
                raise
            moment, made = None, b""  # what the view is now cannot be told: nothing is named that may be hidden
        self._moment = moment
        if made == self._text:
            return
        self._text, self._changed_ns = made, time.time_ns()
        for ino in NAMES.values():
            await trio.to_thread.run_sync(self._kernel.forget_inode, ino, abandon_on_cancel=True)
