"""`init` and `status`, as a new user has them."""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run

Answer = Callable[..., Any]


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    """A repository with two documents, and its mount taken away at the end."""
    files = {
        "README.md": "# Ferry\n\n## When does the ferry leave?\n\nThe ferry leaves at a quarter past seven.\n",
        "docs/tickets.md": "# Ticket prices\n\nA ticket costs forty crowns; children travel free.\n",
        ".gitignore": "*.log\n",
        "noise.log": "noise",
    }
    folder = tmp_path / "ferry"
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / ".git").mkdir()
    yield folder
    subprocess.run(["fusermount3", "-uz", folder / ".library"], capture_output=True, check=False)


def test_from_a_folder_to_a_mount(spawn: Run, project: Path, tmp_path: Path) -> None:
    """It shows what it found, mounts, keeps git away, and its questions have answers; twice is as good as once."""
    state = {"XDG_STATE_HOME": str(tmp_path / "state")}
    for _ in range(2):
        done = spawn("init", project, "--yes", "--no-embed", "--from", "tree", env=state)
        assert done.returncode == 0, done.stderr
        assert "/ring/ferry/workspace" in done.stdout
        assert "left out: ignored by .gitignore" in done.stdout
        assert (project / ".library/ring/ferry/workspace/docs/tickets.md").read_text().startswith("# Ticket prices")
        assert (project / ".gitignore").read_text() == "*.log\n/.library/\n"
    assert "2 added" not in done.stdout
    assert "  libraryfs ask 'When does the ferry leave?'" in done.stdout
    quick = state | {"LIBRARYFS_EMBEDDER": "none", "LIBRARYFS_LLM": "none"}
    asked = spawn("ask", "When does the ferry leave?", env=quick)
    assert "quarter past seven" in asked.stdout
    told = json.loads(spawn("status", "--json").stdout)
    (mount,) = [one for one in told["mounts"] if one["point"] == str(project / ".library")]
    assert mount["snapshot"] == told["snapshot"]
    assert [one["source"] for one in told["sources"]] == [str(project)]
    assert "in step just now" in spawn("status").stdout
    assert spawn("umount", project / ".library").returncode == 0


def test_status_without_anything(cli: Run) -> None:
    """No snapshot is no error: it says how to make one."""
    done = cli("status")
    assert done.returncode == 0
    assert "libraryfs import" in done.stdout


def test_init_of_nothing(cli: Run, tmp_path: Path) -> None:
    """An empty folder is told, and no snapshot is made."""
    (tmp_path / "empty").mkdir()
    assert "nothing here to import" in cli("init", "empty", "--yes", "--no-mount").stderr
    assert not (tmp_path / "data").exists()
