"""Importing a source again: only what changed is written, what is gone goes, ids, names and inodes stay."""

import os
import shutil
from pathlib import Path

import pytest

from libraryfs.errors import InvalidSource
from libraryfs.store import access, changes, namespaces, workspace
from libraryfs.store.snapshot import Snapshot
from tests.ingest.conftest import Importing
from tests.ingest.shown import attributes, files, inodes, lay

SOURCE: dict[str, str | bytes] = {
    "charter.md": "We agree.",
    "skills/a.md": "---\nid: a\ntitle: Same\n---\nA",
    "skills/b.md": "---\nid: b\ntitle: Same\nsupersedes: a\n---\nB",
    "skills/c.md": "C",
    "workspace/notes/one.txt": "1",
    "workspace/two.txt": "2",
    "artifacts/img/x.png": b"\x89PNG",
}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return lay(tmp_path / "src", SOURCE)


class Writes:
    """Counts what is written to the snapshot's tables, by table; the note that a source was read apart."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.tables: dict[str, int] = {}
        snapshot.db.set_update_hook(self._note)

    def _note(self, _op: int, database: str, table: str, _row: int) -> None:
        if database == "main" and not table.startswith("source"):
            self.tables[table] = self.tables.get(table, 0) + 1


def test_nothing_changed_nothing_written(source: Path, snapshot: Snapshot, bring: Importing) -> None:
    first = bring(source)
    before, seen, log = files(snapshot), inodes(snapshot), changes.latest(snapshot.db)
    writes = Writes(snapshot)
    report = bring(source)
    assert writes.tables == {}
    assert changes.latest(snapshot.db) == log
    assert (report.added, report.changed, report.removed, report.unchanged) == (0, 0, 0, first.added)
    assert report.edges == 1
    assert (files(snapshot), inodes(snapshot)) == (before, seen)


def test_a_file_that_was_only_touched_is_unchanged(source: Path, snapshot: Snapshot, bring: Importing) -> None:
    bring(source)
    was = attributes(snapshot, "/ring/dev/skills/c.md")["updated_at"]
    os.utime(source / "skills/c.md", (1, 1))
    writes = Writes(snapshot)
    assert bring(source).changed == 0
    assert writes.tables == {}
    assert attributes(snapshot, "/ring/dev/skills/c.md")["updated_at"] == was


def test_an_edit_changes_its_row_only(source: Path, snapshot: Snapshot, bring: Importing) -> None:
    bring(source)
    seen = inodes(snapshot)
    (source / "skills/c.md").write_text("C, better")
    os.utime(source / "skills/c.md", ns=(0, 1_700_000_000_123_456_789))
    writes = Writes(snapshot)
    report = bring(source)
    assert (report.added, report.changed, report.removed) == (0, 1, 0)
    found_by_words = {"indexed", "indexed_totals", "unindexed", "words_data", "words_docsize", "words_idx"}
    assert writes.tables.keys() <= {"memories", "bodies", "entries", "changes", *found_by_words}
    assert files(snapshot)["/ring/dev/skills/c.md"] == b"C, better"
    assert attributes(snapshot, "/ring/dev/skills/c.md")["updated_at"] == "2023-11-14T22:13:20.123456789Z"
    assert inodes(snapshot) == seen


def test_a_new_title_keeps_the_name(source: Path, snapshot: Snapshot, bring: Importing) -> None:
    bring(source)
    seen = inodes(snapshot)
    (source / "skills/a.md").write_text("---\nid: a\ntitle: Another\n---\nA")
    assert bring(source).changed == 1
    assert inodes(snapshot) == seen
    titles = {attributes(snapshot, path)["title"] for path in seen if path.startswith("/ring/dev/skills/")}
    assert titles == {"Another", "Same", "c"}


def test_what_is_gone_goes(source: Path, snapshot: Snapshot, bring: Importing) -> None:
    bring(source)
    before = files(snapshot)
    (source / "skills/b.md").unlink()
    shutil.rmtree(source / "workspace/notes")
    shutil.rmtree(source / "artifacts")
    report = bring(source)
    assert (report.added, report.changed, report.removed, report.edges) == (0, 0, 4, 0)
    after = files(snapshot)
    assert sorted(after.values()) == sorted([b"We agree.", b"C", b"2", (source / "skills/a.md").read_bytes()])
    assert after.items() <= before.items()
    assert "superseded_by" not in attributes(snapshot, "/ring/dev/skills/a.md")


def test_a_renamed_file_with_an_id_is_the_same_row(source: Path, snapshot: Snapshot, bring: Importing) -> None:
    bring(source)
    before, seen = files(snapshot), inodes(snapshot)
    (source / "skills/a.md").rename(source / "skills/z.md")
    report = bring(source)
    assert (report.added, report.changed, report.removed) == (0, 1, 0)  # the attribute source_path
    assert (files(snapshot), inodes(snapshot)) == (before, seen)
    assert attributes(snapshot, "/ring/dev/skills/a.md")["source_path"] == "skills/z.md"


def test_a_renamed_file_without_an_id_is_another_row(source: Path, snapshot: Snapshot, bring: Importing) -> None:
    bring(source)
    seen = inodes(snapshot)
    (source / "skills/c.md").rename(source / "skills/d.md")
    report = bring(source)
    assert (report.added, report.changed, report.removed) == (1, 0, 1)
    assert "/ring/dev/skills/c.md" not in files(snapshot)
    assert inodes(snapshot)["/ring/dev/skills/d.md"] != seen["/ring/dev/skills/c.md"]


def test_a_folder_may_become_a_file(source: Path, snapshot: Snapshot, bring: Importing) -> None:
    bring(source)
    shutil.rmtree(source / "workspace/notes")
    (source / "workspace/notes").write_text("now a file")
    bring(source)
    assert files(snapshot)["/ring/dev/workspace/notes"] == b"now a file"
    (source / "workspace/notes").unlink()
    lay(source, {"workspace/notes/one.txt": "again"})
    bring(source)
    assert files(snapshot)["/ring/dev/workspace/notes/one.txt"] == b"again"


def test_another_source_of_the_same_ring_is_left_alone(
    source: Path, tmp_path: Path, snapshot: Snapshot, bring: Importing
) -> None:
    other = lay(tmp_path / "other", {"decisions/d.md": "D"})
    bring(source)
    bring(other)
    (other / "decisions/d.md").unlink()
    assert bring(other).removed == 1
    assert bring(source).unchanged == 8


def test_one_folder_in_two_rings(source: Path, snapshot: Snapshot, bring: Importing) -> None:
    bring(source, "/ring/dev")
    bring(source, "/ring/ops")
    (source / "skills/c.md").unlink()
    assert bring(source, "/ring/ops").removed == 1
    assert "/ring/dev/skills/c.md" in files(snapshot)


def test_a_source_that_was_moved_is_taken_over(
    source: Path, tmp_path: Path, snapshot: Snapshot, bring: Importing
) -> None:
    bring(source)
    seen = inodes(snapshot)
    moved = source.rename(tmp_path / "moved")
    (moved / "skills/c.md").write_text("moved")
    report = bring(moved)
    assert (report.added, report.changed, report.removed) == (0, 1, 0)
    assert inodes(snapshot) == seen
    assert f"{moved}/skills/c.md: replaced the row skills/c.md that came from {source}" in report.warnings
    (moved / "skills/c.md").unlink()
    assert bring(moved).removed == 1


def test_two_folders_do_not_overwrite_each_other(
    source: Path, tmp_path: Path, snapshot: Snapshot, bring: Importing
) -> None:
    bring(source)
    before = files(snapshot)
    other = lay(tmp_path / "other", {"skills/new.md": "new", "skills/c.md": "another C"})
    with pytest.raises(InvalidSource, match=r"skills/c\.md: .*/src has another file of this path"):
        bring(other)
    assert files(snapshot) == before


def test_the_importer_is_granted_and_nobody_else(source: Path, snapshot: Snapshot, bring: Importing) -> None:
    bring(source, "/ring/dev", "bob")
    assert [(who, where.path) for who, where in access.every(snapshot.db)] == [("bob", "/ring/dev")]
    bring(source, "/ring/ops", None)
    assert [(who, where.path) for who, where in access.every(snapshot.db)] == [("bob", "/ring/dev")]


def test_an_import_keeps_what_an_eval_wrote(source: Path, snapshot: Snapshot, bring: Importing) -> None:
    bring(source)
    ring = namespaces.find(snapshot.db, "ring", "dev")
    assert ring is not None
    item = workspace.find(snapshot.db, ring.id, "workspace/two.txt")
    assert item is not None
    written = {"last_eval_pass_rate": 0.9, "last_eval_total": 20, "last_eval_at": "2024-01-01T00:00:00Z"}
    with snapshot.transaction():
        workspace.set_metadata(snapshot.db, item.ino, written | {"other": 1})
    (source / "workspace/two.txt").write_text("2, changed")
    bring(source)
    item = workspace.find(snapshot.db, ring.id, "workspace/two.txt")
    assert item is not None
    assert item.metadata == written


def test_inodes_and_names_are_those_of_a_rebuilt_snapshot(
    source: Path, tmp_path: Path, snapshot: Snapshot, bring: Importing
) -> None:
    from libraryfs.ingest.importer import import_source

    bring(source)
    (source / "skills/c.md").write_text("C2")
    bring(source)
    with Snapshot.open(tmp_path / "again.db", create=True) as rebuilt:
        import_source(rebuilt, source, "/ring/dev", "alice")
        assert inodes(rebuilt) == inodes(snapshot)
