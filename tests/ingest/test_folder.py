"""A folder as a source: what becomes a row, under which name, and what is left out and said."""

import os
import re
import socket
from pathlib import Path

import pytest

from libraryfs.errors import InvalidPath, InvalidSource
from libraryfs.store import check
from libraryfs.store.snapshot import Snapshot
from tests.ingest.conftest import Importing
from tests.ingest.shown import attributes, files, folders, lay

RING: dict[str, str | bytes] = {
    "charter.md": "# We ship on Tuesdays\n",
    "skills/review.md": "---\ntitle: How to review\nowner: bob\n---\nRead it twice.\n",
    "skills/pdf/SKILL.md": "---\nname: pdf-forms\ndescription: Fill forms\n---\nUse the tool.\n",
    "skills/xlsx/SKILL.md": "No front matter.\n",
    "decisions/2024/use-sqlite.md": "---\nid: d2\nsupersedes: d1\n---\nSQLite.\n",
    "decisions/use-files.md": "---\nid: d1\n---\nFiles.\n",
    "instructions/deploy.MD": "Push the button.\n",
    "memories/tuesday.md": "---\nmemory_type: episodic\n---\nIt rained.\n",
    "memories/habit.md": "---\nmemory_type: procedural\n---\nStretch.\n",
    "memories/plain.md": "Water is wet.\n",
    "workspace/plan.md": "---\ntitle: not read here: at all\n---\nPlan.\n",
    "workspace/notes/.hidden": "left out",
    "workspace/empty/": "",
    "artifacts/img/a.png": b"\x89PNG\r\n\x1a\n\x00\xff",
    "artifacts/.config": "x",
}
SHOWN = {
    "/ring/dev/charter/charter.md": "charter.md",
    "/ring/dev/skills/review.md": "skills/review.md",
    "/ring/dev/skills/pdf/SKILL.md": "skills/pdf/SKILL.md",
    "/ring/dev/skills/xlsx/SKILL.md": "skills/xlsx/SKILL.md",
    "/ring/dev/decisions/2024/use-sqlite.md": "decisions/2024/use-sqlite.md",
    "/ring/dev/decisions/use-files.md": "decisions/use-files.md",
    "/ring/dev/instructions/deploy.MD": "instructions/deploy.MD",
    "/ring/dev/memories/tuesday.md": "memories/tuesday.md",
    "/ring/dev/memories/habit.md": "memories/habit.md",
    "/ring/dev/memories/plain.md": "memories/plain.md",
    "/ring/dev/workspace/plan.md": "workspace/plan.md",
    "/ring/dev/artifacts/img/a.png": "artifacts/img/a.png",
}


def test_a_ring_comes_out_byte_for_byte(tmp_path: Path, snapshot: Snapshot, bring: Importing) -> None:
    source = lay(tmp_path / "src", RING)
    report = bring(source)
    assert files(snapshot) == {shown: (source / name).read_bytes() for shown, name in SHOWN.items()}
    assert "/ring/dev/workspace/empty" in folders(snapshot, "/ring/dev/workspace")
    assert (report.added, report.changed, report.removed, report.edges) == (len(SHOWN) + 2, 0, 0, 1)
    assert report.skipped == {"hidden": 2}
    assert report.namespaces == ["/ring/dev"]
    assert [problem.kind for problem in check.check(snapshot.db)] == []


def test_what_the_front_matter_says_is_shown(tmp_path: Path, snapshot: Snapshot, bring: Importing) -> None:
    bring(lay(tmp_path / "src", RING))
    review = attributes(snapshot, "/ring/dev/skills/review.md")
    assert (review["id"], review["title"], review["type"], review["owner"]) == (
        "skills/review.md",
        "How to review",
        "skill",
        "bob",
    )
    assert attributes(snapshot, "/ring/dev/decisions/2024/use-sqlite.md")["supersedes"] == "d1"
    assert attributes(snapshot, "/ring/dev/decisions/use-files.md")["superseded_by"] == "d2"
    assert attributes(snapshot, "/ring/dev/memories/habit.md")["type"] == "procedural"
    assert attributes(snapshot, "/ring/dev/memories/plain.md")["type"] == "semantic"
    assert attributes(snapshot, "/ring/dev/artifacts/img/a.png")["media_type"] == "image/png"


