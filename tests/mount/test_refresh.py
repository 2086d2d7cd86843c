"""What another process commits shows in the live mount within a second, cached names and pages included."""

import errno
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from libraryfs.store import access, memory, namespaces, workspace
from libraryfs.store.snapshot import KEPT_CHANGES
from tests.mount.conftest import Mounted
from tests.mount.live import Live, drop_caches, sh, until
from tests.store.build import Builder

SECOND = 1.0


def soon(condition: Callable[[], bool]) -> None:
    """The condition holds within a second. A machine that does much else gets another one."""
    until(condition, 2 * SECOND)


def names(folder: Path) -> list[str]:
    """The folder's names; [] when it is not there."""
    try:
        return sorted(os.listdir(folder))
    except FileNotFoundError:
        return []


@pytest.fixture
def live(build: Builder, mounted: Mounted) -> Live:
    """A mount of a ring with one skill and one item."""
    build.namespace("/ring/dev", "me")
    build.namespace("/ring/secret", "other")
    build.memory("/ring/secret", "hidden", title="Hidden", content="secret\n")
    build.memory("/ring/dev", "s1", title="First", content="one\n")
    build.item("/ring/dev", "w1", name="item.txt", content="item\n")
    return mounted(build.path)


def test_added_row(live: Live, build: Builder) -> None:
    """Also where the kernel remembers that the name is not there."""
    skills = live.point / "ring/dev/skills"
    assert not (skills / "second.md").exists()
    assert names(skills) == ["first.md"]
    build.memory("/ring/dev", "s2", title="Second", content="two\n")
    soon((skills / "second.md").exists)
    assert (skills / "second.md").read_text() == "two\n"
    assert names(skills) == ["first.md", "second.md"]


def test_changed_row(live: Live, build: Builder) -> None:
    """Size, time and bytes, also of a file that is held open."""
    path = live.point / "ring/dev/skills/first.md"
    assert path.read_text() == "one\n"
    before = path.stat()
    with path.open() as held:
        assert held.read() == "one\n"
        build.memory("/ring/dev", "s1", title="First", content="changed to be longer\n")
        soon(lambda: path.stat().st_size == 21)
        assert path.read_text() == "changed to be longer\n"
        held.seek(0)
        assert held.read() == "changed to be longer\n"
    after = path.stat()
    assert after.st_ino == before.st_ino
    assert after.st_mtime_ns > before.st_mtime_ns


def test_change_of_equal_size_and_time(live: Live, build: Builder) -> None:
    """Nothing that stat shows differs: the pages must go all the same."""
    path = live.point / "ring/dev/skills/first.md"
    build.memory("/ring/dev", "s1", title="First", content="aaaa\n", updated_at=1_600_000_000)
    soon(lambda: path.read_text() == "aaaa\n")
    build.memory("/ring/dev", "s1", title="First", content="bbbb\n", updated_at=1_600_000_000)
    soon(lambda: path.read_text() == "bbbb\n")


def test_removed_row(live: Live, build: Builder) -> None:
    """The name goes; who still has the file open keeps the handle, and gets ESTALE where a page is not there."""
    path = live.point / "ring/dev/skills/first.md"
    entry = build.entry(memory, "/ring/dev", "s1")
    ring = namespaces.find_path(build.db, "/ring/dev")
    assert ring is not None
    with path.open("rb", buffering=0) as held:
        assert held.read() == b"one\n"
        with build.snapshot.transaction():
            memory.delete(build.db, ring, entry.ino)
        soon(lambda: not path.exists())
        assert names(path.parent) == []

        def is_stale() -> bool:
            try:
                held.seek(0)
                held.read()
            except OSError as error:
                return error.errno == errno.ESTALE
            return False

        soon(is_stale)


def test_removed_and_added_under_the_same_name(live: Live, build: Builder) -> None:
    """Another row under a remembered name: the new one's bytes and inode."""
    path = live.point / "ring/dev/workspace/item.txt"
    before = path.stat().st_ino
    assert path.read_text() == "item\n"
    entry = build.entry(workspace, "/ring/dev", "w1")
    with build.snapshot.transaction():
        workspace.delete(build.db, entry.ino)
    build.item("/ring/dev", "w2", name="item.txt", content="another\n")
    soon(lambda: path.read_text() == "another\n")
    assert path.stat().st_ino != before


