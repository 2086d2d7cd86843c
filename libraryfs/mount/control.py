"""Control files: what a kind of them (`.tree`, `.ask`, …) has to say for itself. The mechanism is in controls.py."""

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, Protocol

from libraryfs.errors import LibraryError
from libraryfs.library.resolver import Library
from libraryfs.nodes import Entry

MAX_REQUEST: Final = 64 * 1024
"""Bytes of a request; a write beyond gets EFBIG."""


class Stop:
    """Tells a thread that nobody waits for its answer any more. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._callbacks: list[Callable[[], None]] = []
        self._stopped = False

    def stop(self) -> None:
        """Ends the work; any number of times."""
        with self._lock:
            self._stopped = True
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    def stopped(self) -> bool:
        """Whether the work must end."""
        return self._stopped

    def on_stop(self, callback: Callable[[], None]) -> None:
        """Calls `callback` once, when the work must end; now, if that was before."""
        with self._lock:
            if not self._stopped:
                self._callbacks.append(callback)
                return
        callback()


@dataclass(frozen=True)
class Call:
    """One request to a control file, in the thread that answers it.

    `library` is the thread's own. `streaming` says that the reader takes parts as they come (one handle); else the
    parts are joined and given when all are there. `emit` sends a part at once, before those that `answer` yields.
    `since` is when the request was complete, on the clock of `time.monotonic()`, which all processes share.
    """

    request: bytes
    folder: Entry
    library: Library
    streaming: bool = False
    stop: Stop = field(default_factory=Stop)
    emit: Callable[[bytes], None] = lambda part: None
    since: float | None = None

    @property
    def path(self) -> str:
        """The library path of the control file's folder."""
        return self.library.path_of(self.folder)


class ControlKind(Protocol):
    """A kind of control file. `answer` and `idle` run in a thread; a LibraryError from them is read as text.

    `number` (1 to 6) makes the inode, `parallel` is how many requests are worked on at once, and `silent` says that
    with nothing asked there is nothing to read, so that `idle` is not even called. `elsewhere`: `answer` is long work
    for Python, and runs in the process of answering.py.
    """

    name: bytes
    number: int
    parallel: int
    silent: bool
    elsewhere: bool

    def answers_in(self, folder: Entry) -> bool:
        """Whether the file can be opened in this folder."""
        ...

    def listed_in(self, folder: Entry) -> bool:
        """Whether this folder's listing shows the file."""
        ...

    def patience(self, request: bytes) -> float | None:
        """Seconds from the request to its answer that the asker has; None: as long as it takes. Runs on the loop."""
        ...

    def idle(self, call: Call) -> bytes:
        """What is read when nothing was asked. Starts nothing that takes long."""
        ...

    def answer(self, call: Call) -> Iterator[bytes]:
        """The answer, in one or more parts."""
        ...


def wants_json(request: bytes) -> bool:
    """Whether a request is JSON, and so is its answer."""
    return request.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{"


def render_error(error: LibraryError, request: bytes) -> bytes:
    """What is read in place of an answer: `error: CODE: message`, or a JSON object when the request was JSON."""
    if wants_json(request):
        return json.dumps({"error": {"code": error.code, "message": error.message}}).encode() + b"\n"
    return f"error: {error.code}: {error.message}\n".encode("utf-8", "backslashreplace")
