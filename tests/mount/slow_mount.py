"""A mount with `.slow`, and shells that use it."""

import subprocess
import time
from pathlib import Path
from typing import Any

from tests.mount.live import Live


class Slow(Live):
    """A mount with `.slow`."""

    def __init__(self, snapshot: Path, point: Path, **options: Any) -> None:
        self.noted = point.with_name("noted")
        self.noted.touch()
        super().__init__(snapshot, point, environment={"SLOW_LOG": str(self.noted)}, **options)

    @property
    def notes(self) -> str:
        """What `.slow` has done."""
        return self.noted.read_text()


def session(live: Live, script: str) -> subprocess.Popen[str]:
    """A shell in a process session of its own."""
    return subprocess.Popen(
        ["sh", "-c", script],
        cwd=live.point,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def waits(process: subprocess.Popen[str]) -> bool:
    """Whether the process is a cat that waits in the kernel for an answer of the mount, and not for a moment only."""
    for _ in range(3):
        here = Path(f"/proc/{process.pid}")
        if (here / "comm").read_text() != "cat\n" or "request_wait" not in (here / "wchan").read_text():
            return False
        time.sleep(0.05)
    return True
