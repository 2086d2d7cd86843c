"""A live mount while questions are asked in it: how long `stat` and a read of 4 KB wait."""

import multiprocessing
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Event
from pathlib import Path

SAMPLES = 3000
ASKS = 4


def measure(snapshot: Path, principal: str, questions: Sequence[str]) -> tuple[dict[str, float], dict[str, float], int]:
    """p99 in milliseconds of `stat` and `read`, idle and while ASKS askers run; and how many answers came."""
    with tempfile.TemporaryDirectory() as folder:
        point = Path(folder) / "mnt"
        point.mkdir()
        command = [sys.executable, "-m", "libraryfs.cli.main", "--snapshot", str(snapshot)]
        subprocess.run([*command, "mount", str(point), "--as", principal], check=True)
        try:
            files = list((point / "ring" / "xquad-en").rglob("*.md"))
            _ask(point, questions[0])
            idle = _p99(files)
            stop, answered = multiprocessing.Event(), multiprocessing.Value("i", 0)
            askers = [
                multiprocessing.Process(target=_keep_asking, args=(point, questions, stop, answered))
                for _ in range(ASKS)
            ]
            for asker in askers:
                asker.start()
            time.sleep(1)
            busy = _p99(files)
            stop.set()
            for asker in askers:
                asker.join()
            return idle, busy, answered.value
        finally:
            subprocess.run([*command, "umount", str(point)], check=True)


def _keep_asking(point: Path, questions: Sequence[str], stop: Event, answered: "Synchronized[int]") -> None:
    while not stop.is_set():
        got = bool(_ask(point, random.choice(questions)))
        with answered.get_lock():
            answered.value += got


def _ask(point: Path, question: str) -> bytes:
    """The answer on a handle of its own."""
    handle = os.open(point / "ring" / "xquad-en" / ".ask", os.O_RDWR)
    try:
        os.write(handle, question.encode())
        return b"".join(iter(lambda: os.read(handle, 65536), b""))
    finally:
        os.close(handle)


def _p99(files: Sequence[Path]) -> dict[str, float]:
    """Each sample: a stat and a read of a file whose cached pages were dropped, so that the daemon answers."""
    taken: dict[str, list[float]] = {"stat": [], "read": []}
    for _ in range(SAMPLES):
        path = random.choice(files)
        began = time.perf_counter()
        os.stat(path)
        taken["stat"].append(time.perf_counter() - began)
        handle = os.open(path, os.O_RDONLY)
        try:
            os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
            began = time.perf_counter()
            os.pread(handle, 4096, 0)
            taken["read"].append(time.perf_counter() - began)
        finally:
            os.close(handle)
        time.sleep(0.001)
    return {name: sorted(values)[int(len(values) * 0.99)] * 1000 for name, values in taken.items()}
