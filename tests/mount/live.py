"""A real mount for a test: a daemon in a process of its own, always unmounted, its log read at the end."""

import json
import multiprocessing
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

from libraryfs.errors import LibraryError
from libraryfs.mount import serving
from libraryfs.mount.daemon import serve
from libraryfs.mount.kinds import control_kinds
from libraryfs.mount.operations import Operations
from libraryfs.mount.options import MountOptions
from libraryfs.mount.requests import RequestLog
from tests import planted
from tests.mount.slow import SlowControl

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["libraryfs.mount.serving", "tests.mount.live"])

UNEXPECTED = re.compile(r"\b(WARNING|ERROR|CRITICAL)\b|Traceback")


def is_mounted(point: Path) -> bool:
    """Whether something is mounted on the folder; the folder itself is not touched."""
    escaped = str(point).replace(" ", "\\040").encode()
    return any(line.split()[4] == escaped for line in Path("/proc/self/mountinfo").read_bytes().splitlines())


def until(condition: Callable[[], Any], seconds: float = 20.0) -> None:
    """Waits until the condition holds. Fails when it does not within the time."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "not within the time"
        time.sleep(0.01)


class FaultyLog(RequestLog):
    """Counts, and raises where the file `told` names the handler: inside the guard, as the handler itself would."""

    def __init__(self, told: Path) -> None:
        super().__init__()
        self._told = told

    def count(self, name: str) -> None:
        super().count(name)
        if self._told.read_text() == name:
            raise ZeroDivisionError(f"injected in {name}")


def _too_old(_: object) -> None:
    """What pyfuse3 does at the kernel's first message where FUSE has no READDIRPLUS."""
    raise RuntimeError("Kernel too old, pyfuse3 requires kernel 3.9 or newer!")


def _daemon(options: MountOptions, environment: dict[str, str], fault: Path | None) -> None:
    """The daemon's process, forked from one that has imported everything and has nothing open."""
    os.environ.update(environment)
    if "SLOW_LOG" in environment:
        slow = SlowControl(Path(environment["SLOW_LOG"]))
        vars(serving)["control_kinds"] = lambda point: (*control_kinds(point), slow)
    if "WITHOUT_READDIRPLUS" in environment:
        assert callable(Operations.init)
        setattr(Operations, "init", _too_old)  # noqa: B010 - mypy forbids the assignment
    try:
        serve(options, requests=None if fault is None else FaultyLog(fault))
    except LibraryError as error:
        Path(f"{options.log_file}").write_text(f"refused: {error.message}\n")
        os._exit(2)


class Live:
    """One mount of `snapshot` on `point`, as a context manager.

    At the end it is unmounted, and the test fails when the daemon logged a warning, an error or a traceback that no
    pattern of `expected` matches. With `fault`, the handler that this file names raises; with
    SLOW_LOG in `environment`, there is a `.slow` control file (slow.py).
    """

    def __init__(
        self,
        snapshot: Path,
        point: Path,
        *,
        principal: str = "me",
        fault: Path | None = None,
        environment: dict[str, str] | None = None,
        **options: Any,
    ) -> None:
        self.snapshot = snapshot
        self.point = point
        self.log_file = point.with_name(point.name + ".log")
        self.expected: list[str] = []
        self._fault = fault
        self._environment = planted.ENVIRONMENT | (environment or {})
        self._options = MountOptions(
            snapshot=snapshot,
            mountpoint=point,
            principal=principal,
            foreground=True,
            log_file=self.log_file,
            log_level="info",
            **options,
        )

    def start(self, *, serves: bool = True) -> None:
        """Mounts; returns when it serves. Raises AssertionError with what the daemon said when it does not."""
        with suppress(FileExistsError):  # a dead mount is there, and cannot be asked
            os.mkdir(self.point)
        self.process = _FORKS.Process(target=_daemon, args=(self._options, self._environment, self._fault), daemon=True)
        self.process.start()
        if not serves:
            return
        until(lambda: self._serves() or not self.process.is_alive())
        if not self.process.is_alive():
            raise AssertionError(self.log_file.read_text())
        os.statvfs(self.point)

    def _serves(self) -> bool:  # the kernel's table would also show a dead mount that is about to be recovered
        return self.log_file.exists() and f"[{self.pid}]: {self.point}: mounted for" in self.log_file.read_text()

    @property
    def pid(self) -> int:
        """The daemon's process."""
        assert self.process.pid is not None
        return self.process.pid

    def stop(self, number: int = signal.SIGTERM) -> float:
        """Ends the daemon by a signal; seconds until it was unmounted and gone."""
        started = time.monotonic()
        if self.process.is_alive():
            os.kill(self.pid, number)
        self.process.join(20)
        return time.monotonic() - started

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_rest: object) -> None:
        try:
            self.stop()
        finally:
            if self.process.is_alive():
                self.process.kill()
                self.process.join()
            if is_mounted(self.point):
                subprocess.run(["fusermount3", "-u", "-z", str(self.point)], check=False)
                assert kind is not None, "still mounted at the end"
        if kind is None:
            surprises = self.surprises()
            assert not surprises, "\n".join(surprises)

    def surprises(self) -> list[str]:
        """Lines of the daemon's log that nothing in `expected` explains."""
        lines = self.log_file.read_text().splitlines() if self.log_file.exists() else []
        assert not planted.found("\n".join(lines))
        return [
            line for line in lines if UNEXPECTED.search(line) and not any(re.search(one, line) for one in self.expected)
        ]

    def requests(self) -> dict[str, int]:
        """How often the kernel asked for what, by handler."""
        counts: dict[str, int] = json.loads(os.getxattr(self.point, "user.library.requests"))
        return counts

    @contextmanager
    def counting(self) -> Iterator[dict[str, int]]:
        """What the block made the kernel ask for, in the dict when the block has ended."""
        before = self.requests()
        counted: dict[str, int] = {}
        yield counted
        after = self.requests()
        counted.update({name: after[name] - before.get(name, 0) for name in after if after[name] != before.get(name)})
        counted["getxattr"] = counted.get("getxattr", 0) - 1  # requests() itself
        counted["lookup"] = max(counted.get("lookup", 0), 0)


def drop_caches() -> None:
    """The kernel lets go of names, attributes and pages that nothing uses."""
    os.sync()
    Path("/proc/sys/vm/drop_caches").write_text("3\n")


def sh(script: str, cwd: Path, *, seconds: float = 60, check: bool = True, session: bool = False) -> str:
    """What a shell script prints, run in a folder; in a process session of its own if asked."""
    environment = dict(os.environ) | {"LC_ALL": "C.UTF-8", "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=cwd,
        env=environment,
        capture_output=True,
        timeout=seconds,
        start_new_session=session,
    )
    text = done.stdout.decode("utf-8", "backslashreplace")
    if check:
        assert done.returncode == 0, f"{script}: {done.returncode}: {done.stderr.decode(errors='replace')}"
    return text
