"""Kills a run with SIGKILL at every change that it makes to the snapshot, each time from the same state.

Prints a JSON list: for each kill, what the snapshot held afterwards. Run as `python -m tests.evals.crash FOLDER`.
"""

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from libraryfs.store import evals, workspace
from libraryfs.store.snapshot import Snapshot
from tests.evals.vfs import FaultyVFS
from tests.evals.world import World


def prepare(path: Path) -> World:
    """A snapshot with one run that passed whole, closed."""
    world = World(path)
    world.run()
    world.build.snapshot.close()
    return world


def crash(world: World, base: Path, at: int) -> bool:
    """Whether a run in a child process was killed at its change `at`."""
    shutil.copyfile(base, world.path)
    for suffix in ("-wal", "-shm"):
        Path(f"{world.path}{suffix}").unlink(missing_ok=True)
    child = os.fork()
    if child == 0:
        _other = Snapshot.open(world.path)  # so that the run's reader is not the last to close: Python's VFS minds
        vfs = FaultyVFS(world.path, at)  # in force as long as it lives
        world.wrong = {1, 2, 3}
        world.run(cache=False)
        os._exit(0 if vfs.seen else 1)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.waitstatus_to_exitcode(status) == 0
    return os.WIFSIGNALED(status)


def state(path: Path) -> dict[str, Any]:
    """What a reader finds."""
    with Snapshot.open(path, write=True) as snapshot:
        db = snapshot.db
        ino = db.execute("SELECT ino FROM items WHERE id = 'set'").get
        item = workspace.get(db, ino)
        assert item is not None
        return {
            "rate": item.metadata["last_eval_pass_rate"],
            "runs": [run.passed for run in evals.every(db, ino)],
            "verdicts": len(list(db.execute("SELECT 1 FROM eval_verdicts"))),
            "check": db.pragma("integrity_check"),
        }


def main(folder: Path) -> None:
    """Kills at 1, 2, 3, … until a run comes through."""
    world = prepare(folder / "library.db")
    base = folder / "base.db"
    shutil.copyfile(world.path, base)
    found: list[dict[str, Any]] = []
    while crash(world, base, len(found) + 1):
        found.append(state(world.path))
    sys.stdout.write(json.dumps({"killed": found, "whole": state(world.path)}))


if __name__ == "__main__":
    os.environ["LIBRARYFS_CACHE"] = str(Path(sys.argv[1]) / "cache")
    main(Path(sys.argv[1]))
