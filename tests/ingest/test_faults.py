"""What goes wrong during an import: nothing is half imported, and the message says so."""

import errno
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from libraryfs.errors import InvalidSource, SnapshotBusy, SnapshotFull
from libraryfs.ingest import files as ingest_files
from libraryfs.ingest.files import unreadable
from libraryfs.ingest.importer import import_source
from libraryfs.store.snapshot import Snapshot
from tests.ingest.conftest import Importing
from tests.ingest.shown import files, lay


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 MiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", disk], check=True)
    try:
        yield disk
    finally:
        subprocess.run(["umount", disk], check=True)


def test_disk_full(small_disk: Path, tmp_path: Path) -> None:
    few = lay(tmp_path / "few", {"skills/a.md": "A"})
    many = lay(tmp_path / "many", {f"memories/m{number}.md": "x" * 30_000 for number in range(300)})
    with Snapshot.open(small_disk / "library.db", create=True) as snapshot:
        import_source(snapshot, few, "/ring/dev", "alice")
        with pytest.raises(SnapshotFull, match=r"library\.db: the disk is full: nothing was imported\. Make room"):
            import_source(snapshot, many, "/ring/dev", "alice")
        assert files(snapshot) == {"/ring/dev/skills/a.md": b"A"}
    with Snapshot.open(small_disk / "library.db", write=True) as snapshot:
        assert snapshot.db.pragma("integrity_check") == "ok"
        assert files(snapshot) == {"/ring/dev/skills/a.md": b"A"}
        lay(few, {"skills/b.md": "B"})
        assert import_source(snapshot, few, "/ring/dev", "alice").added == 1


def test_a_writer_in_the_way_is_waited_for(tmp_path: Path, snapshot: Snapshot, bring: Importing) -> None:
    source = lay(tmp_path / "src", {"skills/a.md": "A"})
    locked, done = threading.Event(), threading.Event()

    def hold() -> None:
        with Snapshot.open(snapshot.path, write=True) as other, other.transaction():
            locked.set()
            done.wait(0.5)

    writer = threading.Thread(target=hold)
    writer.start()
    locked.wait(10)
    started = time.monotonic()
    assert bring(source).added == 1
    assert time.monotonic() - started > 0.3
    writer.join()


def test_a_writer_that_does_not_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIBRARYFS_BUSY_TIMEOUT_MS", "100")
    source = lay(tmp_path / "src", {"skills/a.md": "A"})
    path = tmp_path / "library.db"
    with Snapshot.open(path, create=True) as first, first.transaction(), Snapshot.open(path, write=True) as second:
        with pytest.raises(SnapshotBusy, match="another process"):
            import_source(second, source, "/ring/dev", "alice")
        assert not second.db.in_transaction


@pytest.mark.parametrize("step", ["read", "write"])
def test_an_interrupted_import_leaves_nothing(tmp_path: Path, snapshot: Snapshot, bring: Importing, step: str) -> None:
    bring(lay(tmp_path / "src", {"skills/a.md": "A"}))
    lay(tmp_path / "src", {f"skills/s{number}.md": "---\nsupersedes: skills/a.md\n---\n" for number in range(1000)})

    def stop(at: str, done: int, _total: int) -> None:
        if at == step and done > 0:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_source(snapshot, tmp_path / "src", "/ring/dev", "alice", stop)
    assert files(snapshot) == {"/ring/dev/skills/a.md": b"A"}
    report = bring(tmp_path / "src")
    assert (report.added, report.unchanged, report.edges) == (1000, 1, 1000)


@pytest.mark.parametrize("change", ["edit", "remove", "fifo"])
def test_a_file_that_changes_during_the_import(
    tmp_path: Path, snapshot: Snapshot, bring: Importing, change: str
) -> None:
    """What it is now comes in, or nothing of it, said; the rest comes in either way, and the next import heals."""
    source = lay(tmp_path / "src", {"skills/a.md": "A", "skills/b.md": "B" * 200_000})

    def meddle(step: str, _done: int, _total: int) -> None:
        target = source / "skills/b.md"
        if step == "write" and change == "edit":
            target.write_text("b")
        elif step == "write":
            target.unlink(missing_ok=True)
            if change == "fifo":
                os.mkfifo(target)

    report = import_source(snapshot, source, "/ring/dev", "alice", meddle)
    expected = {"/ring/dev/skills/a.md": b"A"}
    if change == "edit":
        expected["/ring/dev/skills/b.md"] = b"b"
        assert report.warnings == []
    else:
        assert report.warnings == [f"{source}/skills/b.md: changed while it was read; the next import brings it in"]
    assert files(snapshot) == expected
    (source / "skills/b.md").unlink(missing_ok=True)
    lay(source, {"skills/b.md": "B again"})
    bring(source)
    assert files(snapshot) == {"/ring/dev/skills/a.md": b"A", "/ring/dev/skills/b.md": b"B again"}


