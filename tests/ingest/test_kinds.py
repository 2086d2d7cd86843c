"""Kinds of sources: how each is recognised, and what it becomes."""

import json
from pathlib import Path
from typing import Any

import pytest

from libraryfs.errors import InvalidRequest, InvalidSource
from libraryfs.ingest import kinds
from libraryfs.store.snapshot import Snapshot
from tests.ingest.conftest import Importing
from tests.ingest.shown import attributes, files, lay

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "sources"

PROJECT: dict[str, str | bytes] = {
    "AGENTS.md": "# For agents\n",
    "README.md": "# A project\n",
    "SECURITY.md": "# Report it\n",
    "CONTRIBUTING.md": "# How to help\n",
    ".cursorrules": "Be brief.\n",
    ".github/copilot-instructions.md": "# For Copilot\n",
    ".github/workflows/ci.yml": "on: push\n",
    "docs/adr/0001-use-ftp.md": "# FTP\n\nDate: 2020-01-02\n\n## Status\n\nSuperseded by [2. x](0002-use-rsync.md)\n",
    "docs/adr/0002-use-rsync.md": "# 2. Use rsync\n\n## Status\n\nAccepted\n\nSupersedes [1. x](0001-use-ftp.md)\n",
    "docs/adr/0003-use-git.md": "---\nstatus: accepted\nsupersedes: ADR-0002\n---\n# Use git\n",
    "docs/adr/0004-old.md": "* Status: superseded by [ADR-0003](0003-use-git.md)\n\n# Old\n",
    "docs/guide.md": "# Guide\n",
    "docs/img/a.png": b"\x89PNG\r\n\x1a\n\0",
    "runbooks/restart.md": "# Restart\n",
    "src/main.py": "print()\n",
}


def test_a_project(tmp_path: Path, snapshot: Snapshot, bring: Importing) -> None:
    source = lay(tmp_path / "src", PROJECT)
    report = bring(source)
    assert report.kind == "project"
    assert set(files(snapshot)) == {
        "/ring/dev/instructions/AGENTS.md",
        "/ring/dev/instructions/.cursorrules",
        "/ring/dev/instructions/.github/copilot-instructions.md",
        "/ring/dev/policies/SECURITY.md",
        "/ring/dev/protocols/CONTRIBUTING.md",
        "/ring/dev/protocols/restart.md",
        *(f"/ring/dev/decisions/{Path(name).name}" for name in PROJECT if "/adr/" in name),
        "/ring/dev/workspace/README.md",
        "/ring/dev/workspace/docs/guide.md",
        "/ring/dev/workspace/src/main.py",
        "/ring/dev/artifacts/docs/img/a.png",
    }
    first = attributes(snapshot, "/ring/dev/decisions/0001-use-ftp.md")
    assert (first["superseded_by"], first["date"]) == ("decisions/0002-use-rsync.md", "2020-01-02")
    assert attributes(snapshot, "/ring/dev/decisions/0002-use-rsync.md")["superseded_by"] == "decisions/0003-use-git.md"
    assert attributes(snapshot, "/ring/dev/decisions/0004-old.md")["superseded_by"] == "decisions/0003-use-git.md"
    assert attributes(snapshot, "/ring/dev/decisions/0002-use-rsync.md")["status"] == "Accepted"


def test_an_edit_keeps_the_links_of_the_others(tmp_path: Path, snapshot: Snapshot, bring: Importing) -> None:
    source = lay(tmp_path / "src", PROJECT)
    edges = bring(source).edges
    (source / "docs/adr/0004-old.md").write_text("* Status: superseded by [ADR-0002](0002-use-rsync.md)\n\n# Old\n")
    assert bring(source).edges == edges
    assert attributes(snapshot, "/ring/dev/decisions/0004-old.md")["superseded_by"] == "decisions/0002-use-rsync.md"
    assert bring(source).edges == edges


VAULT: dict[str, str | bytes] = {
    ".obsidian/app.json": "{}",
    "Home.md": "See [[Ferry]], [[people/Ann|my friend]], [[Big Boat]] and ![[map.png]].\n\n```\n[[Not a link]]\n```\n",
    "trips/Ferry.md": "---\naliases: [Big Boat]\n---\nBack [[Home#top]], and [Ann](../people/Ann%20B.md).\n",
    "people/Ann.md": "Nothing.\n",
    "people/Ann B.md": "[[Nobody]] knows.\n",
    "map.png": b"\x89PNG\0",
}


def test_a_vault(tmp_path: Path, snapshot: Snapshot, bring: Importing) -> None:
    source = lay(tmp_path / "src", VAULT)
    report = bring(source)
    assert (report.kind, report.edges) == ("vault", 4)
    assert files(snapshot) == {
        f"/ring/dev/{'artifacts' if name.endswith('png') else 'memories'}/{name}": (source / name).read_bytes()
        for name in VAULT
        if not name.startswith(".")
    }
    home = attributes(snapshot, "/ring/dev/memories/Home.md")
    assert set(home["related_to"].split("\n")) == {"memories/trips/Ferry.md", "memories/people/Ann.md"}
    assert home["related_to_by"] == "memories/trips/Ferry.md"
    assert attributes(snapshot, "/ring/dev/memories/people/Ann B.md")["related_to_by"] == "memories/trips/Ferry.md"
    lay(source, {"Nobody.md": "Here after all.\n"})
    assert bring(source).edges == 5  # a link that led nowhere leads to the new note