def test_moved_item(live: Live, build: Builder) -> None:
    """A new name and a new folder."""
    folder = live.point / "ring/dev/workspace"
    assert names(folder) == ["item.txt"]
    build.item("/ring/dev", "f", name="folder", folder=True)
    build.item("/ring/dev", "w1", "f", name="renamed.txt", content="item\n")
    soon(lambda: names(folder) == ["folder"] and names(folder / "folder") == ["renamed.txt"])
    assert (folder / "folder/renamed.txt").read_text() == "item\n"
    soon(lambda: not (folder / "item.txt").exists())


def test_grant_and_revoke(live: Live, build: Builder) -> None:
    """A ring appears and goes, with all that was remembered of it: names, pages, open files, working folders."""
    secret = live.point / "ring/secret"
    ring = namespaces.find_path(build.db, "/ring/secret")
    assert ring is not None
    assert not secret.exists()
    assert names(live.point / "ring") == ["dev"]
    with build.snapshot.transaction():
        access.grant(build.db, "me", ring)
    soon(secret.exists)
    file = secret / "skills/hidden.md"
    assert file.read_text() == "secret\n"
    inside = os.open(secret / "skills", os.O_RDONLY)
    try:
        with file.open("rb", buffering=0) as held:
            assert held.read() == b"secret\n"
            with build.snapshot.transaction():
                access.revoke(build.db, "me", ring)
            soon(lambda: not secret.exists())
            assert names(live.point / "ring") == ["dev"]
            assert not file.exists()

            def is_closed_off() -> bool:
                try:
                    held.seek(0)
                    held.read()
                except OSError:
                    pass
                else:
                    return False
                try:
                    os.stat("hidden.md", dir_fd=inside)
                except OSError:
                    return True
                return False

            soon(is_closed_off)
    finally:
        os.close(inside)


def test_grant_and_revoke_between_two_looks(live: Live, build: Builder) -> None:
    """Both come so quickly that the mount sees them at once; what was looked up between them goes too."""
    secret = live.point / "ring/secret"
    ring = namespaces.find_path(build.db, "/ring/secret")
    assert ring is not None
    for _ in range(5):
        with build.snapshot.transaction():
            access.grant(build.db, "me", ring)
        names(live.point / "ring")
        secret.exists()
        with build.snapshot.transaction():
            access.revoke(build.db, "me", ring)
        soon(lambda: not secret.exists())


def test_a_grant_to_somebody_else_costs_nothing(live: Live, build: Builder) -> None:
    """The ring's remembered names and pages stay."""
    path = live.point / "ring/dev/skills/first.md"
    path.read_bytes()
    build.namespace("/ring/dev", "another")
    time.sleep(0.6)
    with live.counting() as counted:
        path.read_bytes()
    assert counted.get("lookup", 0) == 0
    assert counted.get("read", 0) == 0


def test_a_change_log_that_was_cut(live: Live, build: Builder) -> None:
    """More changes at once than the log keeps: everything is read anew."""
    path = live.point / "ring/dev/skills/first.md"
    assert path.read_text() == "one\n"
    with build.snapshot.transaction():
        build.db.execute("UPDATE sqlite_sequence SET seq = seq + ? WHERE name = 'changes'", (KEPT_CHANGES * 2,))
    build.memory("/ring/dev", "s1", title="First", content="after the cut\n")
    soon(lambda: path.read_text() == "after the cut\n")


def test_snapshot_replaced(live: Live, build: Builder, tmp_path: Path) -> None:
    """Another file takes the snapshot's path: the mount turns to it, also after the first was only deleted."""
    live.expected += ["replaced by another file", "deleted; the mount goes on"]
    path = live.point / "ring/dev/skills/first.md"
    assert path.read_text() == "one\n"
    other = Builder(tmp_path / "other.db")
    other.namespace("/ring/dev", "me")
    other.memory("/ring/dev", "s1", title="First", content="of the other file\n")
    other.memory("/ring/dev", "s2", title="Second", content="new\n")
    other.snapshot.close()
    build.snapshot.close()
    with path.open() as held:
        assert held.read() == "one\n"
        os.replace(other.path, build.path)
        soon(lambda: path.read_text() == "of the other file\n")
        held.seek(0)
        assert held.read() == "of the other file\n"
    assert names(path.parent) == ["first.md", "second.md"]
    shutil.copy(build.path, other.path)
    build.path.unlink()
    time.sleep(0.5)
    assert path.read_text() == "of the other file\n"
    assert sh("cat second.md", path.parent) == "new\n"
    with Builder(other.path).snapshot as snapshot:
        build.snapshot = snapshot
        build.memory("/ring/dev", "s2", title="Second", content="newer\n")
    other.path.rename(build.path)
    soon(lambda: (path.parent / "second.md").read_text() == "newer\n")


