from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.store.build import Builder


@pytest.fixture
def build(tmp_path: Path) -> Iterator[Builder]:
    builder = Builder(tmp_path / "library.db")
    yield builder
    builder.snapshot.close()
