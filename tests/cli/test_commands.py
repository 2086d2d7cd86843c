"""Import, export, access, tree, drilldown and check, each as a process on a real snapshot."""

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from libraryfs.paths import SECTIONS
from libraryfs.settings import login_name
from tests.cli.conftest import Run

Answer = Callable[..., Any]


@pytest.fixture
def filled(cli: Run, notes: Path) -> None:
    """The snapshot at its default place, with the notes in ring dev."""
    done = cli("import", notes, "--ring", "dev", "--no-embed")
    assert done.returncode == 0, done.stderr


def names(node: dict[str, Any]) -> list[str]:
    """The names of a tree node's children."""
    return [child["name"] for child in node["children"]]


def test_import_says_what_changed(cli: Run, answer: Answer, notes: Path, tmp_path: Path) -> None:
    """Added; then nothing; then one changed and one gone; the snapshot is at its documented place."""
    arguments = ("import", notes, "--ring", "dev", "--no-embed")
    first = answer(*arguments)
    assert first["namespaces"] == ["/ring/dev"]
    assert first["added"] == 7  # the workspace folder is a row too
    assert first["edges"] == 1
    assert (tmp_path / "data" / "libraryfs" / "library.db").is_file()
    assert answer(*arguments)["unchanged"] == 7
    (notes / "charter.md").write_text("# Charter of dev\n\nWe sleep at night.\n")
    (notes / "artifacts" / "logo.svg").unlink()
    done = cli(*arguments)
    assert "/ring/dev: " in done.stdout
    assert "0 added, 1 changed, 1 removed, 5 unchanged" in done.stdout


def test_import_tells_what_it_left_out(cli: Run, answer: Answer, notes: Path) -> None:
    """Counted by reason; named with --verbose, and always where it looks like a secret."""
    (notes / "node_modules").mkdir()
    (notes / "decisions" / "keys.md").write_text("# Keys\n\nghp_" + "a1B2" * 9 + "\n")
    (notes / "workspace" / ".env").write_text("DB_PASSWORD=hunter2hunter2\n")
    done = cli("import", notes, "--ring", "dev", "--no-embed")
    assert done.returncode == 0
    assert f"{notes}/decisions/keys.md:3: GitHub Token" in done.stderr
    assert "    workspace/.env\n" in done.stderr
    assert "left out 1 file or folder: version control, caches" in done.stderr
    assert "node_modules" not in done.stderr
    assert "node_modules/\n" in cli("import", notes, "--ring", "dev", "--no-embed", "--verbose").stderr
    assert "keys.md" not in cli("tree", "/ring/dev", "--depth", "3").stdout
    assert answer("import", notes, "--ring", "dev", "--no-embed", "--allow-secrets")["added"] == 1


def test_a_plain_folder_and_its_options(cli: Run, answer: Answer, tmp_path: Path) -> None:
    """It is said what it was taken for; the options stay with the source."""
    for name in ("README.md", "docs/adr/0001-a.md", "docs/guide.md", "build.log"):
        path = tmp_path / "project" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# {name}\n")
    done = cli("import", "project", "--ring", "dev", "--no-embed", "--from", "tree")
    assert "taken as any folder, as the tree that it is, in workspace/" in done.stdout
    options = ("--map", "docs/adr=decisions", "--exclude", "*.log")
    assert answer("import", "project", "--ring", "dev", "--no-embed", *options)["skipped"] == {"--exclude": 1}
    assert names(answer("tree", "/ring/dev/decisions")) == ["0001-a.md"]
    assert answer("import", "project", "--ring", "dev", "--no-embed")["unchanged"] == 4
    assert "a place is a section" in cli("import", "project", "--ring", "dev", "--section", "nowhere").stderr