def test_a_damaged_snapshot_is_replaced_by_a_backup(live: Live, build: Builder, tmp_path: Path) -> None:
    """While it is damaged, reading fails; a good file in its place is read, with no new mount."""
    live.expected += [
        "replaced by another file",
        "cannot be read",
        "cannot look for changes",
        "Traceback",
        "not a SQLite file",
    ]
    path, backup = live.point / "ring/dev/skills/first.md", tmp_path / "backup.db"
    build.snapshot.close()
    shutil.copy(build.path, backup)
    build.path.write_bytes(b"garbage" * 1000)
    drop_caches()
    with pytest.raises(OSError, match="Input/output error"):
        os.listdir(path.parent)
    os.replace(backup, build.path)

    def is_back() -> bool:
        try:
            return path.read_text() == "one\n"
        except OSError:
            return False

    soon(is_back)
    assert live.log_file.read_text().count("cannot look for changes") <= 1  # said once, not at each look


def test_read_ahead_is_never_stale(live: Live, build: Builder) -> None:
    """While a reader keeps the read-ahead busy, a writer changes the files: after each commit all are seen anew."""
    folder = live.point / "ring/dev/skills"
    count = 60
    for generation in range(6):
        for number in range(count):
            build.memory("/ring/dev", f"n{number}", title=f"N {number}", content=f"{generation}\n" * 20)
            if number % 20 == 0:
                sh("cat *.md > /dev/null", folder)
        expected = f"{generation}\n" * 20
        soon(
            lambda expected=expected: all(  # type: ignore[misc]
                (folder / f"n-{number}.md").read_text() == expected for number in range(count)
            )
        )


def test_an_answer_is_gone_with_what_it_was_made_from(live: Live, build: Builder) -> None:
    """Asked above what is revoked, so that the folder itself stays; read in the same session."""
    asked = sh("""echo '{"depth": 4}' > .tree; cat .tree""", live.point)
    assert "first.md" in asked
    assert sh("cat .tree", live.point) == asked
    with build.snapshot.transaction():
        access.revoke(build.db, "me", namespaces.ensure(build.db, "/ring/dev"))
    soon(lambda: names(live.point / "ring") == [])
    soon(lambda: "first.md" not in sh("cat .tree", live.point))


def test_handles_that_hold_answers_are_emptied(live: Live, build: Builder) -> None:
    """Opened before, by path and on their own, and read after; the inode of a held answer leads somewhere still."""
    point = live.point
    script = f"""
        echo '{{"depth": 4}}' > .tree; exec 4<.tree; head -c 10 <&4 > /dev/null
        exec 5<>.tree; echo '{{"depth": 4}}' >&5; dd bs=10 count=1 status=none <&5 > /dev/null
        exec 6<>ring/.tree; dd bs=10 count=1 status=none <&6 > /dev/null
        : > {point.with_name("ready")}
        while [ -e ring/dev ]; do sleep 0.05; done
        sleep 0.5
        for handle in 4 5 6; do sed '' <&$handle; done; stat -L -c %F /proc/self/fd/4
    """
    with subprocess.Popen(["bash", "-c", script], cwd=point, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as shell:
        until(point.with_name("ready").exists, 5)
        with build.snapshot.transaction():
            access.revoke(build.db, "me", namespaces.ensure(build.db, "/ring/dev"))
        said, _ = shell.communicate(timeout=10)
    assert b"first" not in said
    assert b"dev" not in said.replace(b"/dev/", b"")
    assert said.endswith(b"regular empty file\n")
