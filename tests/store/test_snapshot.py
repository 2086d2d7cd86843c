import errno
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import apsw
import pytest

from libraryfs import errors
from libraryfs.store import namespaces
from libraryfs.store.check import check
from libraryfs.store.snapshot import SCHEMA_VERSION, Snapshot
from tests.store.build import Builder


def test_missing(tmp_path: Path) -> None:
    with pytest.raises(errors.SnapshotMissing, match="libraryfs import"):
        Snapshot.open(tmp_path / "none.db")


def test_empty_file_is_no_snapshot_but_can_become_one(tmp_path: Path) -> None:
    path = tmp_path / "empty.db"
    path.touch()
    with pytest.raises(errors.SnapshotDamaged, match="empty"):
        Snapshot.open(path)
    Snapshot.open(path, create=True).close()
    Snapshot.open(path).close()


@pytest.mark.parametrize("name", [":memory:", "file:x.db?mode=memory", "we?ird#%20.db", "-dash.db", "new\nline.db"])
def test_a_name_that_sqlite_knows_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """What is written under any name is there when it is opened again, by a relative path too."""
    monkeypatch.chdir(tmp_path)
    Snapshot.open(Path(name), create=True, write=True).close()
    assert (tmp_path / name).stat().st_size
    Snapshot.open(Path(name)).close()


def test_a_name_that_sqlite_cannot_open(tmp_path: Path) -> None:
    with pytest.raises(errors.SnapshotError, match="UTF-8"):
        Snapshot.open(tmp_path / "b\udcff.db", create=True, write=True)


def test_not_sqlite(tmp_path: Path) -> None:
    path = tmp_path / "text.db"
    path.write_text("no database at all\n" * 500)
    for write in (False, True):
        with pytest.raises(errors.SnapshotDamaged, match="not a SQLite file"):
            Snapshot.open(path, write=write)


def test_a_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE theirs (x)")
    other.close()
    with pytest.raises(errors.SnapshotDamaged, match="not a libraryfs snapshot"):
        Snapshot.open(path, create=True)
    check = sqlite3.connect(path)
    assert [name for (name,) in check.execute("SELECT name FROM sqlite_schema")] == ["theirs"]
    check.close()


def test_newer_schema(build: Builder) -> None:
    build.db.pragma("user_version", SCHEMA_VERSION + 1)
    for write in (False, True):
        with pytest.raises(errors.SnapshotTooNew, match="upgrade"):
            Snapshot.open(build.path, write=write)


def test_truncated(build: Builder) -> None:
    for number in range(200):
        build.memory("/ring/dev", f"m{number}", content="x" * 2000)
    build.snapshot.close()
    size = build.path.stat().st_size
    with build.path.open("r+b") as file:
        file.truncate(size // 2)
    with pytest.raises(errors.SnapshotDamaged, match="damaged or truncated"):
        read_all(build.path)


def test_damage_in_the_middle(build: Builder) -> None:
    """It shows when a page is read, long after the file was opened: a user's matter, and a finding of check."""
    for number in range(200):
        build.memory("/ring/dev", f"m{number}", content="x" * 2000)
    build.snapshot.close()
    content = bytearray(build.path.read_bytes())
    middle = len(content) // 2 // 4096 * 4096
    content[middle:] = b"\x99" * (len(content) - middle)
    build.path.write_bytes(content)
    with pytest.raises(errors.SnapshotDamaged, match="damaged or truncated"):
        read_all(build.path)
    with Snapshot.open(build.path) as snapshot:
        problems = list(check(snapshot.db))
    assert problems
    assert "damaged_file" in {problem.kind for problem in problems}


def read_all(path: Path) -> None:
    with Snapshot.open(path) as snapshot:
        snapshot.db.execute("SELECT sum(length(data)) FROM bodies").fetchall()


def test_a_reader_cannot_write(build: Builder) -> None:
    with Snapshot.open(build.path) as reader, pytest.raises(apsw.ReadOnlyError):
        reader.db.execute("DELETE FROM entries")


def test_busy_writer_is_waited_for_then_named(build: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIBRARYFS_BUSY_TIMEOUT_MS", "100")
    with build.snapshot.transaction(), Snapshot.open(build.path, write=True) as other:
        with pytest.raises(errors.SnapshotBusy, match=r"0\.1 s") as caught, other.transaction():
            pass
        assert caught.value.errno == errno.EAGAIN


def test_readers_are_not_held_up_by_a_writer(build: Builder) -> None:
    build.namespace("/ring/dev")
    with build.snapshot.transaction() as db:
        namespaces.ensure(db, "/ring/uncommitted")
        with Snapshot.open(build.path) as reader:
            assert [namespace.path for namespace in namespaces.every(reader.db)] == ["/ring/dev"]


def test_a_failed_transaction_leaves_nothing(build: Builder) -> None:
    with pytest.raises(ZeroDivisionError):
        half_a_transaction(build)
    assert namespaces.every(build.db) == []


def half_a_transaction(build: Builder) -> None:
    with build.snapshot.transaction() as db:
        namespaces.ensure(db, "/ring/dev")
        raise ZeroDivisionError


def test_data_version_moves_with_another_connections_commit(build: Builder) -> None:
    with Snapshot.open(build.path) as reader:
        before = reader.data_version()
        assert reader.data_version() == before
        build.namespace("/ring/dev")
        assert reader.data_version() != before


def test_a_killed_writer_leaves_the_last_commit(build: Builder) -> None:
    build.namespace("/ring/dev")
    script = (
        "import os, sys; from pathlib import Path; from libraryfs.store.snapshot import Snapshot;"
        "from libraryfs.store import namespaces; s = Snapshot.open(Path(sys.argv[1]), write=True);"
        "s.db.execute('BEGIN IMMEDIATE'); namespaces.ensure(s.db, '/ring/half'); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", script, str(build.path)], check=False)
    with Snapshot.open(build.path) as reader:
        assert [namespace.path for namespace in namespaces.every(reader.db)] == ["/ring/dev"]


def test_one_connection_a_thread_reads_side_by_side(build: Builder) -> None:
    build.memory("/ring/dev", "m1", content="same")
    seen: list[bytes] = []

    def read() -> None:
        with Snapshot.open(build.path) as snapshot:
            seen.extend(data for (data,) in snapshot.db.execute("SELECT data FROM bodies"))

    threads = [threading.Thread(target=read) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [b"same"] * 8
