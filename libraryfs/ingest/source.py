"""What an import reads from: the two passes that every kind of source answers."""

import re
from collections.abc import Iterator
from hashlib import blake2b
from typing import Final, NamedTuple, Protocol

from libraryfs.rows import ArtifactRow, EdgeRow, GrantRow, MemoryRow, NamespaceRow, WorkspaceRow
from libraryfs.store.bodies import Body

ContentRow = MemoryRow | WorkspaceRow | ArtifactRow
AnyRow = ContentRow | EdgeRow | GrantRow | NamespaceRow

_UNFIT: Final = re.compile(r"[\x00-\x1f\x7f]")
_ID_LENGTH: Final = 1000


class Scanned(NamedTuple):
    """A checked row. `locator` finds it again; `where` names it in a message (a file, or file and line)."""

    row: AnyRow
    locator: str
    where: str


class Loaded(NamedTuple):
    """A row again, now with its content; the row's own content fields are not looked at.

    `is_path_id` says that its id is its path in the source, for want of one.
    `time_ns` is the time of a row that gives none, where it is new or has changed; None is the time of the import.
    """

    row: ContentRow
    body: Body
    time_ns: int | None = None
    is_path_id: bool = False


class FileState(NamedTuple):
    """A file of a source at its last import. `ino` is its row's number, 0 where it has none.

    `note` says why a file that was read has no row, or what its row depends on besides the file; else it is empty.
    """

    path: str
    size: int
    mtime_ns: int
    inode: int
    ino: int
    note: str


class Census(NamedTuple):
    """What a scan found out besides the rows. Only a source of files has one.

    `is_whole` says that every row of the source was given; else `kept` ones were not, since their files are as they
    were, and the rows of the `gone` paths go. The rows `stays` (by number) are of files that could not be read.
    """

    is_whole: bool
    kept: int
    gone: list[str]
    stays: set[int]
    states: list[FileState]
    rules: bytes


class Source(Protocol):
    """A place that rows come from. Raises InvalidSource from both passes."""

    uri: str
    """Which source this is: importing it again removes what it no longer has."""
    may_repeat: bool
    """Whether two rows of one id are said and the first is taken, rather than refused."""

    def scan(self) -> Iterator[Scanned]:
        """First pass: every row, checked, without its content."""

    def census(self) -> Census | None:
        """After the first pass. None when all rows were given and no files stand behind them."""

    def load(self, locator: str) -> Loaded:
        """Second pass: one row with its content."""

    def again(self, locator: str) -> Scanned | None:
        """A row whose file changed since the first pass, as it is now; None when it cannot be had."""

    def close(self) -> None:
        """Ends the reading."""


def path_id(path: str) -> str:
    """The id of a row that has none: its path in the source, made an id (valid Unicode, no control characters)."""
    raw = path.encode("utf-8", "surrogateescape")
    text = _UNFIT.sub(lambda match: f"\\x{ord(match[0]):02x}", raw.decode("utf-8", "backslashreplace"))
    if text == path and len(text) <= _ID_LENGTH:
        return text
    return text[: _ID_LENGTH - 17] + "~" + blake2b(raw, digest_size=8).hexdigest()
