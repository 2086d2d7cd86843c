"""Start a worker process, and tell how it ended."""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO

OUT_OF_MEMORY = 87
"""Exit code of a worker that ran out of memory."""
SEND_SECONDS = 30
"""A worker that reads nothing for that long is stuck (stopped, or swapping): sending fails then."""
_SPIN = {"embedder": "20000", "language model": "1000"}
"""How often a thread looks for work before it sleeps. The library's own choice, for ever, takes the processor from the
mount and costs a language model, which waits hundreds of times a token, half to nine tenths of its speed when other
programs run. Sleeping at once costs it two thirds on an idle machine; this costs a tenth. An embedder waits less often
and may wait longer."""
_SECRETS = ("LIBRARYFS_LLM", "LIBRARYFS_EMBEDDER", "LIBRARYFS_LLM_KEY", "LIBRARYFS_EMBEDDER_KEY")
"""An endpoint's URL may hold a password. A worker learns what to load from its first message."""
_OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
}


class Spawned:
    """A worker process and our end of the connection to it."""

    def __init__(self, process: subprocess.Popen[bytes], connection: socket.socket, stderr: IO[bytes]) -> None:
        self.connection = connection
        self._process = process
        self._stderr = stderr
        self._last_line = ""

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def reap(self) -> None:
        """Make sure that it has ended, and close our end."""
        self.connection.close()
        try:
            self._process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        with self._stderr as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - 2048))
            lines = file.read().decode("utf-8", "replace").split("\n")
        self._last_line = next((line.strip() for line in reversed(lines) if line.strip()), "")

    def how_it_ended(self) -> str:
        """In words, for a message; after `reap`."""
        last = self._last_line
        code = self._process.returncode
        if code == OUT_OF_MEMORY or about_memory(last):
            return "ran out of memory"
        if code == -signal.SIGKILL:
            return "was killed (by somebody, or by the system for lack of memory)"
        if code == -signal.SIGILL:
            return (
                "was built for another processor (SIGILL); install the package of this model again, "
                "for llama-cpp-python with CMAKE_ARGS=-DGGML_NATIVE=OFF and --no-cache-dir"
            )
        how = f"died of {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
        return f"{how} ({last[:200]})" if last else how


def about_memory(text: str) -> bool:
    """Whether an error's text, of any of the libraries below the models, says that memory ran out."""
    text = text.lower()
    words = ("allocate memory", "memory allocation", "out of memory", "not enough memory", "bad_alloc", "memoryerror")
    return any(word in text for word in words)


def spawn(kind: str, threads: int) -> Spawned:
    """Start a worker. It ends when the connection closes: with us, at the latest."""
    ours, theirs = socket.socketpair()
    # The kernel's own time-out: a Python one would make the reading side time out as well.
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", SEND_SECONDS, 0))
    stderr = tempfile.TemporaryFile()  # noqa: SIM115  (lives as long as the process)
    with theirs:
        process = subprocess.Popen(
            # -P: nothing is imported from the current folder, which may lie in the mount that waits for us.
            [sys.executable, "-P", "-m", "libraryfs.models.worker", str(theirs.fileno()), kind],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            pass_fds=[theirs.fileno()],
            cwd="/",
            env=_environment(kind, threads),
            start_new_session=True,  # Ctrl-C in the terminal is for the user's program, which then ends us
        )
    return Spawned(process, ours, stderr)


def _environment(kind: str, threads: int) -> dict[str, str]:
    environment = {name: value for name, value in os.environ.items() if name not in _SECRETS}
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
