"""`eval`: exit codes, reports in files, an interrupted run, and calibration."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from libraryfs.store.snapshot import Snapshot
from tests.cli.conftest import Run
from tests.cli.test_main import on_a_terminal

ITEM = "/ring/dev/workspace/eval-set.md"
DEPLOY_AT_NIGHT = "---\ntitle: Deploy\nid: skill-deploy\n---\nRun the pipeline at night.\n"
Answer = Callable[..., Any]
SET = """## On which days do we run the pipeline?
- Tuesdays

## What of the lights do we keep?
- lights on
"""


@pytest.fixture
def quiet(tmp_path: Path) -> dict[str, str]:
    """No models, and a cache of the test's own."""
    return {"LIBRARYFS_EMBEDDER": "none", "LIBRARYFS_LLM": "none", "LIBRARYFS_CACHE": str(tmp_path / "cache")}


@pytest.fixture
def filled(cli: Run, notes: Path, quiet: dict[str, str]) -> Path:
    """The notes with an eval set, imported to ring dev."""
    (notes / "workspace" / "eval-set.md").write_text(SET)
    assert cli("import", notes, "--ring", "dev", "--no-embed", env=quiet).returncode == 0
    return notes


def _again(cli: Run, notes: Path, quiet: dict[str, str]) -> None:
    assert cli("import", notes, "--ring", "dev", "--no-embed", env=quiet).returncode == 0


def test_runs_and_exit_codes(cli: Run, answer: Answer, filled: Path, quiet: dict[str, str], tmp_path: Path) -> None:
    """0 without a regression, 1 for what --fail-on names, 2 for a faulty set; an import keeps the stored rate."""
    first = cli("eval", "dev", env=quiet)
    assert first.returncode == 0, first.stderr
    assert first.stdout.startswith(f"{ITEM}: 2/2 passed (1.00, 95 % interval 0.34 to 1.00), run 1")
    _again(cli, filled, quiet)
    (filled / "skills" / "deploy.md").write_text(
        "---\ntitle: Deploy\nid: skill-deploy\n---\nRun the pipeline at night.\n"
    )
    _again(cli, filled, quiet)
    found = answer(
        "eval", "/ring/dev", "--junit", "out.xml", "--html", "out.html", "--fail-on", "drift", expect=1, env=quiet
    )
    assert (found["passed"], found["total"], found["errors"], found["drift_detected"]) == (1, 2, 0, True)
    assert found["drift"]["direction"] == "down"
    assert found["flips"][0]["now"] == "failed"
    assert ElementTree.parse(tmp_path / "out.xml").getroot().get("failures") == "2"
    assert "down 0.50 from 2/2 of run 1" in (tmp_path / "out.html").read_text()
    (filled / "workspace" / "eval-set.md").write_text(SET + "\n## And this?\n")
    _again(cli, filled, quiet)
    bad = cli("eval", "dev", env=quiet)
    assert (bad.returncode, bad.stdout) == (2, "")
    assert bad.stderr == (f"libraryfs: {ITEM}: line 7: no expected fragment for 'And this?'; add a bullet below it\n")
    absent = answer("eval", "dev", "--item", "nothing", expect=2, env=quiet)
    assert absent["error"]["code"] == "LIBRARY_PATH_NOT_FOUND"


@pytest.mark.usefixtures("filled")
def test_models_at_fault(cli: Run, quiet: dict[str, str], tmp_path: Path) -> None:
    """A model that cannot be used as it is set is said before the first question, and nothing is written."""
    done = cli("eval", "dev", env=quiet | {"LIBRARYFS_LLM": str(tmp_path / "absent.gguf")})
    assert done.returncode == 2
    assert "before the first question: LIBRARY_MODEL_UNAVAILABLE" in done.stderr
    assert "nothing was written" in done.stderr
    assert cli("eval", "dev", env=quiet).stdout.splitlines()[1] == "no drift: first run, nothing to compare with"


@pytest.mark.usefixtures("filled")
def test_the_set_against_itself_and_baselines(answer: Answer, cli: Run, quiet: dict[str, str]) -> None:
    """`--aa` writes nothing; `--baseline this` pins; `--no-cache` asks anew."""
    test = answer("eval", "dev", "--aa", "--repeats", "3", env=quiet)
    assert test["aa"] == {"runs": 3, "pass_rates": [1.0, 1.0, 1.0], "pairs": 3, "drifted": 0, "significant": 0}
    assert test["written"] is False
    pinned = answer("eval", "dev", "--baseline", "this", env=quiet)
    assert (pinned["run"], pinned["history"][-1]["pinned"]) == (1, True)
    later = answer("eval", "dev", "--no-cache", env=quiet)
    assert (later["baseline"]["run"], later["trace"]["questions_asked"]) == (1, 2)
    assert cli("eval", "dev", "--baseline", "9", env=quiet).returncode == 2
    assert cli("eval", "dev", "--baseline", "last", env=quiet).returncode == 2
    assert cli("eval", "dev", "--repeats", "51", env=quiet).returncode == 2


