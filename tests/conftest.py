"""What holds for all tests."""

import signal
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import planted

# A shell starts background jobs with Ctrl-C ignored, and their children inherit that: the tests of Ctrl-C would wait
# for an interruption that never comes.
signal.signal(signal.SIGINT, signal.default_int_handler)


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
