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
    "workspace/notes/.hidden": "kept",
    "workspace/empty/": "",
    "artifacts/img/a.png": b"\x89PNG\r\n\x1a\n\x00\xff",
    "artifacts/.config": "x",
}
SHOWN = {
    "/ring/dev/charter/charter.md": "charter.md",
    "/ring/dev/skills/how-to-review.md": "skills/review.md",
    "/ring/dev/skills/pdf-forms.md": "skills/pdf/SKILL.md",
    "/ring/dev/skills/xlsx.md": "skills/xlsx/SKILL.md",
    "/ring/dev/decisions/2024-use-sqlite.md": "decisions/2024/use-sqlite.md",
    "/ring/dev/decisions/use-files.md": "decisions/use-files.md",
    "/ring/dev/instructions/deploy.md": "instructions/deploy.MD",
    "/ring/dev/memories/tuesday.md": "memories/tuesday.md",
    "/ring/dev/memories/habit.md": "memories/habit.md",
    "/ring/dev/memories/plain.md": "memories/plain.md",
    "/ring/dev/workspace/plan.md": "workspace/plan.md",
    "/ring/dev/workspace/notes/.hidden": "workspace/notes/.hidden",
    "/ring/dev/artifacts/img/a.png": "artifacts/img/a.png",
    "/ring/dev/artifacts/.config": "artifacts/.config",
}


def test_a_ring_comes_out_byte_for_byte(tmp_path: Path, snapshot: Snapshot, bring: Importing) -> None:
    source = lay(tmp_path / "src", RING)
    report = bring(source)
    assert files(snapshot) == {shown: (source / name).read_bytes() for shown, name in SHOWN.items()}
    assert "/ring/dev/workspace/empty" in folders(snapshot, "/ring/dev/workspace")
    assert (report.added, report.changed, report.removed, report.edges) == (len(SHOWN) + 2, 0, 0, 1)
    assert report.skipped == {}
    assert report.namespaces == ["/ring/dev"]
    assert [problem.kind for problem in check.check(snapshot.db)] == []


def test_what_the_front_matter_says_is_shown(tmp_path: Path, snapshot: Snapshot, bring: Importing) -> None:
    bring(lay(tmp_path / "src", RING))
    review = attributes(snapshot, "/ring/dev/skills/how-to-review.md")
    assert (review["id"], review["title"], review["type"], review["owner"]) == (
        "skills/review.md",
        "How to review",
        "skill",
        "bob",
    )
    assert attributes(snapshot, "/ring/dev/decisions/2024-use-sqlite.md")["supersedes"] == "d1"
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
        ".obsidian/app.md": "hidden",
    }
    report = bring(lay(tmp_path / "src", source), "/agent/ada")
    assert files(snapshot) == {
        "/agent/ada/memory/today.md": b"---\nmemory_type: emotional\n---\nGlad.",
        "/agent/ada/memory/fact.md": b"Facts.",
        "/agent/ada/memory/deep-er-one.md": b"Deep.",
    }
    assert report.skipped == {"not Markdown": 1, "hidden": 1}
    assert attributes(snapshot, "/agent/ada/memory/today.md")["type"] == "emotional"


def test_what_is_left_out_is_counted_and_named(tmp_path: Path, snapshot: Snapshot, bring: Importing) -> None:
    source = lay(
        tmp_path / "src",
        {
            "charter.md": "x",
            "README.md": "for people",
            ".git/config": "x",
            "skills/.DS_Store": "x",
            "skills/tool.py": "print()",
            "artifacts/none/at/all/": "",
            "artifacts/one.txt": "1",
        },
    )
    report = bring(source)
    assert report.skipped == {
        "not in a section": 1,
        "hidden": 2,
        "not Markdown": 1,
        "empty folder, which artifacts cannot hold": 1,
    }
    assert {one.path for one in report.skipped_files} == {
        "README.md",
        ".git",
        "skills/.DS_Store",
        "skills/tool.py",
        "artifacts/none/at/all",
    }
    assert set(files(snapshot)) == {"/ring/dev/charter/charter.md", "/ring/dev/artifacts/one.txt"}


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
        "/ring/dev/skills/inside.md": b"A",
        "/ring/dev/workspace/deep/real.txt": b"real",
    }
    assert report.skipped == {
        "symlink that leads nowhere or out of the source": 4,
        "symlink to a folder": 1,
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


@pytest.mark.parametrize(
    ("contents", "namespace", "message"),
    [
        (
            {"charter.md": "x", "skils/a.md": "x"},
            "/ring/dev",
            "skils: no section of a ring has this name; the sections are charter, skills",
        ),
        ({"notes.md": "x"}, "/ring/dev", "holds no charter.md and no section folder"),
        (
            {"skills/a.md": "---\ntitle: [\n---\n", "skills/b.md": "x"},
            "/ring/dev",
            "skills/a.md:2: front matter is not YAML",
        ),
        (
            {"a.md": "---\nid: one\n---\n", "b.md": "---\nid: one\n---\n"},
            "/agent/ada",
            "src/b.md: has the id of ",
        ),
        ({"a.md": "x"}, None, "--ring NAME or --agent NAME"),
    ],
)
def test_a_bad_source_imports_nothing(
    tmp_path: Path,
    snapshot: Snapshot,
    bring: Importing,
    contents: dict[str, str],
    namespace: str | None,
    message: str,
) -> None:
    source = lay(tmp_path / "src", contents)
    with pytest.raises(InvalidSource, match=re.escape(message)) as caught:
        bring(source, namespace)
    assert "\n" not in str(caught.value)
    assert files(snapshot) == {}
    assert not snapshot.db.in_transaction


def test_all_malformed_files_are_named_at_once(tmp_path: Path, bring: Importing) -> None:
    source = lay(tmp_path / "src", {f"skills/s{number}.md": "---\na: b: c\n---\n" for number in range(8)})
    with pytest.raises(
        InvalidSource, match=r"skills/s0\.md:2: .*skills/s4\.md:2: .*; and 3 more\. Nothing was imported$"
    ):
        bring(source)


@pytest.mark.parametrize(
    ("name", "message"), [("missing", "no such file or folder"), ("a.txt", "neither a folder nor")]
)
def test_a_source_that_is_none(tmp_path: Path, bring: Importing, name: str, message: str) -> None:
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(InvalidSource, match=message):
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
    assert report.skipped == {"the snapshot itself": 3}
