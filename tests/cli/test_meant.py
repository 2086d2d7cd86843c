"""What a user means who writes something near to it: commands, paths, sections, settings, a question without quotes."""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from libraryfs.cli.main import COMMANDS, OTHER_WORDS
from tests.cli.conftest import Run

NO_MODELS = {"LIBRARYFS_EMBEDDER": "none", "LIBRARYFS_LLM": "none"}


@pytest.fixture
def filled(cli: Run, notes: Path) -> None:
    """A snapshot of the notes, in a ring that bob sees too, and one that he does not see."""
    for ring in ("dev", "ops"):
        assert cli("import", notes, "--ring", ring, "--no-embed").returncode == 0
    assert cli("grant", "bob", "/ring/ops").returncode == 0


@pytest.mark.parametrize(
    ("word", "meant"),
    [("imprt", "import"), ("Tree", "tree"), ("search", "ask"), ("ls", "tree"), ("unmount", "umount"), ("evl", "eval")],
)
def test_a_command_that_is_none(cli: Run, word: str, meant: str) -> None:
    """It says which one does that; a word like none of them gets no guess."""
    done = cli(word, "/ring/dev")
    assert done.returncode == 2
    assert f"No such command '{word}'; did you mean 'libraryfs {meant}'?" in done.stderr
    assert "mean" not in cli("qwxyz").stderr


def test_other_words_lead_to_commands() -> None:
    """None of them is a command itself, and each names one."""
    assert not OTHER_WORDS.keys() & COMMANDS.keys()
    assert set(OTHER_WORDS.values()) <= COMMANDS.keys()


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("/ring/dve", "/ring/dev"),
        ("/ring/Dev/decisions", "/ring/dev"),
        ("/ring/dev/decisions/use-rsnc.md", "/ring/dev/decisions/use-rsync.md"),
        ("/ring/dev/decisions/use-rsync", "/ring/dev/decisions/use-rsync.md"),
        ("/ring/dev/workspace/Plans", "/ring/dev/workspace/plans"),
        ("/ring/dev/Decisions/", "'decisions'"),
        ("/ring/dev/skill", "'skills'"),
    ],
)
def test_a_path_that_is_none(cli: Run, path: str, meant: str) -> None:
    """The nearest name in the last folder that is there."""
    for command in (["tree", path], ["drilldown", path], ["ask", "How?", "--path", path]):
        done = cli(*command, env=NO_MODELS)
        assert done.returncode == 2
        assert f"did you mean {meant}?" in done.stderr
        assert done.stderr.count("\n") == 1
    assert "mean" not in cli("tree", "/ring/qwxyz").stderr


@pytest.mark.usefixtures("filled")
def test_no_hint_names_what_is_hidden(cli: Run) -> None:
    """To bob, who does not see /ring/dev, a path near to it is as any other."""
    for path in ("/ring/dve", "/ring/dev", "/ring/dev/decisions/use-rsync"):
        assert "mean" not in cli("tree", path, "--as", "bob").stderr
    assert "did you mean /ring/ops?" in cli("tree", "/ring/op", "--as", "bob").stderr


@pytest.mark.usefixtures("filled")
def test_grants_of_several(cli: Run, answer: Callable[..., Any]) -> None:
    """All or none; one that is near to a ring is asked about."""
    assert cli("grant", "eve", "/ring/dev", "/ring/ops").stdout == "eve may see /ring/dev\neve may see /ring/ops\n"
    done = cli("revoke", "eve", "/ring/dev", "/ring/opps")
    assert done.returncode == 2
    assert "did you mean /ring/ops?" in done.stderr
    assert [one["path"] for one in answer("grants", "--principal", "eve")] == ["/ring/dev", "/ring/ops"]
    said = answer("revoke", "eve", "/ring/dev", "/ring/ops")
    assert [one["changed"] for one in said["paths"]] == [True, True]


def test_a_setting_that_is_none_is_said_once(cli: Run) -> None:
    """On stderr, with the one that was meant; the project's own scripts may have theirs."""
    done = cli("grants", env={"LIBRARYFS_EMBEDER": "none", "LIBRARYFS_QWXYZ": "1", "LIBRARYFS_NO_SETUP": "1"})
    lines = [line for line in done.stderr.splitlines() if "warning" in line]
    assert lines == [
        "libraryfs: warning: LIBRARYFS_EMBEDER is no setting, and is ignored; did you mean LIBRARYFS_EMBEDDER?",
        "libraryfs: warning: LIBRARYFS_QWXYZ is no setting, and is ignored",
    ]


@pytest.mark.usefixtures("filled")
def test_a_question_without_quotes(cli: Run) -> None:
    """It is understood, with its options where they stand."""
    done = cli("ask", "How", "do", "we", "copy?", "--path", "/ring/dev", "--json", env=NO_MODELS)
    assert json.loads(done.stdout)["question"] == "How do we copy?"


@pytest.mark.usefixtures("filled")
def test_export_to_stdout_by_its_usual_name(cli: Run) -> None:
    """`--output -` is stdout, and no file of that name."""
    assert cli("export", "--output", "-").stdout == cli("export").stdout


@pytest.mark.usefixtures("filled")
def test_a_tree_says_where_more_is(cli: Run, answer: Callable[..., Any]) -> None:
    """Without a path it is the root's; a folder at which the depth ends has its count."""
    assert cli("tree").stdout == cli("tree", "/").stdout
    assert "ring/  … 2 more" in cli("tree").stdout
    assert "decisions/  … 2 more" in cli("tree", "/ring/dev").stdout
    assert "ring/  … 1 more" in cli("tree", "--as", "bob").stdout
    assert answer("tree", "--depth", "0")["more"] == 2
    assert "more" not in cli("tree", "/ring/dev/decisions").stdout


@pytest.fixture
def point(cli: Run, filled: None, tmp_path: Path) -> Iterator[Path]:
    """A mount of that snapshot."""
    folder = tmp_path / "my library"
    folder.mkdir()
    assert cli("mount", folder, "--log-file", tmp_path / "log").returncode == 0
    yield folder
    subprocess.run(["fusermount3", "-u", "-z", str(folder)], check=True)


def test_a_path_in_a_mount(cli: Run, point: Path, tmp_path: Path) -> None:
    """It is taken for the library path that it is, through links too, absolute and relative."""
    link = tmp_path / "link"
    link.symlink_to(point / "ring")
    said = cli("tree", "/ring/dev/decisions").stdout
    for path in (point / "ring/dev/decisions", link / "dev/decisions", "my library/ring/dev/decisions/"):
        assert cli("tree", path).stdout == said
    asked = cli("ask", "How do we copy?", "--path", point / "ring/dev", "--json", env=NO_MODELS)
    assert all(item["path"].startswith("/ring/dev/") for item in json.loads(asked.stdout)["evidence"])
    assert cli("tree", point).stdout == cli("tree", "/").stdout
    assert "starts with /" in cli("tree", "notes").stderr
    assert "did you mean /ring/dev?" in cli("tree", point / "ring/dve").stderr
