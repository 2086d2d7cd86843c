"""Sources kept in step: what is read again, what stays, and what asks first."""

import os
import shutil
import threading
import time
from pathlib import Path

import pytest

from libraryfs.ingest import document
from libraryfs.ingest.importer import import_source
from libraryfs.ingest.sync import Synced, sync_all, watch
from libraryfs.ingest.walk import Stat
from libraryfs.store import source_files, sources
from libraryfs.store.snapshot import Snapshot
from tests.ingest.conftest import Importing
from tests.ingest.shown import attributes, files, lay


@pytest.fixture
def source(tmp_path: Path) -> Path:
    notes = {f"notes/n{number}.md": f"# Note {number}\n" for number in range(10)}
    return lay(tmp_path / "src", notes | {"adr/0001-a.md": "# First\n", ".gitignore": "*.log\n", "x.log": "noise"})


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that a scan opens, in order."""
    seen: list[str] = []
    read = document.read

    def noted(root: Path, path: str, stat: Stat) -> document.Document:
        seen.append(path)
        return read(root, path, stat)

    monkeypatch.setattr(document, "read", noted)
    return seen


def test_what_is_as_it_was_is_not_opened(source: Path, snapshot: Snapshot, bring: Importing, opened: list[str]) -> None:
    bring(source, options={"maps": ["adr=decisions"]})
    opened.clear()
    report = bring(source)
    assert opened == []
    assert (report.unchanged, report.skipped) == (12, {"hidden": 1, "ignored by .gitignore": 1})
    (source / "notes/n3.md").write_text("# Changed\n")
    assert bring(source).changed == 1
    assert opened == ["notes/n3.md"]
    opened.clear()
    assert bring(source, checksum=True).unchanged == 12
    assert len(opened) == 11
    assert files(snapshot)["/ring/dev/decisions/0001-a.md"] == b"# First\n"


def test_same_size_and_time_but_another_file(source: Path, snapshot: Snapshot, bring: Importing) -> None:
    bring(source)
    target = source / "notes/n1.md"
    status = target.stat()
    (source / "new").write_text("# Note X\n")
    os.utime(source / "new", ns=(status.st_atime_ns, status.st_mtime_ns))
    (source / "new").rename(target)
    assert bring(source).changed == 1
    assert files(snapshot)["/ring/dev/workspace/notes/n1.md"] == b"# Note X\n"


def test_new_rules_hold_for_what_is_known(source: Path, snapshot: Snapshot, bring: Importing) -> None:
    bring(source)
    (source / ".gitignore").write_text("n1.md\n")
    report = bring(source)
    assert (report.added, report.removed) == (1, 1)
    assert "/ring/dev/workspace/notes/n1.md" not in files(snapshot)
    assert files(snapshot)["/ring/dev/workspace/x.log"] == b"noise"


def test_edges_of_files_that_were_not_opened_stay(tmp_path: Path, snapshot: Snapshot, bring: Importing) -> None:
    text = "---\nid: {0}\nsupersedes: [{1}]\n---\n# {0}\n"
    chain = {f"decisions/d{number}.md": text.format(f"d{number}", f"d{number - 1}") for number in range(1, 5)}
    source = lay(tmp_path / "src", chain | {"decisions/d0.md": "---\nid: d0\n---\n"})
    assert bring(source).edges == 4
    (source / "decisions/d2.md").write_text("---\nid: d2\n---\n")
    assert bring(source).edges == 3
    (source / "decisions/d4.md").unlink()
    assert bring(source).edges == 2
    assert attributes(snapshot, "/ring/dev/decisions/d0.md")["superseded_by"] == "d1"


def test_a_secret_that_was_left_out_is_named_again(tmp_path: Path, bring: Importing, opened: list[str]) -> None:
    source = lay(tmp_path / "src", {"a.md": "A", "b.md": "x\n\napi_key: 9f8e7d6c5b4a39281706\n"})
    for _ in range(2):
        report = bring(source)
        assert [one.path for one in report.skipped_files] == [f"{source}/b.md:3: a password or key"]
    assert opened == ["a.md", "b.md"]


def test_another_source_took_a_row(tmp_path: Path, snapshot: Snapshot, bring: Importing) -> None:
    """What was noted of its file is worthless then: the first source brings it back."""
    first = lay(tmp_path / "first", {"skills/a.md": "---\nid: a\n---\nA", "skills/b.md": "B"})
    second = lay(tmp_path / "second", {"skills/a.md": "---\nid: a\n---\nA2"})
    bring(first)
    bring(second)
    shutil.rmtree(second / "skills")
    bring(second)
    assert bring(first).added == 1
    assert files(snapshot)["/ring/dev/skills/a.md"].endswith(b"A")


def test_sync_brings_all_in_step(source: Path, tmp_path: Path, snapshot: Snapshot, bring: Importing) -> None:
    other = lay(tmp_path / "journal", {"monday.md": "# Monday\n"})
    bring(source, options={"maps": ["adr=decisions"]})
    bring(other, "/agent/ada")
    lay(source, {"adr/0002-b.md": "# Second\n"})
    (other / "monday.md").write_text("# Monday, later\n")
    reports = {one.source: one.report for one in sync_all(snapshot)}
    assert {path: (r.added, r.changed) for path, r in reports.items() if r} == {str(source): (1, 0), str(other): (0, 1)}
    assert files(snapshot)["/ring/dev/decisions/0002-b.md"] == b"# Second\n"


def test_a_source_that_cannot_be_read_leaves_its_rows(source: Path, snapshot: Snapshot, bring: Importing) -> None:
    bring(source)
    before = files(snapshot)
    source.rename(source.parent / "elsewhere")
    (one,) = sync_all(snapshot)
    assert one.error == "no such file or folder"
    assert files(snapshot) == before


def test_one_that_shrank_by_more_than_half_asks(source: Path, snapshot: Snapshot, bring: Importing) -> None:
    bring(source)
    before = files(snapshot)
    shutil.rmtree(source / "notes")
    (one,) = sync_all(snapshot)
    assert one.code == "LIBRARY_SOURCE_SHRANK"
    assert "11 of its 12 rows would go" in str(one.error)
    assert files(snapshot) == before
    (one,) = sync_all(snapshot, may_shrink=True)
    assert one.report is not None
    assert one.report.removed == 11


def test_sources_are_remembered_and_forgotten(source: Path, snapshot: Snapshot, bring: Importing) -> None:
    bring(source, options={"exclude": ["n1.md"]})
    (one,) = sources.every(snapshot.db)
    assert (one.path, one.namespace, one.rows, one.principal) == (source, "/ring/dev", 11, "alice")
    assert one.options == '{"exclude":["n1.md"]}'
    assert len(source_files.load(snapshot.db, one.id)) == 11
    with snapshot.transaction() as db:
        sources.forget(db, one.id)
    assert sources.every(snapshot.db) == []
    assert len(files(snapshot)) == 10


def test_watching(source: Path, tmp_path: Path) -> None:
    """A change is in the snapshot soon after it was made; the watch ends when it is told to."""
    path = tmp_path / "library.db"
    with Snapshot.open(path, create=True) as made:
        import_source(made, source, "/ring/dev", "alice")
    stop, rounds, ready = threading.Event(), list[Synced](), threading.Event()

    def follow() -> None:
        with Snapshot.open(path, write=True) as snapshot:
            ready.set()
            watch(snapshot, stop, rounds.extend)

    thread = threading.Thread(target=follow)
    thread.start()
    try:
        ready.wait(10)
        with Snapshot.open(path) as reader:
            deadline = time.monotonic() + 30
            number = 0
            while "/ring/dev/workspace/fresh.md" not in files(reader) and time.monotonic() < deadline:
                number += 1  # again and again: the first may come before the watch stands
                (source / "fresh.md").write_text(f"# Fresh {number}\n")
                time.sleep(0.3)
            assert "/ring/dev/workspace/fresh.md" in files(reader)
    finally:
        stop.set()
        thread.join(20)
    assert not thread.is_alive()
    assert rounds
