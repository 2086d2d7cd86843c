"""Stored text on a terminal: what a terminal would obey is shown, not obeyed; into a pipe it goes as it is."""

import json
import re
from pathlib import Path

import pytest

from libraryfs.cli.output import escaped
from tests.cli.conftest import Run
from tests.cli.test_main import on_a_terminal

NO_MODELS = {"LIBRARYFS_EMBEDDER": "none", "LIBRARYFS_LLM": "none"}
CLEAR, TITLE, BELL, C1, OVER = "\x1b[2J", "\x1b]0;owned\x07", "\x07", "\x9b31m", "\rRefund"
HOSTILE = f"Refunds{CLEAR} take{TITLE} ten{BELL} days{C1} at most.{OVER} never."
STYLE = re.compile(r"\x1b\[(0|1|2|31|32|33)m")
"""Of our own."""
OBEYED = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]|\r(?!\r*\n)")  # the terminal's driver makes \n into \r\n
RING = "dev\x1b[31m"


@pytest.fixture
def hostile(tmp_path: Path, environment: dict[str, str], cli: Run) -> dict[str, str]:
    """A library in which every text has an escape sequence; and the environment to ask it in."""
    rows = [
        {"store": "memory", "namespace": f"/ring/{RING}", "id": "m1", "memory_type": "policy",
         "title": f"Refunds{CLEAR}", "content": HOSTILE + "\n"},
        {"store": "workspace", "namespace": f"/ring/{RING}", "id": "w1", "name": f"plan{TITLE}.md", "content": HOSTILE},
        {"store": "workspace", "namespace": f"/ring/{RING}", "id": "w2", "name": "eval-set.md",
         "content": f"## How long do refunds take?{C1}\n- ten{CLEAR} days\n"},
        {"store": "grant", "principal": "me", "path": f"/ring/{RING}"},
    ]  # fmt: skip
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert cli("import", path, "--no-embed", "--as", "me").returncode == 0
    return environment | NO_MODELS | {"TERM": "dumb"}  # no progress bars, which move the cursor


@pytest.mark.slow  # an interpreter each
@pytest.mark.parametrize(
    "command",
    [
        ["ask", "How long do refunds take?", "--as", "me"],
        ["ask", "How long do refunds take?", "--as", "me", "--short"],
        ["ask", "How long do refunds take?", "--as", "me", "--json"],
        ["ask", "Who is Refunds\x1b[2J?", "--as", "me"],
        ["drilldown", "/", "--as", "me", "--max-depth", "5"],
        ["drilldown", f"/ring/{RING}", "--as", "me", "--json"],
        ["tree", f"/ring/{RING}", "--depth", "3", "--as", "me"],
        ["eval", f"/ring/{RING}", "--as", "me", "--no-llm-judge"],
        ["eval", "new", f"/ring/{RING}", "--as", "me", "--output", "-"],
        ["grants"],
        ["revoke", "you", f"/ring/{RING}"],
        ["export"],
        ["check"],
        ["doctor"],
    ],
)
def test_nothing_stored_is_obeyed(hostile: dict[str, str], tmp_path: Path, command: list[str]) -> None:
    """Of all that a terminal gets, only our own styles are commands."""
    seen = STYLE.sub("", on_a_terminal(command, hostile, tmp_path))
    assert seen
    assert OBEYED.findall(seen) == []


def test_into_a_pipe_it_goes_as_it_is(hostile: dict[str, str], cli: Run) -> None:
    """For a program that reads it."""
    for command in (["ask", "How long do refunds take?"], ["drilldown", f"/ring/{RING}"]):
        done = cli(*command, "--as", "me", env=hostile)
        assert CLEAR in done.stdout
        assert C1 in done.stdout
    rows = [json.loads(line) for line in cli("export").stdout.splitlines()]
    assert HOSTILE + "\n" in [row.get("content") for row in rows]


def test_json_on_a_terminal_is_still_json(hostile: dict[str, str], tmp_path: Path) -> None:
    """The escapes are its own."""
    seen = on_a_terminal(["ask", "How long do refunds take?", "--as", "me", "--json"], hostile, tmp_path)
    assert C1 in json.loads(seen)["evidence"][0]["excerpt"]


def test_escaped() -> None:
    """Tabs, line ends and letters of every script stay."""
    assert escaped("a\tb\r\nc\n हिन्दी 👩\u200d🚀") == "a\tb\r\nc\n हिन्दी 👩\u200d🚀"
    assert escaped("\x1b[2J\x07\x9b\x7f\rx") == "\\x1b[2J\\x07\\x9b\\x7f\\x0dx"
    assert escaped([{"a\x07": ("\x07", 1, None)}]) == [{"a\\x07": ("\\x07", 1, None)}]
