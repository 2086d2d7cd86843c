"""Mounts for tests. `mounted` is a function that mounts a snapshot; a module's own fixtures share one mount."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.mount.live import Live
from tests.store.build import Builder

Mounted = Callable[..., Live]


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Mounted]:
    """`mounted(snapshot, …)`: a Live mount in the test's folder, unmounted at its end whatever happens."""
    with ExitStack() as stack:
        count = 0

        def mount(snapshot: Path, **options: Any) -> Live:
            nonlocal count
            count += 1
            return stack.enter_context(Live(snapshot, tmp_path / f"mount-{count}", **options))

        yield mount


@pytest.fixture
def build(tmp_path: Path) -> Iterator[Builder]:
    """A snapshot to write rows to."""
    builder = Builder(tmp_path / "library.db")
    yield builder
    builder.snapshot.close()


@pytest.fixture(scope="module")
def module_build(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Builder]:
    """The same for a whole module."""
    builder = Builder(tmp_path_factory.mktemp("library") / "library.db")
    yield builder
    builder.snapshot.close()