def test_strict_refuses_a_file_that_changes(tmp_path: Path, snapshot: Snapshot) -> None:
    source = lay(tmp_path / "src", {"skills/a.md": "A"})

    def meddle(step: str, _done: int, _total: int) -> None:
        if step == "write":
            (source / "skills/a.md").write_text("other")

    with pytest.raises(InvalidSource, match=r"skills/a\.md: .*Nothing was imported"):
        import_source(snapshot, source, "/ring/dev", "alice", meddle, strict=True)
    assert files(snapshot) == {}


def test_a_file_that_may_not_be_read(
    tmp_path: Path, snapshot: Snapshot, bring: Importing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is told, its row stays as it is, and the rest comes in. Root may read everything: hence the patch."""
    source = lay(tmp_path / "src", {"skills/b.md": "B", "skills/c.md": "C"})
    bring(source)
    lay(source, {"skills/b.md": "B, changed", "skills/c.md": "C, changed"})
    read_head = ingest_files.read_head

    def refuse(root: Path, path: str, size: int) -> bytes:
        if path == "skills/b.md":
            raise unreadable(root / path, PermissionError(errno.EACCES, "Permission denied"))
        return read_head(root, path, size)

    with monkeypatch.context() as patched:
        patched.setattr(ingest_files, "read_head", refuse)
        report = bring(source)
        assert report.warnings == [f"{source}/skills/b.md: cannot be read: Permission denied"]
        assert files(snapshot) == {"/ring/dev/skills/b.md": b"B", "/ring/dev/skills/c.md": b"C, changed"}
        with pytest.raises(InvalidSource, match=r"b\.md: cannot be read: Permission denied\. Nothing was imported"):
            bring(source, strict=True, checksum=True)
    bring(source)
    assert files(snapshot)["/ring/dev/skills/b.md"] == b"B, changed"


def test_a_row_file_that_changes_during_the_import(tmp_path: Path, snapshot: Snapshot) -> None:
    source = tmp_path / "a.jsonl"
    line = '{"store": "memory", "namespace": "/ring/dev", "id": "%s", "memory_type": "skill", "title": "t"}\n'
    source.write_text(line % "a")

    def meddle(step: str, _done: int, _total: int) -> None:
        if step == "write":
            source.write_text(line % "b")

    with pytest.raises(InvalidSource, match=r"a\.jsonl:1: changed during the import; import again\. Nothing"):
        import_source(snapshot, source, None, "alice", meddle)
    assert files(snapshot) == {}


def test_progress_is_told(tmp_path: Path, snapshot: Snapshot) -> None:
    source = lay(tmp_path / "src", {f"skills/s{number}.md": "x" for number in range(450)})
    told: list[tuple[str, int, int]] = []
    import_source(snapshot, source, "/ring/dev", "alice", lambda *step: told.append(step))
    assert [step for step in told if step[0] == "read"] == [("read", 0, 0)]
    assert [step for step in told if step[0] == "write"] == [("write", n, 450) for n in (0, 200, 400, 450)]


@pytest.mark.slow
def test_a_markdown_file_of_200_mb(tmp_path: Path) -> None:
    """In a process of its own: the import holds less than one copy of the file, SQLite's page cache included."""
    source = tmp_path / "src"
    (source / "memories").mkdir(parents=True)
    with (source / "memories/big.md").open("wb") as out:
        out.write(b"---\ntitle: Big\n---\n")
        for number in range(3200):
            out.write((f"{number:07d} " * 8192)[:65_536].encode())
    program = """
import resource, sys
from pathlib import Path
from libraryfs.ingest.importer import import_source
from libraryfs.store.snapshot import Snapshot

folder = Path(sys.argv[1])
with Snapshot.open(folder / "library.db", create=True) as snapshot:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    import_source(snapshot, folder / "src", "/ring/dev", "alice")
    print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""
    command = [sys.executable, "-c", program, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2])
    assert int(done.stdout) < 200, f"{done.stdout} MB"
    with Snapshot.open(tmp_path / "library.db") as snapshot:
        assert files(snapshot) == {"/ring/dev/memories/big.md": (source / "memories/big.md").read_bytes()}
