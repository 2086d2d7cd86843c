"""scripts/demo shows a session in which every command works, and names only files that exist."""

import os
import subprocess
from pathlib import Path

import pytest

HOME = Path(__file__).resolve().parents[2]


@pytest.mark.models
@pytest.mark.slow
def test_every_command_of_the_demo_works(tmp_path: Path) -> None:
    """Mount, grep, a question by meaning with its citations, an eval by substring; nothing is missing."""
    point = tmp_path / "mount"
    folders = {f"XDG_{name}": str(tmp_path / name) for name in ("DATA_HOME", "CACHE_HOME", "STATE_HOME", "RUNTIME_DIR")}
    for folder in folders.values():
        Path(folder).mkdir(mode=0o700)
    environment = {**os.environ, **folders, "LIBRARYFS_NO_SETUP": "1"}
    environment |= {"PYTHONPATH": str(HOME), "LIBRARYFS_MODEL_IDLE_SECONDS": "5"}
    try:
        done = subprocess.run(
            [HOME / "scripts/demo", point], env=environment, capture_output=True, text=True, timeout=600, cwd=tmp_path
        )
    finally:
        subprocess.run(["fusermount3", "-u", "-z", point], capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr
    said = done.stdout + done.stderr
    for fault in ("No such file", "not found", "Error", "Traceback"):
        assert fault not in said, said
    assert "user.library.id=" in said
    assert "[1] /ring/libraryfs/" in said
    assert "passed (" in said
