"""Open control files: three ways to have one open."""

from dataclasses import dataclass, field

from libraryfs.mount.control import ControlKind
from libraryfs.mount.exchange import Exchange
from libraryfs.mount.processes import Caller


@dataclass
class Reader:
    """Opened to read, by path: what there is to read is known, and its size exact."""

    ino: int
    """The number that the kernel knows it by: it must lead somewhere as long as this is open."""
    data: bytes
    touched: set[int] | None
    """The namespaces that it may hold something of; None: all."""


@dataclass
class Writer:
    """Opened to write, by path: a request of the one who opened it. Each request that is begun is a new exchange."""

    ino: int
    kind: ControlKind
    folder: int
    caller: Caller
    exchange: Exchange | None = None
    refused: bool = False
    """A request was too long: nothing more is taken from this handle."""


@dataclass
class Private:
    """Opened to read and write: its requests and answers are nobody else's. Reads go on where the last one ended, for
    the offsets that the kernel gives are those of the writes as well."""

    kind: ControlKind
    folder: int
    sid: int
    ino: int
    """A number of its own (privates.py)."""
    exchange: Exchange | None = None
    idle: bytes | None = None
    cursor: int = field(default=0)


Handle = Reader | Writer | Private