def test_an_agent_has_flat_memory(tmp_path: Path, snapshot: Snapshot, bring: Importing) -> None:
    source: dict[str, str | bytes] = {
        "today.md": "---\nmemory_type: emotional\n---\nGlad.",
        "memory/fact.md": "Facts.",
        "deep/er/one.md": "Deep.",
        "picture.png": b"\x89PNG",
        ".drafts/app.md": "hidden",
    }
    report = bring(lay(tmp_path / "src", source), "/agent/ada")
    assert files(snapshot) == {
        "/agent/ada/memory/today.md": b"---\nmemory_type: emotional\n---\nGlad.",
        "/agent/ada/memory/fact.md": b"Facts.",
        "/agent/ada/memory/deep-er-one.md": b"Deep.",
    }
    assert report.skipped == {"not a document, and an agent has memory only": 1, "hidden": 1}
    assert attributes(snapshot, "/agent/ada/memory/today.md")["type"] == "emotional"


def test_what_is_left_out_is_counted_and_named(tmp_path: Path, snapshot: Snapshot, bring: Importing) -> None:
    source = lay(
        tmp_path / "src",
        {
            "charter.md": "x",
            "README.md": "for people",
            ".git/config": "x",
            "skills/.DS_Store": "x",
            "skills/.later/a.md": "x",
            "skills/tool.py": "print()",
            "artifacts/none/at/all/": "",
            "artifacts/one.txt": "1",
        },
    )
    report = bring(source)
    assert report.skipped == {
        "version control, caches, builds and installed packages": 2,
        "hidden": 1,
        "empty folder, which only workspace/ can hold": 1,
    }
    assert {one.path for one in report.skipped_files} == {
        ".git/",
        "skills/.DS_Store",
        "skills/.later/",
        "artifacts/none/at/all/",
    }
    assert set(files(snapshot)) == {
        "/ring/dev/charter/charter.md",
        "/ring/dev/artifacts/one.txt",
        "/ring/dev/artifacts/skills/tool.py",
        "/ring/dev/workspace/README.md",
    }


def test_links_devices_fifos_and_sockets(tmp_path: Path, snapshot: Snapshot, bring: Importing) -> None:
    source = lay(tmp_path / "src", {"skills/a.md": "A", "workspace/deep/real.txt": "real"})
    (tmp_path / "secret.md").write_text("outside")
    (source / "skills/inside.md").symlink_to("a.md")
    (source / "skills/outside.md").symlink_to(tmp_path / "secret.md")
    (source / "skills/nowhere.md").symlink_to("missing")
    (source / "skills/self.md").symlink_to("self.md")
    (source / "workspace/deep/up").symlink_to("..")
    (source / "workspace/null").symlink_to("/dev/null")
    os.mkfifo(source / "workspace/fifo")
    os.mkfifo(source / "skills/fifo.md")
    os.mknod(source / "workspace/zero", 0o600 | 0o020000, os.makedev(1, 5))
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(source / "workspace/sock"))
        report = bring(source)
    assert files(snapshot) == {
        "/ring/dev/skills/a.md": b"A",
        "/ring/dev/workspace/deep/real.txt": b"real",
    }
    assert report.skipped == {
        "symlink that leads nowhere or out of the source": 4,
        "symlink to what is imported at its own place": 2,
        "device, FIFO or socket": 4,
    }


def test_the_source_may_be_a_link_itself(tmp_path: Path, snapshot: Snapshot, bring: Importing) -> None:
    lay(tmp_path / "src", {"charter.md": "x"})
    (tmp_path / "link").symlink_to("src")
    bring(tmp_path / "link")
    assert set(files(snapshot)) == {"/ring/dev/charter/charter.md"}
    assert bring(tmp_path / "src").unchanged == 1


def test_names_of_every_kind(tmp_path: Path, snapshot: Snapshot, bring: Importing) -> None:
    names = [
        "日本語.md",
        "🎈.md",
        "-rf.md",
        "new\nline.md",
        "é" * 120 + ".md",
        "caf\udce9.md",
        "\udced\udca0\udc80.md",
        "100%.md",
        "a~b.md",
    ]
    source = lay(tmp_path / "src", {f"workspace/{name}": name.encode("utf-8", "surrogateescape") for name in names})
    lay(source, {f"skills/{name}": "skill" for name in names} | {f"artifacts/{name}": "artifact" for name in names})
    report = bring(source)
    assert report.added == 3 * len(names)
    shown = files(snapshot)
    assert len(shown) == 3 * len(names)
    below = {path: data for path, data in shown.items() if path.startswith("/ring/dev/workspace/")}
    assert sorted(below.values()) == sorted(name.encode("utf-8", "surrogateescape") for name in names)
    same = sum(data == os.fsencode(path.rpartition("/")[2]) for path, data in below.items() if "\ud800" not in path)
    assert same == len(names) - 1  # a lone surrogate is shown escaped
    assert bring(source).unchanged == report.added


