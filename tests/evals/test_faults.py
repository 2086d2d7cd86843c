"""A run that is killed, and one that cannot write: the old values stay, and a report is given where one can be."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from tests.evals.vfs import FaultyVFS
from tests.evals.world import World


def test_killed_at_every_change_the_values_are_wholly_old_or_wholly_new(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.evals.crash", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    found = json.loads(done.stdout)
    old = {"rate": 1.0, "runs": [10], "verdicts": 10, "check": "ok"}
    new = {"rate": 0.7, "runs": [10, 7], "verdicts": 20, "check": "ok"}
    assert found["whole"] == new
    killed = found["killed"]
    assert len(killed) >= 10
    committed = killed.index(new) if new in killed else len(killed)
    assert committed >= 5  # the write-ahead log is written before it counts
    assert killed == [old] * committed + [new] * (len(killed) - committed)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (apsw.FullError, "LIBRARY_SNAPSHOT_FULL"),
        (apsw.ReadOnlyError, "LIBRARY_SNAPSHOT_READ_ONLY"),
        (apsw.IOError, "LIBRARY_SNAPSHOT"),
    ],
)
def test_a_snapshot_that_cannot_be_written(world: World, error: type[apsw.Error], code: str) -> None:
    world.run()
    world.wrong = {1, 2}
    before = world.stored()
    vfs = FaultyVFS(world.path, 1, error)
    try:
        found = world.run(cache=False)
    finally:
        vfs.unregister()
    assert vfs.seen > 0
    assert (found.passed, found.total, found.written, found.run) == (8, 10, False, None)
    assert found.write_error is not None
    assert found.write_error.startswith(f"{code}: ")
    assert found.drift is not None
    assert (found.drift_detected, found.drift.direction, len(found.flips)) == (True, "down", 2)
    assert world.stored() == before


@pytest.mark.parametrize("place", ["", ".."])
def test_a_read_only_place_is_named(world: World, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    """Whatever SQLite says of it; root, who runs these tests, may write everywhere, so the system's word is faked."""
    refused = world.path.parent if place else world.path
    monkeypatch.setattr("os.access", lambda path, mode: Path(path) != refused)
    vfs = FaultyVFS(world.path, 1, apsw.CantOpenError)
    try:
        found = world.run(baseline="this")
    finally:
        vfs.unregister()
    assert found.write_error == (
        f"LIBRARY_SNAPSHOT_READ_ONLY: {refused}: read-only; make it writable, or run the eval on a copy of the snapshot"
        "; so no baseline was pinned"
    )


def test_another_writer_that_does_not_end(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIBRARYFS_BUSY_TIMEOUT_MS", "50")
    with world.build.snapshot.transaction():
        found = world.run()
    assert found.write_error is not None
    assert found.write_error.startswith("LIBRARY_SNAPSHOT_BUSY")
    assert found.passed == 10


def _delete(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize("change", [_delete])
def test_the_snapshot_gone_during_the_run(world: World, change: Callable[[Path], None]) -> None:
    world.hook = lambda number: change(world.path) if number == 9 else None
    found = world.run()
    assert found.passed == 10
    assert not found.written
    assert found.write_error is not None
    assert found.write_error.startswith("LIBRARY_SNAPSHOT_MISSING")
