"""The worker process: loads one model, answers one request after another, ends when nobody asks any more.

`python -m libraryfs.models.worker FD PATH KIND`, where FD is a socket that listens at PATH; started by `spawn` only,
with the lock of its place held by an inherited descriptor. The first client says what to load. Each client has a thread
that reads its requests and cancellations, so that it is seen at once that it is gone; one more lets clients in and
looks for the end; the main thread computes.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import resource
import socket
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from libraryfs import scheduling
from libraryfs.errors import LibraryError
from libraryfs.models import home, wire
from libraryfs.models.spawn import OUT_OF_MEMORY, about_memory
from libraryfs.models.worker_tasks import Connection, Model, Requests, Stopped, Task

LOOK_SECONDS = 2.0
"""How often an idle worker looks whether it is to end."""


@dataclass
class _Shared:
    """What the threads share."""

    requests: Requests = field(default_factory=Requests)
    clients: set[Connection] = field(default_factory=set)
    order: wire.Header = field(default_factory=dict)
    ordered: threading.Event = field(default_factory=threading.Event)
    idle_seconds: float = 60.0
    """Until the first client says it."""


def main() -> None:
    """Serve the listening socket whose number and path are the first arguments."""
    faulthandler.enable()
    listener = socket.socket(fileno=int(sys.argv[1]))
    _go_first_when_memory_ends()
    shared = _Shared()
    threading.Thread(target=_admit, args=(listener, Path(sys.argv[2]), shared), daemon=True).start()
    shared.ordered.wait()
    _limit_memory(shared.order["memory_bytes"])
    try:
        model = _load(shared.order)
    except BaseException as error:
        _tell(shared, {"failed": _as_error(error)})
        _leave(1)
    scheduling.give_way()  # only now: somebody waits for the loading, which is short
    while True:
        task = shared.requests.next()
        task.send({"started": True})
        try:
            header, body = (model.describe(), b"") if task.header["do"] == "describe" else model.run(task)
            task.send({"done": header}, body)
        except Stopped:
            continue
        except BaseException as error:
            if _is_memory(error):  # its state cannot be trusted now
                print("out of memory", file=sys.stderr, flush=True)  # noqa: T201  (the last words that clients read)
                _leave(OUT_OF_MEMORY)
            task.send({"failed": _as_error(error)})


def _load(order: wire.Header) -> Model:
    if order.get("backend") == "onnx":
        from libraryfs.models.worker_onnx import OnnxModel

        return OnnxModel(order["path"], threads=order["threads"])
    if order["kind"] == "embedder":
        from libraryfs.models.worker_embed import SentenceModel

        return SentenceModel(order["path"], threads=order["threads"])
    from libraryfs.models.worker_llama import LlamaModel

    return LlamaModel(order["path"], context=order["context"], threads=order["threads"])


def _admit(listener: socket.socket, path: Path, shared: _Shared) -> None:
    """Let this user's clients in, until there has been nothing to do for long enough."""
    mine = _inode(path)
    listener.settimeout(LOOK_SECONDS)
    while True:
        # Where the socket is gone, as after a log-out, nobody new can come.
        idle = shared.requests.idle_seconds()
        if idle >= shared.idle_seconds or (not shared.clients and idle >= LOOK_SECONDS and _inode(path) != mine):
            _retire(path, mine, shared)
        listener.settimeout(min(LOOK_SECONDS, max(0.05, shared.idle_seconds - idle)))
        try:
            end, _ = listener.accept()
        except TimeoutError:
            continue
        end.settimeout(None)
        if home.peer_uid(end) != os.geteuid():
            end.close()
            continue
        home.limit_sending(end)
        client = Connection(end)
        shared.clients.add(client)
        client.send({"pid": os.getpid()})
        threading.Thread(target=_read, args=(client, shared), daemon=True).start()


def _read(client: Connection, shared: _Shared) -> None:
    """Take what a client sends, until it is gone."""
    with contextlib.suppress(wire.Closed, OSError):
        while True:
            header, body = wire.receive(client.end)
            if "order" in header:
                shared.idle_seconds = header["idle_seconds"]
                shared.order = header["order"]
                shared.ordered.set()
            elif "leave" in header:
                _leave(0)
            elif "cancel" in header:
                shared.requests.cancel(client, header["cancel"])
            else:
                shared.requests.add(Task(header, body, client))
    shared.clients.discard(client)
    shared.requests.drop(client)
    client.end.close()


def _retire(path: Path, mine: int | None, shared: _Shared) -> NoReturn:
    """End, so that a client that comes now starts another: no socket first, then the word to those that are there."""
    if mine is not None and _inode(path) == mine:
        path.unlink(missing_ok=True)
    _tell(shared, {"leaving": True})
    _leave(0)


def _tell(shared: _Shared, header: wire.Header) -> None:
    for client in list(shared.clients):
        client.send(header)


def _inode(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except OSError:
        return None


def _go_first_when_memory_ends() -> None:
    """Tell the kernel to end this process, and not the mount, for lack of memory."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
        file.write("500")


def _limit_memory(limit: int) -> None:
    if limit:
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _is_memory(error: BaseException) -> bool:
    return isinstance(error, MemoryError) or about_memory(str(error))


def _as_error(error: BaseException) -> wire.Header:
    """How an exception crosses to the parent: the error class's name and its line."""
    if isinstance(error, LibraryError):
        return {"error": type(error).__name__, "message": str(error)}
    if _is_memory(error):
        return {"error": "ModelCrashed", "message": "it ran out of memory"}
    name = "ModelUnavailable" if isinstance(error, ImportError | OSError) else "ModelFailed"
    line = " ".join(str(error).split())[:500]
    return {"error": name, "message": f"{type(error).__name__}: {line}"}


def _leave(code: int) -> NoReturn:
    # Not sys.exit: the other thread may be deep inside a computation, and nothing here needs an orderly end.
    os._exit(code)


if __name__ == "__main__":
    main()