def test_a_refused_import_leaves_no_snapshot(cli: Run, notes: Path, tmp_path: Path) -> None:
    """Nothing is made for an import that fails."""
    (notes / "decisions" / "odd.md").write_text("---\na: b: c\n---\n")
    assert cli("import", notes, "--ring", "dev", "--strict").returncode == 2
    assert not list(tmp_path.glob("data/libraryfs/*"))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--ring", "dev", "--agent", "alice"], "one of the two"),
        ([], "--ring"),
        (["--ring", "a/b"], "a/b"),
        (["--ring", ".ask"], "control file"),
    ],
)
def test_import_needs_one_place(cli: Run, notes: Path, arguments: list[str], says: str) -> None:
    """A folder goes into one ring or one agent, and the name is a name."""
    done = cli("import", notes, *arguments, "--no-embed")
    assert done.returncode == 2
    assert says in done.stderr


def test_import_of_an_absent_source_makes_no_snapshot(cli: Run, tmp_path: Path) -> None:
    """A typing error leaves nothing behind."""
    assert cli("import", "absent", "--ring", "dev").returncode == 2
    assert not (tmp_path / "data").exists()


def test_import_into_an_agent(answer: Answer, tmp_path: Path) -> None:
    """/agent/alice has one folder, memory."""
    journal = tmp_path / "journal"
    journal.mkdir()
    (journal / "monday.md").write_text("It rained.\n")
    assert answer("import", journal, "--agent", "alice", "--no-embed")["namespaces"] == ["/agent/alice"]
    assert names(answer("tree", "/agent/alice/memory")) == ["monday.md"]


@pytest.mark.usefixtures("filled")
def test_the_importer_sees_what_it_imported(cli: Run, answer: Answer, notes: Path) -> None:
    """The login name is granted; --as grants another principal; --no-grant nobody."""
    assert answer("grants") == [{"principal": login_name(), "path": "/ring/dev"}]
    answer("import", notes, "--ring", "ops", "--as", "bob", "--no-embed")
    answer("import", notes, "--ring", "lab", "--no-grant", "--no-embed")
    assert answer("grants", "--principal", "bob") == [{"principal": "bob", "path": "/ring/ops"}]
    assert cli("grants").stdout == f"bob   /ring/ops\n{login_name()}  /ring/dev\n"


@pytest.mark.usefixtures("filled")
def test_grant_and_revoke(cli: Run, answer: Answer) -> None:
    """Each says whether it changed anything; a hidden ring and an absent one read the same."""
    hidden = cli("tree", "/ring/dev", "--as", "alice")
    absent = cli("tree", "/ring/absent", "--as", "alice")
    assert hidden.returncode == absent.returncode == 2
    assert hidden.stderr.replace("/ring/dev", "") == absent.stderr.replace("/ring/absent", "")
    assert cli("grant", "alice", "/ring/dev").stdout == "alice may see /ring/dev\n"
    assert answer("grant", "alice", "/ring/dev")["paths"] == [{"path": "/ring/dev", "changed": False}]
    assert names(answer("tree", "/ring/dev", "--as", "alice")) == list(SECTIONS)
    assert answer("revoke", "alice", "/ring/dev")["paths"] == [{"path": "/ring/dev", "changed": True}]
    assert cli("tree", "/ring/dev", "--as", "alice").returncode == 2


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize("path", ["/ring/absent", "/ring", "/", "/ring/dev/skills", "dev", "/ring/../x"])
def test_grant_takes_whole_rings_and_agents_that_exist(cli: Run, path: str) -> None:
    """Anything else is the user's error, in one line."""
    done = cli("grant", "alice", path)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1


@pytest.mark.usefixtures("filled")
def test_export_and_import_give_an_equal_snapshot(cli: Run, answer: Answer, tmp_path: Path) -> None:
    """To stdout and to a file, whole and one ring; an import of it exports the same."""
    rows = cli("export").stdout
    assert all(json.loads(line)["store"] for line in rows.splitlines())
    report = answer("export", "--output", "rows.jsonl")
    assert report["rows"] == 7
    assert (tmp_path / "rows.jsonl").read_text() == rows
    assert stat.S_IMODE((tmp_path / "rows.jsonl").stat().st_mode) & 0o400
    assert answer("import", "rows.jsonl", "--no-grant", "--no-embed", "--snapshot", "copy.db")["added"] == 7
    assert cli("export", "--snapshot", "copy.db").stdout == rows
    assert "libraryfs: " in cli("export", "/ring/absent").stderr


