"""Start a worker process, join one that runs, and tell how one ended."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

from libraryfs.errors import ModelUnavailable
from libraryfs.models import home, wire
from libraryfs.models.home import Place

OUT_OF_MEMORY = 87
"""Exit code of a worker that ran out of memory."""
JOIN_SECONDS = 15.0
"""A worker that lives and does not let us in for that long is stuck."""
_SPIN = {"embedder": "20000", "language model": "1000"}
"""How often a thread looks for work before it sleeps. The library's own choice, for ever, takes the processor from the
mount and costs a language model, which waits hundreds of times a token, half to nine tenths of its speed when other
programs run. Sleeping at once costs it two thirds on an idle machine; this costs a tenth. An embedder waits less often
and may wait longer."""
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL|^LIBRARYFS_(LLM|EMBEDDER)$", re.IGNORECASE)
"""In the name of a variable that a worker does not get: it outlives the command that starts it. An endpoint's URL may
hold a password; a worker learns what to load from its first message."""
_FAULTS = {
    "Segmentation fault": signal.SIGSEGV,
    "Illegal instruction": signal.SIGILL,
    "Bus error": signal.SIGBUS,
    "Floating-point exception": signal.SIGFPE,
}
"""What Python's fault handler calls the signals that the worker died of."""
_OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
}


class Joined:
    """A worker process and our end of a connection to it. `process` only where we started it."""

    def __init__(self, place: Place, connection: socket.socket, process: subprocess.Popen[bytes] | None = None) -> None:
        self.place = place
        self.connection = connection
        self.pid = None if process is None else process.pid
        self.fresh = process is not None
        self._process = process

    def how_it_ended(self) -> str:
        """In words, for a message; once the connection is closed."""
        code = None
        if self._process is not None:
            try:
                code = self._process.wait(timeout=2)
            except subprocess.TimeoutExpired:
                return "closed the connection"
        said, fault, what = self.place.last_words().partition("Fatal Python error: ")
        last = said.strip().rpartition("\n")[2].strip()
        if fault:
            code = -_FAULTS.get(what.partition("\n")[0].strip(), signal.SIGABRT)
        if code == OUT_OF_MEMORY or about_memory(last):
            return "ran out of memory"
        if code == -signal.SIGKILL or (code is None and not last):
            return "was killed (by somebody, or by the system for lack of memory)"
        if code == -signal.SIGILL:
            return (
                "was built for another processor (SIGILL); install the package of this model again, "
                "for llama-cpp-python with CMAKE_ARGS=-DGGML_NATIVE=OFF and --no-cache-dir"
            )
        how = "ended" if code is None else f"died of {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"
        return f"{how} ({last[:200]})" if last else how


def about_memory(text: str) -> bool:
    """Whether an error's text, of any of the libraries below the models, says that memory ran out."""
    text = text.lower()
    words = ("allocate memory", "memory allocation", "out of memory", "not enough memory", "bad_alloc", "memoryerror")
    return any(word in text for word in words)


def join(order: wire.Header) -> Joined:
    """A connection to the worker of this order, which is started when there is none. Raises ModelUnavailable."""
    place = home.place(order)
    cause = place.last_death()
    if cause is not None:
        raise ModelUnavailable(
            f"the {order['kind']} failed {home.DEATHS} times in a row and is left alone for now "
            "('libraryfs doctor' says why)"
        )
    end = time.monotonic() + JOIN_SECONDS
    while True:
        connection = place.connect()
        if connection is not None:
            return Joined(place, connection)
        lock = place.lock()
        if lock is not None:
            return _start(place, order, lock)
        if time.monotonic() > end:
            raise ModelUnavailable(f"the {order['kind']}'s process lives and does not answer; end it and try again")
        time.sleep(0.01)  # it was just started, or is about to end


def _start(place: Place, order: wire.Header, lock: int) -> Joined:
    """Start the worker, which takes the lock over, and connect to it."""
    path = str(place.file("sock"))
    try:
        with place.listen() as listener, place.file("log").open("wb") as log:
            process = subprocess.Popen(
                # -P: nothing is imported from the current folder, which may lie in the mount that waits for us.
                [sys.executable, "-P", "-m", "libraryfs.models.worker", str(listener.fileno()), path, order["kind"]],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                pass_fds=[listener.fileno(), lock],
                cwd="/",
                env=_environment(order["kind"], order["threads"]),
                start_new_session=True,  # Ctrl-C in the terminal is for the user's program, which then leaves us
            )
            threading.Thread(target=process.wait, name="worker-reaper", daemon=True).start()
            connection = place.connect()
    finally:
        os.close(lock)
    if connection is None:
        raise ModelUnavailable(f"{place.file('sock')}: removed while the {order['kind']} was started; try again")
    return Joined(place, connection, process)


def _environment(kind: str, threads: int) -> dict[str, str]:
    environment = {name: value for name, value in os.environ.items() if not _SECRET.search(name)}
    environment.update(_OFFLINE)
    environment.update(
        TOKENIZERS_PARALLELISM="false",
        OMP_NUM_THREADS=str(threads),
        GOMP_SPINCOUNT=_SPIN[kind],
    )
    root = str(Path(__file__).resolve().parents[2])
    if Path(root).name not in ("site-packages", "dist-packages"):
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [environment.get("PYTHONPATH"), root]))
    return environment