def test_contents_of_every_kind(tmp_path: Path, snapshot: Snapshot, bring: Importing) -> None:
    contents = {
        "empty": b"",
        "latin1": "Grüße\n".encode("latin-1"),
        "zeros": b"\0" * 10,
        "crlf": b"---\r\ntitle: crlf\r\n---\r\nText\r\n",
        "bom": b"\xef\xbb\xbf---\ntitle: bom\n---\nText",
        "edge": b"x" * (128 * 1024),
        "over": b"y" * (128 * 1024 + 1),
    }
    bring(lay(tmp_path / "src", {f"memories/{name}.md": data for name, data in contents.items()}))
    assert files(snapshot) == {f"/ring/dev/memories/{name}.md": data for name, data in contents.items()}


def test_a_folder_chain_60_deep(tmp_path: Path, snapshot: Snapshot, bring: Importing) -> None:
    deep = "/".join(f"d{number}" for number in range(60))
    report = bring(lay(tmp_path / "src", {f"workspace/{deep}/end.txt": "end", f"artifacts/{deep}/end.txt": "end"}))
    assert report.added == 62
    assert set(files(snapshot)) == {f"/ring/dev/{section}/{deep}/end.txt" for section in ("workspace", "artifacts")}


def test_the_folder_decides_the_section(tmp_path: Path, snapshot: Snapshot, bring: Importing) -> None:
    source = {
        "skills/a.md": "---\nmemory_type: decision\n---\n",
        "memories/b.md": "---\nmemory_type: policy\n---\n",
        "skills/c.md": "---\nmemory_type: skill\n---\n",
    }
    report = bring(lay(tmp_path / "src", source))
    assert set(files(snapshot)) == {f"/ring/dev/{name}" for name in source}
    assert attributes(snapshot, "/ring/dev/skills/a.md")["memory_type"] == "decision"
    assert len(report.warnings) == 2
    assert "skills/a.md: memory_type decision does not belong in skills/" in report.warnings[0] + report.warnings[1]


def test_a_folder_without_sections_is_a_tree(tmp_path: Path, snapshot: Snapshot, bring: Importing) -> None:
    report = bring(lay(tmp_path / "src", {"notes.md": "x", "deep/er/one.txt": "y", "skils/a.md": "z"}))
    assert set(files(snapshot)) == {
        f"/ring/dev/workspace/{name}" for name in ("notes.md", "deep/er/one.txt", "skils/a.md")
    }
    assert (report.kind, report.taken_as) == ("tree", "any folder, as the tree that it is, in workspace/")


def test_what_is_in_no_section_goes_to_the_workspace(tmp_path: Path, snapshot: Snapshot, bring: Importing) -> None:
    source = {"skills/a.md": "A", "skils/b.md": "B", "README.md": "top", "workspace/README.md": "below", "x.txt": "X"}
    report = bring(lay(tmp_path / "src", source))
    assert files(snapshot) == {
        "/ring/dev/skills/a.md": b"A",
        "/ring/dev/workspace/skils/b.md": b"B",
        "/ring/dev/workspace/README.md": b"below",
        "/ring/dev/workspace/x.txt": b"X",
    }
    assert report.skipped == {"not in a section, and the section workspace has one of this name": 1}
    assert report.kind == "sections"


def test_one_file_is_a_source(tmp_path: Path, snapshot: Snapshot, bring: Importing) -> None:
    source = lay(tmp_path / "src", {"note.md": "# One\n", "other.md": "not asked for"}) / "note.md"
    bring(source)
    bring(source, "/agent/ada")
    assert files(snapshot) == {"/ring/dev/workspace/note.md": b"# One\n", "/agent/ada/memory/note.md": b"# One\n"}
    source.write_text("# Two\n")
    assert bring(source).changed == 1


def test_a_folder_needs_a_place(tmp_path: Path, bring: Importing) -> None:
    with pytest.raises(InvalidSource, match="--ring NAME or --agent NAME"):
        bring(lay(tmp_path / "src", {"a.md": "x"}), None)


