"""`sources` and `sync` as processes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.cli.conftest import Run

Answer = Callable[..., Any]


def test_sources_and_sync(cli: Run, answer: Answer, notes: Path) -> None:
    """What was imported is listed, brought in step, and forgotten."""
    assert answer("import", notes, "--ring", "dev", "--no-embed", "--exclude", "*.log")["added"] == 7
    (listed,) = answer("sources")
    assert (listed["source"], listed["namespace"], listed["rows"]) == (str(notes), "/ring/dev", 7)
    assert listed["options"] == {"exclude": ["*.log"]}
    assert "--exclude *.log" in cli("sources").stdout
    (notes / "charter.md").write_text("# Another charter\n")
    synced = answer("sync", "--no-embed")
    assert [one["report"]["changed"] for one in synced["sources"]] == [1]
    assert "0 added, 0 changed" in cli("sync", "--no-embed", notes).stdout
    assert "not a source here" in cli("sync", "elsewhere").stderr
    notes.rename(notes.parent / "moved")
    done = cli("sync", "--no-embed")
    assert done.returncode == 1
    assert "no such file or folder; its rows stay as they are" in done.stderr
    assert cli("sources", "--forget", notes).returncode == 0
    assert answer("sources") == []