@pytest.mark.usefixtures("filled")
def test_export_that_cannot_be_written_keeps_the_old_file(cli: Run, tmp_path: Path) -> None:
    """A failing export says where and leaves no part behind."""
    (tmp_path / "rows.jsonl").write_text("old")
    assert cli("export", "/ring/absent", "--output", "rows.jsonl").returncode == 2
    assert cli("export", "--output", "no/such/rows.jsonl").returncode == 2
    assert (tmp_path / "rows.jsonl").read_text() == "old"
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


@pytest.mark.usefixtures("filled")
def test_export_to_what_is_no_file_leaves_it_what_it_is(cli: Run, tmp_path: Path) -> None:
    """A pipe or a device is written to, a link is followed: neither is replaced by a file."""
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to("target.jsonl")
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    done = cli("export", "--output", pipe)
    assert done.returncode == 0, done.stderr
    rows = os.read(reader, 1 << 20)
    os.close(reader)
    assert pipe.is_fifo()
    assert cli("export", "--output", link).returncode == 0
    assert link.is_symlink()
    assert (tmp_path / "target.jsonl").read_bytes() == rows


@pytest.mark.usefixtures("filled")
def test_tree(cli: Run, answer: Answer) -> None:
    """Text and JSON; a depth over the limit is refused, not clipped."""
    text = cli("tree", "/ring/dev", "--depth", "2").stdout
    assert text.startswith("/ring/dev\n├── charter/\n")
    assert "use-rsync.md" in text
    assert names(answer("tree", "/ring/dev/decisions")) == ["use-ftp.md", "use-rsync.md"]
    done = cli("tree", "/ring/dev", "--depth", "6")
    assert done.returncode == 2
    assert "LIBRARYFS_MAX_DEPTH" in done.stderr
    assert cli("tree", "/ring/dev", "--depth", "6", env={"LIBRARYFS_MAX_DEPTH": "6"}).returncode == 0


@pytest.mark.usefixtures("filled")
def test_drilldown(cli: Run, answer: Answer) -> None:
    """It says why it stopped, with each cap."""
    assert cli("drilldown", "/ring/dev").stdout.splitlines()[-1].startswith("stopped: completed")
    for option, value in (
        ("max-depth", 1),
        ("max-items-per-level", 1),
        ("max-total-tokens", 1),
        ("circuit-breaker", 3),
    ):
        result = answer("drilldown", "/ring/dev", f"--{option}", value)
        assert result["stopped"] == option.replace("-", "_")
        assert result["left_out"] > 0
    done = cli("drilldown", "/ring/dev", "--max-depth", "0")
    assert done.returncode == 2
    assert "--max-depth" in done.stderr


@pytest.mark.usefixtures("filled")
def test_check(cli: Run, answer: Answer, notes: Path) -> None:
    """0 and `nothing wrong`; then 1 with each finding."""
    assert cli("check").stdout == "nothing wrong\n"
    assert answer("check") == {"ok": True, "problems": []}
    (notes / "decisions" / "third.md").write_text("---\nsupersedes: [nothing]\n---\n")
    (notes / "workspace" / ".ask").write_text("a control file's name\n")
    cli("import", notes, "--ring", "dev", "--no-embed", "--hidden")
    found = answer("check", expect=1)
    assert {problem["kind"] for problem in found["problems"]} == {"changed_name", "dangling_edge"}
    done = cli("check")
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1].startswith("2 problems: ")


def test_names_that_are_not_unicode_print(cli: Run, answer: Answer, notes: Path) -> None:
    """A name of any bytes is shown escaped in text, and kept in JSON."""
    (notes / "workspace" / "caf\udce9.txt").write_text("Latin-1")
    assert cli("import", notes, "--ring", "dev", "--no-embed").returncode == 0
    assert "\\udce9" in cli("tree", "/ring/dev/workspace").stdout
    assert "caf\udce9.txt" in names(answer("tree", "/ring/dev/workspace"))
