"""The worker process: loads one model, answers one request after another, ends with its parent.

`python -m libraryfs.models.worker FD`, where FD is one end of a socket pair; started by `client.Worker` only. The first
message says what to load. One thread reads requests and cancellations, so that it sees at once that the parent is
gone (end of file: no signal tied to a thread of the parent, no polling); the main thread computes.
"""

from __future__ import annotations

import contextlib
import os
import resource
import socket
import sys
import threading

from libraryfs import scheduling
from libraryfs.errors import LibraryError
from libraryfs.models import wire
from libraryfs.models.spawn import OUT_OF_MEMORY, about_memory
from libraryfs.models.worker_tasks import Model, Requests, Send, Stopped, Task


def main() -> None:
    """Serve the socket whose number is the first argument, until its other end closes."""
    connection = socket.socket(fileno=int(sys.argv[1]))
    _go_first_when_memory_ends()
    order, _ = wire.receive(connection)
    _limit_memory(order["memory_bytes"])
    lock = threading.Lock()

    def send(header: wire.Header, body: bytes = b"") -> None:
        with lock:
            wire.send(connection, header, body)

    requests = Requests()
    threading.Thread(target=_read, args=(connection, requests, send), daemon=True).start()
    try:
        model = _load(order)
    except BaseException as error:
        send({"failed": _as_error(error)})
        _leave(1)
    scheduling.give_way()  # only now: somebody waits for the loading, which is short
    while True:
        task = requests.next()
        send({"id": task.header["id"], "started": True})
        try:
            header, body = (model.describe(), b"") if task.header["do"] == "describe" else model.run(task)
            send({"id": task.header["id"], "done": header}, body)
        except Stopped:
            continue
        except BaseException as error:
            if _is_memory(error):  # its state cannot be trusted now
                _leave(OUT_OF_MEMORY)
            send({"id": task.header["id"], "failed": _as_error(error)})


def _load(order: wire.Header) -> Model:
    if order.get("backend") == "onnx":
        from libraryfs.models.worker_onnx import OnnxModel

        return OnnxModel(order["path"], threads=order["threads"])
    if order["kind"] == "embedder":
        from libraryfs.models.worker_embed import SentenceModel

        return SentenceModel(order["path"], threads=order["threads"])
    from libraryfs.models.worker_llama import LlamaModel

    return LlamaModel(order["path"], context=order["context"], threads=order["threads"])


def _read(connection: socket.socket, requests: Requests, send: Send) -> None:
    with contextlib.suppress(wire.Closed):
        while True:
            header, body = wire.receive(connection)
            if "cancel" in header:
                requests.cancel(header["cancel"])
            else:
                requests.add(Task(header, body, send))
    _leave(0)


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


def _leave(code: int) -> None:
    # Not sys.exit: the other thread may be deep inside a computation, and nothing here needs an orderly end.
    os._exit(code)


if __name__ == "__main__":
    main()
