"""The command line as a user has it: a real process, a snapshot of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]
KEPT = ("PATH", "HOME", "LANG", "SYSTEMROOT")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A clean environment: nobody's settings, data below the test's folder."""
    clean = {name: os.environ[name] for name in KEPT if name in os.environ}
    return clean | {"XDG_DATA_HOME": str(tmp_path / "data"), "TERM": "xterm", "PYTHONWARNINGS": "error"}


@pytest.fixture
def cli(tmp_path: Path, environment: dict[str, str]) -> Run:
    """Runs `libraryfs …` and gives what it printed."""

    def run(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
        variables = environment | options.pop("env", {})
        command = [sys.executable, "-m", "libraryfs.cli.main", *map(str, arguments)]
        defaults: dict[str, Any] = {"capture_output": True, "text": True, "timeout": 60, "stdin": subprocess.DEVNULL}
        return subprocess.run(command, env=variables, cwd=tmp_path, check=False, **(defaults | options))

    return run


@pytest.fixture
def answer(cli: Run) -> Callable[..., Any]:
    """Runs `libraryfs … --json`, which must succeed, and gives the JSON."""

    def run(*arguments: object, expect: int = 0, **options: Any) -> Any:
        done = cli(*arguments, "--json", **options)
        assert done.returncode == expect, done.stderr
        return json.loads(done.stdout)

    return run


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """A small source folder: two decisions, one of which supersedes the other, a skill, workspace and artifacts."""
    files = {
        "charter.md": "# Charter of dev\n\nWe keep the lights on.\n",
        "skills/deploy.md": "---\ntitle: Deploy\nid: skill-deploy\n---\nRun the pipeline on Tuesdays.\n",
        "decisions/old.md": "---\ntitle: Use FTP\nid: dec-1\n---\nWe copy by FTP.\n",
        "decisions/new.md": "---\ntitle: Use rsync\nid: dec-2\nsupersedes: [dec-1]\n---\nWe copy by rsync.\n",
        "workspace/plans/q1.txt": "first quarter\n",
        "artifacts/logo.svg": "<svg/>\n",
    }
    folder = tmp_path / "notes"
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder
