from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ask.shelf import Shelf


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Shelf]:
    made = Shelf(tmp_path / "library.db")
    yield made
    made.snapshot.close()