@pytest.mark.usefixtures("filled")
def test_the_bar_shows_the_running_rate(environment: dict[str, str], quiet: dict[str, str], tmp_path: Path) -> None:
    """On a terminal."""
    shown = on_a_terminal(["eval", "dev"], environment | quiet, tmp_path)
    assert "2/2 passed" in shown
    assert "\x1b[" in shown


def test_interrupted_at_half_nothing_is_written(
    cli: Run, filled: Path, quiet: dict[str, str], environment: dict[str, str], tmp_path: Path
) -> None:
    """Ctrl-C ends it with 130."""
    long = "\n".join(f"## On which days do we run the pipeline, the {n}. time?\n- Tuesdays\n" for n in range(4000))
    (filled / "workspace" / "eval-set.md").write_text(long)
    _again(cli, filled, quiet)
    command = [sys.executable, "-m", "libraryfs.cli.main", "eval", "dev"]
    child = subprocess.Popen(
        command, env=environment | quiet, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    cache = tmp_path / "cache" / "eval-answers.db-wal"
    end = time.monotonic() + 60
    while not (cache.exists() and os.path.getsize(cache) > 100_000):  # some tens of answers are in
        assert child.poll() is None
        assert time.monotonic() < end
        time.sleep(0.02)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=20)
    assert (child.returncode, out) == (130, "")
    assert err.endswith("libraryfs: interrupted\n")
    (filled / "workspace" / "eval-set.md").write_text(SET)
    _again(cli, filled, quiet)
    after = cli("eval", "dev", env=quiet)
    assert "run 1," in after.stdout
    assert "first run, nothing to compare with" in after.stdout


@pytest.mark.usefixtures("filled")
def test_files_that_cannot_be_written(cli: Run, answer: Answer, quiet: dict[str, str], tmp_path: Path) -> None:
    """They are refused before the first question; where one fails after all, the report is shown all the same."""
    (tmp_path / "folder").mkdir()
    for arguments, message in (
        (("--junit", "absent/x.xml"), "Invalid value for --junit: the folder 'absent' does not exist; make it"),
        (("--html", "notes/charter.md/x.html"), "Invalid value for --html: the folder 'notes/charter.md' does not"),
        (("--html", "folder"), "Invalid value for --html: 'folder' is a folder; name a file"),
        (("--junit", "x", "--html", "folder/../x"), "--junit and --html name the same file"),
    ):
        done = cli("eval", "dev", *arguments, env=quiet)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done
        assert done.stderr.startswith(f"libraryfs: {message}")
    done = cli("eval", "dev", "--json", "--junit", "/dev/full", "--html", "x.html", env=quiet)
    assert done.returncode == 2
    assert json.loads(done.stdout)["run"] == 1  # those before were refused before they asked
    assert done.stderr == (
        "libraryfs: /dev/full: cannot be written: No space left on device; run it again with another file\n"
    )
    assert "2/2" in (tmp_path / "x.html").read_text()
    assert answer("eval", "dev", "--junit", "x.html", env=quiet)["run"] == 2


@pytest.mark.usefixtures("filled")
def test_a_reader_that_goes_away_does_not_take_the_files(spawn: Run, quiet: dict[str, str], tmp_path: Path) -> None:
    """As `| head` does."""
    reading, writing = os.pipe()
    os.close(reading)
    options: dict[str, Any] = {"capture_output": False, "stdout": writing, "stderr": subprocess.PIPE}
    done = spawn("eval", "dev", "--junit", "x.xml", env=quiet, **options)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")
    assert ElementTree.parse(tmp_path / "x.xml").getroot().get("failures") == "0"


@pytest.mark.usefixtures("filled")
def test_a_baseline_that_could_not_be_pinned(cli: Run, quiet: dict[str, str], tmp_path: Path) -> None:
    """The report is shown, and 2 says that what was asked for is not so; a run that only was not stored is well."""
    path = tmp_path / "data" / "libraryfs" / "library.db"
    with Snapshot.open(path, write=True) as other, other.transaction():
        busy = quiet | {"LIBRARYFS_BUSY_TIMEOUT_MS": "50"}
        done = cli("eval", "dev", "--baseline", "this", env=busy)
        assert cli("eval", "dev", env=busy).returncode == 0
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stdout.startswith(f"{ITEM}: 2/2 passed")
    assert done.stderr.startswith("libraryfs: the run was not stored: LIBRARY_SNAPSHOT_BUSY: ")
    assert done.stderr.endswith("; so no baseline was pinned\n")


