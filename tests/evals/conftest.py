from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.evals.world import World


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """A ring with an eval set of ten questions, and a pipeline that answers what the test says."""
    monkeypatch.setenv("LIBRARYFS_CACHE", str(tmp_path / "cache"))
    made = World(tmp_path / "library.db")
    yield made
    made.build.snapshot.close()
