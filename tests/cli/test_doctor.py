"""`doctor`: each thing that can be missing, with its cure."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from libraryfs.cli import diagnosis
from tests.cli.conftest import Run
from tests.planted import PASSWORD

WITH_MODELS = {"LIBRARYFS_EMBEDDER": "default", "LIBRARYFS_LLM": "default"}


@pytest.fixture
def environment(environment: dict[str, str]) -> dict[str, str]:
    """Without models, which the doctor runs: they take seconds."""
    return environment | dict.fromkeys(WITH_MODELS, "none")


@pytest.mark.models
def test_each_model_is_put_to_work(cli: Run) -> None:
    done = cli("doctor", env=WITH_MODELS)
    assert done.returncode == 0, done.stderr
    took = r"in \d+\.\d\d s, loading included; process \d+ has [\d,]+ MB of memory"
    assert re.search(rf"ok +embedding model: .*checksum right; embeds \(384 dimensions\) {took}", done.stdout)
    assert re.search(rf"ok +language model: .*checksum right; writes a token {took}", done.stdout)


@pytest.mark.models
def test_a_model_that_does_not_work_is_found_out(cli: Run, tmp_path: Path) -> None:
    """A file that is there, and begins as it should."""
    (tmp_path / "cut.gguf").write_bytes(b"GGUF" + bytes(100))
    done = cli("doctor", env={"LIBRARYFS_LLM": str(tmp_path / "cut.gguf")})
    assert done.returncode == 0
    assert re.search(r"optional +language model: .*cut\.gguf; it does not work: .*cannot load it", done.stdout)


def test_on_this_machine(cli: Run, answer: Callable[..., Any], notes: Path) -> None:
    """The tests' machine can mount, so the doctor finds nothing that mounting needs; the snapshot is named."""
    report = answer("doctor")
    assert report["ok"] is True
    found = {finding["name"]: finding for finding in report["findings"]}
    assert not found["snapshot"]["ok"]
    assert "libraryfs import" in found["snapshot"]["cure"]
    assert {"/dev/fuse", "fusermount3", "libfuse3 and pyfuse3", "SQLite", "sqlite-vec"} <= set(found)
    assert cli("import", notes, "--ring", "dev", "--no-embed").returncode == 0
    done = cli("doctor")
    assert done.returncode == 0
    assert "1 rings, 0 agents, 1 principals" in done.stdout
    assert done.stdout.endswith("mounting works here\n")


def test_a_damaged_snapshot_is_a_fault(cli: Run, tmp_path: Path) -> None:
    """A snapshot that is there and cannot be used stops mounting: exit code 1."""
    (tmp_path / "bad.db").write_text("not a database, and long enough to be looked at " * 20)
    done = cli("doctor", "--snapshot", "bad.db")
    assert done.returncode == 1
    assert "1 to mend" in done.stdout


def test_fusermount3_missing(cli: Run) -> None:
    """Found through PATH: without it, exit code 1 and the package that brings it."""
    done = cli("doctor", env={"PATH": "/nonexistent"})
    assert done.returncode == 1
    assert "apt-get install fuse3" in done.stdout


def test_device_missing_or_closed(tmp_path: Path) -> None:
    """The cure names the module and the container's options."""
    missing = diagnosis.device(tmp_path / "fuse")
    assert not missing.ok
    assert "modprobe fuse" in missing.cure
    assert "--device /dev/fuse" in missing.cure
    (tmp_path / "fuse").mkdir()
    assert "cannot be opened" in diagnosis.device(tmp_path / "fuse").detail


def test_permission_is_read_from_the_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root needs CAP_SYS_ADMIN; a user must be able to gain privileges through fusermount3."""
    status = tmp_path / "status"
    status.write_text("CapEff:\t00000000a80425fb\nNoNewPrivs:\t1\n")  # what Docker gives by default
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert "SYS_ADMIN" in diagnosis.permission(status).cure
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert "no_new_privs" in diagnosis.permission(status).detail
    status.write_text("CapEff:\t000001ffffffffff\nNoNewPrivs:\t0\n")
    assert diagnosis.permission(status).ok
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert diagnosis.permission(status).ok


def test_allow_other_needs_a_line_in_fuse_conf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Optional, with the command that writes the line."""
    configuration = tmp_path / "fuse.conf"
    configuration.write_text("# user_allow_other\n")
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    finding = diagnosis.allow_other(configuration)
    assert not finding.ok
    assert finding.needed == "optional"
    assert "user_allow_other" in finding.cure
    configuration.write_text("user_allow_other\n")
    assert diagnosis.allow_other(configuration).ok