def test_skills_are_kept_whole(snapshot: Snapshot, bring: Importing) -> None:
    source = SHARED / "skills"
    report = bring(source)
    assert report.kind == "skills"
    expected = {path.relative_to(source).as_posix(): path.read_bytes() for path in source.rglob("*") if path.is_file()}
    left_out = {one.path for one in report.skipped_files}
    shown = {path.removeprefix("/ring/dev/skills/"): data for path, data in files(snapshot).items()}
    assert shown.items() <= expected.items()
    assert len(expected) - len(shown) == sum(report.skipped.values()) == len(left_out) <= 2
    assert attributes(snapshot, "/ring/dev/skills/mcp-builder/SKILL.md")["title"] == "mcp-builder"


@pytest.mark.parametrize("dialect", ["lines", "typed", "graph"])
def test_mcp_memory(tmp_path: Path, snapshot: Snapshot, bring: Importing, dialect: str) -> None:
    entities: list[dict[str, Any]] = [
        {"name": "Ann", "entityType": "person", "observations": ["likes boats", "lives in Oslo"]},
        {"name": "Ferry", "entityType": "boat", "observations": ["leaves at seven"]},
    ]
    relations = [{"from": "Ann", "to": to, "relationType": "takes"} for to in ("Ferry", "nobody")]
    if dialect == "graph":
        text = json.dumps({"entities": entities, "relations": relations}, indent=1)
    else:
        rows = [("entity", one) for one in entities] + [("relation", one) for one in relations]
        lines = [json.dumps(one if dialect == "lines" else {"type": kind, **one}) for kind, one in rows]
        text = "\n".join([*lines, "not JSON"]) + "\n"
    source = tmp_path / ("memory.json" if dialect == "graph" else "memory.jsonl")
    source.write_text(text)
    report = bring(source)
    assert (report.kind, report.added, report.edges) == ("mcp-memory", 2, 1)
    assert ["memory.jsonl:5: not JSON" in one for one in report.warnings] == ([] if dialect == "graph" else [True])
    assert files(snapshot)["/ring/dev/memories/ann.md"] == b"# Ann\n\nperson\n\n- likes boats\n- lives in Oslo\n"
    assert attributes(snapshot, "/ring/dev/memories/ferry.md")["takes_by"] == "Ann"
    assert bring(source).unchanged == 2


def test_real_mcp_memory_and_agent_file(snapshot: Snapshot, bring: Importing) -> None:
    report = bring(SHARED / "maithanhduyan_memory.jsonl")
    assert (report.kind, report.warnings) == ("mcp-memory", [])
    assert report.added > 10
    report = bring(SHARED / "letta" / "memgpt_agent_with_convo.af", "/agent/sam")
    assert report.kind == "letta"
    assert b"First name: Chad" in files(snapshot)["/agent/sam/memory/human.md"]


def test_an_agent_file_of_another_version(tmp_path: Path, bring: Importing) -> None:
    (tmp_path / "x.af").write_text('{"version": 99}')
    with pytest.raises(InvalidSource, match="a version that is not known"):
        bring(tmp_path / "x.af")


def test_conversations(tmp_path: Path, snapshot: Snapshot, bring: Importing) -> None:
    claude = {
        "uuid": "c1",
        "name": "Boats",
        "created_at": "2024-05-01T10:00:00Z",
        "updated_at": "2024-05-01T11:00:00Z",
        "chat_messages": [{"sender": "human", "text": "When?"}, {"sender": "assistant", "text": "At seven."}],
    }

    def node(parent: str | None, role: str, text: str) -> dict[str, Any]:
        return {"parent": parent, "message": {"author": {"role": role}, "content": {"parts": [text]}}}

    mapping = {
        "a": node(None, "user", "Where?"),
        "b": node("a", "assistant", "Here."),
        "x": node("a", "assistant", "No."),
    }
    chatgpt = {"id": "g1", "title": "Places", "create_time": 1714557600.5, "mapping": mapping, "current_node": "b"}
    lay(tmp_path, {"claude/conversations.json": json.dumps([claude, {"uuid": "empty", "chat_messages": []}])})
    lay(tmp_path, {"chatgpt/conversations.json": json.dumps([chatgpt])})
    report = bring(tmp_path / "claude")
    assert (report.kind, report.added, len(report.warnings)) == ("claude", 1, 1)
    assert bring(tmp_path / "chatgpt").kind == "chatgpt"
    shown = files(snapshot)
    assert shown["/ring/dev/memories/boats.md"] == b"# Boats\n\n**human:** When?\n\n**assistant:** At seven.\n"
    assert shown["/ring/dev/memories/places.md"] == b"# Places\n\n**user:** Where?\n\n**assistant:** Here.\n"
    assert attributes(snapshot, "/ring/dev/memories/boats.md")["updated_at"] == "2024-05-01T11:00:00Z"


def test_a_kind_that_is_none(tmp_path: Path, bring: Importing) -> None:
    with pytest.raises(InvalidRequest, match="no such kind of source; there are letta, mcp-memory"):
        bring(lay(tmp_path / "src", {"a.md": "x"}), options={"kind": "nonsense"})


def test_the_user_may_say_otherwise(tmp_path: Path, snapshot: Snapshot, bring: Importing) -> None:
    report = bring(lay(tmp_path / "src", VAULT), options={"kind": "tree"})
    assert (report.kind, report.edges) == ("tree", 0)
    assert "/ring/dev/workspace/trips/Ferry.md" in files(snapshot)


def test_each_kind_says_what_it_is() -> None:
    for name, kind in kinds.table().items():
        assert name == kind.name
        assert kind.says