@pytest.mark.usefixtures("filled")
def test_options_that_do_nothing_together(cli: Run, quiet: dict[str, str], tmp_path: Path) -> None:
    """An `--aa` run stores nothing that could be pinned; a calibration runs no set."""
    done = cli("eval", "dev", "--aa", "--baseline", "this", env=quiet)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("libraryfs: --aa stores no run, so there is none to pin")
    rows = tmp_path / "rows.jsonl"
    for options in (["--aa"], ["--junit", "x"], ["--no-llm-judge"], ["--as", "bob"], ["--repeats", "2"]):
        done = cli("eval", "calibrate", rows, *options, env=quiet)
        assert done.returncode == 2
        assert "No such option" in done.stderr
        assert options[0] in done.stderr


def test_calibrate(cli: Run, quiet: dict[str, str], tmp_path: Path) -> None:
    """It wants a file, labelled rows and a model."""
    rows = tmp_path / "rows.jsonl"
    rows.write_text(json.dumps({"claim": "noon", "evidence": "at noon", "support": "Complete"}) + "\n")
    done = cli("eval", "calibrate", rows, env=quiet)
    assert done.returncode == 2
    assert "LIBRARYFS_LLM is none" in done.stderr
    assert "Missing argument 'FILE'" in cli("eval", "calibrate", env=quiet).stderr
    rows.write_text("{}\n")
    assert cli("eval", "calibrate", rows, env=quiet).stderr.startswith(f"libraryfs: {rows}: line 1: claim: Field req")
    assert "unexpected extra argument" in cli("eval", "dev", rows, env=quiet).stderr


@pytest.mark.usefixtures("filled")
def test_a_draft_is_made_refused_and_edited(cli: Run, quiet: dict[str, str], tmp_path: Path) -> None:
    """`eval new` writes a file that is a set once its mark is gone; it writes over nothing."""
    made = cli("eval", "new", "dev", "--output", "drafted.md", env=quiet)
    assert made.returncode == 0, made.stderr
    text = (tmp_path / "drafted.md").read_text()
    assert text.startswith("---\ndraft: true\n---\n")
    assert cli("eval", "new", "dev", "--output", "-", env=quiet).stdout == text
    again = cli("eval", "new", "dev", "--output", "drafted.md", env=quiet)
    assert (again.returncode, "drafted.md exists already" in again.stderr) == (2, True)
    (tmp_path / "notes" / "workspace" / "eval-set.md").write_text(text)
    _again(cli, tmp_path / "notes", quiet)
    refused = cli("eval", "dev", env=quiet)
    assert (refused.returncode, refused.stderr) == (
        2,
        f"libraryfs: {ITEM}: line 2: this set is a draft: edit its questions, then remove this line\n",
    )
    (tmp_path / "notes" / "workspace" / "eval-set.md").write_text(text.replace("draft: true\n", ""))
    _again(cli, tmp_path / "notes", quiet)
    assert cli("eval", "dev", env=quiet).returncode == 0
    assert cli("eval", "new", "absent", env=quiet).returncode == 2


def test_a_question_is_appended(cli: Run, tmp_path: Path) -> None:
    """`eval add` makes the file, appends to it, and writes nothing that would be refused."""
    file = tmp_path / "eval-set.md"
    done = cli("eval", "add", "When do we deploy?", "--expect", "Thursday", "--expect", "noon", "--must")
    assert (done.returncode, done.stdout) == (0, "eval-set.md: 1 question; the new one is in line 1\n")
    assert file.read_text() == "## When do we deploy? [must]\n\n- Thursday\n- noon\n"
    file.chmod(0o640)
    done = cli("eval", "add", "Who?", "--expect", "(not in the library)", "--path", "/ring/dev/skills")
    assert done.returncode == 0, done.stderr
    assert file.read_text().endswith("\n\n## Who?\n\npaths: /ring/dev/skills\n\n- (not in the library)\n")
    assert file.stat().st_mode & 0o777 == 0o640
    before = file.read_text()
    for arguments, message in (
        (["who?", "--expect", "x"], "is asked in line 6 already"),
        (["New?", "--expect", ""], "an empty bullet"),
        (["New?", "--expect", "x", "--path", "nowhere"], "line 14"),
        (["*New*?", "--expect", "x"], "would be read as something else"),
    ):
        refused = cli("eval", "add", *arguments)
        assert (refused.returncode, message in refused.stderr) == (2, True), refused.stderr
        assert file.read_text() == before
