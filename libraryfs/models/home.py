"""Where a user's processes meet the worker of a model: one socket for each model and each way to load it.

The folder is `$XDG_RUNTIME_DIR/libraryfs`, else `run` in the cache, and its owner's alone. A worker's files there have
one name, a checksum over all that shapes it; nothing secret is part of it. The worker holds the lock for as long as it
lives, so that there are never two, and the kernel takes the lock back from one that crashed.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib.util
import json
import os
import socket
import stat
import struct
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

from libraryfs import __version__
from libraryfs.errors import ModelUnavailable
from libraryfs.models import wire
from libraryfs.settings import settings

DEATHS: Final = 2
"""A model that died so often in a row, for the same cause, is left alone for REST_SECONDS."""
REST_SECONDS: Final = 600.0
SEND_SECONDS: Final = 30
"""An end that takes nothing for that long is stuck (stopped, or swapping): sending fails then."""
_BACKLOG: Final = 64
_CREDENTIALS: Final = struct.Struct("3i")  # struct ucred: pid, uid, gid
_RUNTIMES: Final = {"onnx": ("onnxruntime",), "sentence-transformers": ("sentence_transformers", "torch")}


@dataclass(frozen=True)
class Place:
    """The files of one worker."""

    folder: Path
    name: str

    def file(self, kind: str) -> Path:
        """Its `sock`, `lock`, `log` or `deaths`."""
        return self.folder / f"{self.name}.{kind}"

    def connect(self) -> socket.socket | None:
        """A connection to the worker that listens there; None when none does. Raises ModelUnavailable."""
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with _short(self.file("sock")) as address:
                connection.connect(address)
        except (FileNotFoundError, ConnectionRefusedError, BlockingIOError):
            connection.close()
            return None
        if peer_uid(connection) != os.geteuid():
            connection.close()
            raise ModelUnavailable(f"{self.file('sock')}: another user listens there; remove the folder {self.folder}")
        limit_sending(connection)
        return connection

    def listen(self) -> socket.socket:
        """A socket that listens there, in place of what a worker that is gone left. Hold the lock."""
        self.file("sock").unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with _short(self.file("sock")) as address:
            listener.bind(address)
        listener.listen(_BACKLOG)
        return listener

    def lock(self) -> int | None:
        """A descriptor that holds the lock until its last copy is closed; None while a worker lives."""
        descriptor = os.open(self.file("lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        return descriptor

    def last_words(self) -> str:
        """The last line that the worker wrote to its standard error; "" when there is none."""
        try:
            with self.file("log").open("rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - 8192))
                return file.read().decode("utf-8", "replace").strip()
        except OSError:
            return ""

    def note_death(self, life: str, cause: str) -> None:
        """Remember how a worker died; several processes may tell of the same life."""
        known = self._deaths()
        if known.get("life") == life:
            return
        count = int(known.get("count", 0)) + 1 if known.get("cause") == cause else 1
        new = {"life": life, "cause": cause, "count": count, "at": time.time()}
        with contextlib.suppress(OSError):
            fresh = self.file(f"deaths-{os.getpid()}")
            fresh.write_text(json.dumps(new))
            fresh.replace(self.file("deaths"))

    def forget_deaths(self) -> None:
        """The model works, or is to be tried again."""
        with contextlib.suppress(OSError):
            self.file("deaths").unlink()

    def last_death(self) -> str | None:
        """The cause for which the model is left alone; None when it may be started."""
        known = self._deaths()
        age = time.time() - float(known.get("at", 0))
        if int(known.get("count", 0)) >= DEATHS and 0 <= age < REST_SECONDS:
            return str(known["cause"])
        return None

    def _deaths(self) -> dict[str, Any]:
        try:
            return dict(json.loads(self.file("deaths").read_text()))
        except (OSError, ValueError, TypeError):
            return {}


def place(order: wire.Header) -> Place:
    """The place of the worker that this order asks for. Raises ModelUnavailable when there can be no folder for it."""
    shape = {
        "order": order,
        "version": __version__,
        "code": _newest(Path(__file__).parent),
        "python": sys.executable,
        "weights": _state(Path(order["path"])),
        "runtime": [_package(name) for name in _RUNTIMES.get(order.get("backend", ""), ("llama_cpp",))],
    }
    name = blake2b(json.dumps(shape, sort_keys=True).encode(), digest_size=10).hexdigest()
    return Place(_folder(), name)


def peer_uid(connection: socket.socket) -> int:
    """The user at the other end, as the kernel knows it."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return int(_CREDENTIALS.unpack(credentials)[1])


def limit_sending(connection: socket.socket) -> None:
    """Make sending fail after SEND_SECONDS. The kernel's own time-out: Python's would make receiving time out too."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", SEND_SECONDS, 0))


def _folder() -> Path:
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    folder = Path(runtime) / "libraryfs" if runtime and os.path.isdir(runtime) else settings().cache_path / "run"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        state = folder.lstat()
        if state.st_uid != os.geteuid() or not stat.S_ISDIR(state.st_mode):
            raise ModelUnavailable(f"{folder}: not a folder of yours, and models are reached through it: remove it")
        if stat.S_IMODE(state.st_mode) != 0o700:
            folder.chmod(0o700)
    except OSError as error:
        raise ModelUnavailable(
            f"{folder}: {error.strerror}: models are reached through this folder; set XDG_RUNTIME_DIR or "
            "LIBRARYFS_CACHE to one that can be written"
        ) from None
    return folder


@contextlib.contextmanager
def _short(path: Path) -> Iterator[str]:
    """The path as an address: a socket's may have 107 bytes only, and folders have longer names."""
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


def _newest(folder: Path) -> int:
    """The newest change in a folder of code, so that a worker of older code is not met."""
    return max(entry.stat().st_mtime_ns for entry in os.scandir(folder) if entry.name.endswith(".py"))


def _state(path: Path) -> list[Any]:
    """Size and time of change of a file, or of the files in a folder."""
    files = sorted(entry for entry in path.iterdir() if entry.is_file()) if path.is_dir() else [path]
    states = [(file.name, file.stat()) for file in files]
    return [[name, state.st_size, state.st_mtime_ns] for name, state in states]


def _package(name: str) -> list[Any]:
    spec = importlib.util.find_spec(name)
    folders = (spec.submodule_search_locations or ()) if spec is not None else ()
    return [[folder, os.stat(folder).st_mtime_ns] for folder in folders if os.path.isdir(folder)]