def test_one_id_twice_keeps_both(tmp_path: Path, snapshot: Snapshot, bring: Importing) -> None:
    source = lay(tmp_path / "src", {"a.md": "---\nid: one\n---\nA", "b.md": "---\nid: one\n---\nB"})
    report = bring(source, "/agent/ada")
    assert [attributes(snapshot, f"/agent/ada/memory/{name}")["id"] for name in ("a.md", "b.md")] == ["one", "b.md"]
    assert report.warnings == [f"{source}/b.md:1: the id one is that of {source}/a.md too; kept by its path"]
    (source / "a.md").unlink()
    bring(source, "/agent/ada")  # b.md is the memory `one` now, which keeps its name
    assert files(snapshot) == {"/agent/ada/memory/a.md": (source / "b.md").read_bytes()}
    lay(source, {"c.md": "---\nid: one\n---\nC"})
    bring(source, "/agent/ada")
    assert attributes(snapshot, "/agent/ada/memory/c.md")["id"] == "c.md"


ODD: dict[str, str | bytes] = {
    "rules.md": "---\nA text between two rules.\n---\n# The text\n",
    "template.md": "---\n{{title}}\n---\n# The template\n",
    "colon.md": "---\ntitle: Part 2: The sequel\n---\n# The sequel\n",
    "sam.md": "---\n- @sam\n---\n# Ask Sam\n",
    "home.md": "---\n[[Home]]\n---\nNo heading here.\n",
    "list.md": "---\ntitle: [a, b]\nstatus: kept\n---\n# A list\n",
    "high.md": "---\nconfidence: high\nstatus: kept\n---\n# Sure\n",
    "percent.md": "---\nconfidence: 95\n---\n# Percent\n",
    "two.md": "---\nstatus: kept\n---\n---\nsecond: block\n---\n# Two blocks\n",
    "latin.md": b"---\ntitle: caf\xe9\n---\nText\n",
}


def test_odd_front_matter_refuses_nothing(tmp_path: Path, snapshot: Snapshot, bring: Importing) -> None:
    """Each comes in whole, titled by its first heading, else its stem, with one warning that names file and line."""
    source = lay(tmp_path / "src", {f"decisions/{name}": text for name, text in ODD.items()})
    lay(source, {"decisions/ok.md": "x"})
    report = bring(source)
    assert files(snapshot) == {f"/ring/dev/decisions/{p.name}": p.read_bytes() for p in source.rglob("*.md")}
    titles = {name: attributes(snapshot, f"/ring/dev/decisions/{name}")["title"] for name in ODD}
    assert titles == {
        "rules.md": "The text",
        "template.md": "The template",
        "colon.md": "The sequel",
        "sam.md": "Ask Sam",
        "home.md": "home",
        "list.md": "A list",
        "high.md": "Sure",
        "percent.md": "Percent",
        "two.md": "Two blocks",
        "latin.md": "café",
    }
    for name in ("list.md", "high.md", "two.md"):
        assert attributes(snapshot, f"/ring/dev/decisions/{name}")["status"] == "kept"
    assert attributes(snapshot, "/ring/dev/decisions/high.md")["metadata.confidence"] == "high"
    for name in ODD:
        (warning,) = [one for one in report.warnings if f"decisions/{name}:" in one]
        assert re.search(rf"decisions/{re.escape(name)}:[1-5]: ", warning), warning


def test_strict_names_all_odd_files_at_once(tmp_path: Path, snapshot: Snapshot, bring: Importing) -> None:
    source = lay(tmp_path / "src", {f"skills/s{number}.md": "---\na: b: c\n---\n" for number in range(8)})
    with pytest.raises(
        InvalidSource, match=r"skills/s0\.md:2: .*skills/s4\.md:2: .*; and 3 more\. Nothing was imported$"
    ):
        bring(source, strict=True)
    assert files(snapshot) == {}
    assert bring(source).added == 8


@pytest.mark.parametrize("name", ["missing", "fifo"])
def test_a_source_that_is_none(tmp_path: Path, bring: Importing, name: str) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(InvalidSource, match=r"no such file or folder|neither a folder nor a regular file"):
        bring(tmp_path / name)


@pytest.mark.parametrize(
    "namespace", ["/ring/dev/skills", "/ring", "ring/dev", "/ring/.ask", "/ring/..", "/agent/a/memory"]
)
def test_a_namespace_that_is_none(tmp_path: Path, bring: Importing, namespace: str) -> None:
    with pytest.raises(InvalidPath):
        bring(lay(tmp_path / "src", {"charter.md": "x"}), namespace)


def test_the_snapshot_does_not_import_itself(tmp_path: Path) -> None:
    from libraryfs.ingest.importer import import_source

    source = lay(tmp_path / "src", {"workspace/a.txt": "a"})
    with Snapshot.open(source / "workspace/library.db", create=True) as inner:
        report = import_source(inner, source, "/ring/dev", "alice")
        assert set(files(inner)) == {"/ring/dev/workspace/a.txt"}
    assert report.skipped == {"a libraryfs snapshot": 3}