def test_packages_missing(environment: dict[str, str], tmp_path: Path) -> None:
    """Without site-packages' metadata every package is missing, and models' ones are only optional."""
    program = (
        "import sys, importlib.metadata as m\n"
        "m.version = lambda name: (_ for _ in ()).throw(m.PackageNotFoundError(name))\n"
        "from libraryfs.cli.main import run; sys.exit(run(['doctor']))"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "missing: pyfuse3, trio" in done.stdout
    assert "optional  Python packages for models" in done.stdout
    assert "1 to mend before mounting works" in done.stdout


def test_a_binding_that_does_not_load(environment: dict[str, str], tmp_path: Path) -> None:
    """A pyfuse3 that fails at import is reported with its reason, and ends nothing else."""
    (tmp_path / "broken").mkdir()
    module = tmp_path / "broken" / "pyfuse3.py"
    module.write_text("raise ImportError('libfuse3.so.3: cannot open shared object file')")
    command = [sys.executable, "-m", "libraryfs.cli.main", "doctor"]
    variables = environment | {"PYTHONPATH": str(module.parent)}
    done = subprocess.run(command, env=variables, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "libfuse3.so.3: cannot open" in done.stdout
    assert "libfuse3-dev" in done.stdout


@pytest.mark.parametrize(
    ("model", "says", "changes"),
    [
        ("default", "too small to write", True),
        ("none", "a shape is filled with what the files state", True),
        ("http://127.0.0.1:1/v1", "written by the model that is set, if it passes", False),
    ],
)
def test_it_says_what_the_models_can_do(cli: Run, model: str, says: str, changes: bool) -> None:
    """In words, with the setting that changes it where a better model is to be had."""
    said = cli("doctor", env={"LIBRARYFS_LLM": model}).stdout
    line = next(line for line in said.splitlines() if " answers: " in line)
    assert says in line
    assert ("LIBRARYFS_LLM" in line) is changes


@pytest.mark.parametrize("options", [[], ["--debug"], ["--json"]])
def test_a_login_in_a_url_is_not_shown(cli: Run, options: list[str]) -> None:
    """The fixture looks for the planted password in all that is printed."""
    url = f"http://me:{PASSWORD}@127.0.0.1:9/v1"
    done = cli("doctor", *options, env={"LIBRARYFS_LLM": url, "LIBRARYFS_LLM_KEY": ""})
    assert "http://127.0.0.1:9/v1" in done.stdout


def test_a_port_that_is_none(cli: Run) -> None:
    """One line that names the setting; it was a bug's exit code."""
    for command in (["doctor"], ["ask", "Why?"]):
        done = cli(*command, env={"LIBRARYFS_LLM": "http://127.0.0.1:99999/v1"})
        assert done.returncode == 2
        assert done.stderr.startswith(
            "libraryfs: LIBRARYFS_LLM is not a URL such as http://localhost:8000/v1: its port"
        )
        assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("llm", "why"),
    [
        ("none", "off: no language model is set"),
        pytest.param("/absent/model.gguf", "off: /absent/model.gguf", marks=pytest.mark.models),
    ],
)
def test_which_of_writing_and_quoting_is_on(cli: Run, llm: str, why: str) -> None:
    """`--ask` says it with the reason, and what would change it."""
    done = cli("doctor", "--ask", env={"LIBRARYFS_LLM": llm})
    assert done.returncode == 0
    write, change, quote = done.stdout.splitlines()
    assert write.startswith(f"optional  write: {why}")
    assert "LIBRARYFS_LLM" in change
    assert quote.startswith("ok        quote: on, for every answer")
