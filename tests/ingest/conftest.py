from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from libraryfs.ingest.importer import import_source
from libraryfs.ingest.report import ImportReport
from libraryfs.store.snapshot import Snapshot
from tests.store.conftest import build

Importing = Callable[..., ImportReport]

__all__ = ["Importing", "bring", "build", "snapshot"]


@pytest.fixture
def snapshot(tmp_path: Path) -> Iterator[Snapshot]:
    with Snapshot.open(tmp_path / "library.db", create=True) as opened:
        yield opened


@pytest.fixture
def bring(snapshot: Snapshot) -> Importing:
    """bring(source, "/ring/dev") imports as alice."""

    def run(
        source: Path, namespace: str | None = "/ring/dev", principal: str | None = "alice", **options: Any
    ) -> ImportReport:
        return import_source(snapshot, source, namespace, principal, **options)

    return run
