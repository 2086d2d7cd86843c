"""What holds for all tests."""

import atexit
import os
import shutil
import signal
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import planted

# A shell starts background jobs with Ctrl-C ignored, and their children inherit that: the tests of Ctrl-C would wait
# for an interruption that never comes.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Models' workers are met through this folder: the tests share theirs with each other, and never with the user.
RUNTIME = Path(tempfile.mkdtemp(prefix="libraryfs-tests-"))
os.environ["XDG_RUNTIME_DIR"] = str(RUNTIME)


def workers() -> set[int]:
    """Process ids of the living model workers of these tests."""
    found = set()
    for folder in Path("/proc").iterdir():
        try:
            command = (folder / "cmdline").read_bytes()
            state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if b"libraryfs.models.worker" in command and bytes(RUNTIME) in command and state != "Z":
            found.add(int(folder.name))
    return found


def end_workers() -> None:
    """Ends them all, and forgets how they ended."""
    for process in workers():
        os.kill(process, signal.SIGKILL)
    for path in RUNTIME.glob("libraryfs/*"):
        if path.suffix != ".lock":
            path.unlink(missing_ok=True)


def _clean(owner: int = os.getpid()) -> None:
    if os.getpid() == owner:  # not in a fork
        end_workers()
        shutil.rmtree(RUNTIME, ignore_errors=True)


atexit.register(_clean)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    """A test whose output or log holds a planted secret fails."""
    report = yield
    if report.passed and (shown := planted.found("".join(text for _, text in report.sections))):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid}: its output or its log holds the secrets {shown}"
    return report


@pytest.fixture(autouse=True)
def _no_secret_in_a_log(request: pytest.FixtureRequest) -> Iterator[None]:
    """The logs that a test wrote, daemons' among them, hold no planted secret."""
    folder: Path | None = request.getfixturevalue("tmp_path") if "tmp_path" in request.fixturenames else None
    yield
    if folder is not None:
        assert not planted.logs_with_secrets(folder)
