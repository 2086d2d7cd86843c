"""The command line as a user has it: a real process, a snapshot of its own."""

import importlib
import json
import logging
import os
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest

import libraryfs.cli.main as cli_main
from tests import planted

Run = Callable[..., subprocess.CompletedProcess[str]]
# What a forked command would import again each time.
for _module, _text in cli_main.COMMANDS.values():
    importlib.import_module(f"libraryfs.cli.{_module}")
for _name in ("ingest.importer", "ingest.export", "library.resolver", "ask.pipeline", "mount.daemon", "cli.models"):
    importlib.import_module(f"libraryfs.{_name}")
KEPT = ("PATH", "HOME", "LANG", "SYSTEMROOT", "XDG_RUNTIME_DIR")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A clean environment: nobody's settings, data below the test's folder."""
    clean = {name: os.environ[name] for name in KEPT if name in os.environ}
    return (
        clean
        | planted.ENVIRONMENT
        | {"XDG_DATA_HOME": str(tmp_path / "data"), "TERM": "xterm", "PYTHONWARNINGS": "error"}
    )


@pytest.fixture
def spawn(tmp_path: Path, environment: dict[str, str]) -> Run:
    """Runs `libraryfs …` as a new interpreter, and gives what it printed."""

    def run(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
        variables = environment | options.pop("env", {})
        command = [sys.executable, "-m", "libraryfs.cli.main", *map(str, arguments)]
        defaults: dict[str, Any] = {"capture_output": True, "text": True, "timeout": 60, "stdin": subprocess.DEVNULL}
        return subprocess.run(command, env=variables, cwd=tmp_path, check=False, **(defaults | options))

    return run


@pytest.fixture
def cli(tmp_path: Path, environment: dict[str, str]) -> Run:
    """Runs `libraryfs …` as a process forked from this one: as real as `spawn`, without importing everything again."""

    def run(*arguments: object, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        texts = [str(argument) for argument in arguments]
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            child = os.fork()
            if child == 0:
                _become(texts, environment | (env or {}), tmp_path, (out.fileno(), err.fileno()))
            _, status = os.waitpid(child, 0)
            out.seek(0)
            err.seek(0)
            code = os.waitstatus_to_exitcode(status)
            done = subprocess.CompletedProcess(texts, code, out.read().decode(), err.read().decode())
            assert not planted.found(done.stdout + done.stderr)
            return done

    return run


def _become(arguments: list[str], variables: dict[str, str], folder: Path, streams: tuple[int, int]) -> NoReturn:
    """This process becomes `libraryfs …`; it never comes back into pytest."""
    code = 99
    try:
        signal.alarm(60)
        logging.getLogger().handlers.clear()
        os.environ.clear()
        os.environ.update(variables)
        os.chdir(folder)
        for number, stream in enumerate((os.open(os.devnull, os.O_RDONLY), *streams)):
            os.dup2(stream, number)
        sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)
        code = cli_main.run(arguments)
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


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
        "decisions/use-ftp.md": "---\ntitle: Use FTP\nid: dec-1\n---\nWe copy by FTP.\n",
        "decisions/use-rsync.md": "---\ntitle: Use rsync\nid: dec-2\nsupersedes: [dec-1]\n---\nWe copy by rsync.\n",
        "workspace/plans/q1.txt": "first quarter\n",
        "artifacts/logo.svg": "<svg/>\n",
    }
    folder = tmp_path / "notes"
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder
