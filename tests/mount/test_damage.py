"""A damaged snapshot under a mount: EIO for what is damaged, one line in the log, and the mount serves all the rest."""

import errno
import os
import random
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from libraryfs.rows import ArtifactRow
from libraryfs.store import artifacts, bodies
from libraryfs.store.bodies import CHUNK
from tests.mount.conftest import Mounted
from tests.mount.live import Live, drop_caches, sh, until
from tests.store.build import Builder

LARGE = random.Random(1).randbytes(9 * CHUNK + 1000)


@pytest.fixture
def ring(build: Builder) -> Builder:
    """A snapshot of a ring with two skills, an item and a large artifact."""
    namespace = build.namespace("/ring/dev", "me")
    build.memory("/ring/dev", "s1", title="First", content="one\n")
    build.memory("/ring/dev", "s2", title="Second", content="two\n" * 100, metadata={"owner": "ann"})
    build.item("/ring/dev", "w", name="item", content="item\n")
    with build.snapshot.transaction() as db:
        row = ArtifactRow(namespace="/ring/dev", id="big", filename="big", content="")
        artifacts.upsert(db, namespace, row, bodies.of_bytes(LARGE), None, build.now)
    return build


def errno_of(act: Callable[[], object]) -> int:
    """The errno that it fails with; 0 when it does not."""
    try:
        act()
    except OSError as error:
        return error.errno or -1
    return 0


def lives(live: Live) -> None:
    """The mount serves what is not damaged."""
    assert (live.point / "ring/dev/workspace/item").read_text() == "item\n"
    assert os.listdir(live.point / "ring") == ["dev"]


FIRST = "ino = (SELECT ino FROM memories WHERE id = 's1')"
BODIES = {
    "gone": f"DELETE FROM bodies WHERE {FIRST}",
    "text": f"UPDATE bodies SET data = 'one!' WHERE {FIRST}",
    "a number": f"UPDATE bodies SET data = 1 WHERE {FIRST}",
    "short": f"UPDATE bodies SET data = x'6f' WHERE {FIRST}",
    "other bytes": f"UPDATE bodies SET data = x'6f6e6521' WHERE {FIRST}",
    "of no size": f"UPDATE entries SET size = 0 WHERE {FIRST}",
    "of a size below 0": f"UPDATE entries SET size = -5 WHERE {FIRST}",
    "of a size in words": f"UPDATE entries SET size = 'x' WHERE {FIRST}",
    "of a time in words": f"UPDATE entries SET ctime_ns = 'x' WHERE {FIRST}",
    "of no digest": f"UPDATE entries SET digest = NULL WHERE {FIRST}",
    "of a kind in words": f"UPDATE entries SET kind = 'x' WHERE {FIRST}",
    "of a namespace in words": f"UPDATE entries SET namespace_id = 'x' WHERE {FIRST}",
    "nobody's": f"UPDATE entries SET namespace_id = NULL WHERE {FIRST}",
}


@pytest.mark.parametrize("damage", BODIES)
def test_one_file_is_damaged(ring: Builder, mounted: Mounted, damage: str) -> None:
    """Reading it is EIO, for cat and cp too; one line says so; its neighbours are read."""
    with ring.snapshot.transaction() as db:
        db.execute(BODIES[damage])
    live = mounted(ring.path)
    live.expected += ["damaged"]
    path = live.point / "ring/dev/skills/first.md"
    assert errno_of(path.read_bytes) == errno.EIO
    for command in (f"cat {path}", f"cp {path} copy", f"busybox cat {path}"):
        assert subprocess.run(command, shell=True, cwd=live.point.parent, capture_output=True, check=False).returncode
    assert (path.parent / "second.md").read_text() == "two\n" * 100
    lives(live)
    assert live.log_file.read_text().count("is damaged") == 1
    assert "Traceback" not in live.log_file.read_text()


SECOND = "(SELECT ino FROM memories WHERE id = 's2')"
ROWS = {
    "a name with a slash": f"UPDATE entries SET name = CAST('a/b' AS BLOB) WHERE ino = {SECOND}",
    "a name of text": f"UPDATE entries SET name = 'text.md' WHERE ino = {SECOND}",
    "a name too long": f"UPDATE entries SET name = zeroblob(300) WHERE ino = {SECOND}",
    "a name of a number": f"UPDATE entries SET name = 7 WHERE ino = {SECOND}",
    "no name": f"UPDATE entries SET name = x'' WHERE ino = {SECOND}",
    "two dots": f"UPDATE entries SET name = x'2e2e' WHERE ino = {SECOND}",
    "a number of its own": f"UPDATE entries SET ino = {1 << 62} WHERE ino = {SECOND}",
    "a number below 0": f"UPDATE entries SET ino = -5 WHERE ino = {SECOND}",
    "a time in words": f"UPDATE entries SET mtime_ns = 'noon' WHERE ino = {SECOND}",
}


@pytest.mark.parametrize("damage", ROWS)
def test_one_row_of_a_folder_is_damaged(ring: Builder, mounted: Mounted, damage: str) -> None:
    """The folder lists all others, and then says that it is not whole."""
    for number in range(200):
        ring.memory("/ring/dev", f"n{number}", title=f"N {number}", content="n\n")
    with ring.snapshot.transaction() as db:
        db.execute(ROWS[damage])
    live = mounted(ring.path)
    live.expected += ["damaged"]
    done = subprocess.run(["ls", live.point / "ring/dev/skills"], capture_output=True, text=True, check=False)
    assert sorted(done.stdout.split()) == sorted(["first.md", *(f"n-{number}.md" for number in range(200))])
    if damage != "a number below 0":  # that is before all places of a listing
        assert done.returncode
        assert "Input/output error" in done.stderr
    lives(live)


METADATA = {
    "no JSON": f"UPDATE memories SET metadata = '{{' WHERE ino = {SECOND}",
    "no object": f"UPDATE memories SET metadata = '[1]' WHERE ino = {SECOND}",
    "a title of text": f"UPDATE memories SET title = 'text' WHERE ino = {SECOND}",
    "a time of words": f"UPDATE memories SET updated_ns = 'noon' WHERE ino = {SECOND}",
    "an id that is bytes": f"UPDATE memories SET id = x'ff' WHERE ino = {SECOND}",
    "text that is none": f"UPDATE memories SET memory_type = CAST(x'ff80' AS TEXT) WHERE ino = {SECOND}",
}


@pytest.mark.parametrize("damage", METADATA)
def test_attributes_of_a_damaged_row(ring: Builder, mounted: Mounted, damage: str) -> None:
    """EIO; the content is whole, and read."""
    with ring.snapshot.transaction() as db:
        db.execute(METADATA[damage])
    live = mounted(ring.path)
    live.expected += ["damaged", "cannot be read"]
    path = live.point / "ring/dev/skills/second.md"
    assert errno_of(lambda: os.getxattr(path, "user.library.id")) == errno.EIO
    assert errno_of(lambda: os.listxattr(path)) == errno.EIO
    assert path.read_text() == "two\n" * 100
    assert os.getxattr(path.with_name("first.md"), "user.library.id") == b"s1"
    assert "Traceback" not in live.log_file.read_text()


def test_a_large_file_is_damaged_in_one_part(ring: Builder, mounted: Mounted) -> None:
    """The other parts are read; a tool that reads all fails."""
    with ring.snapshot.transaction() as db:
        db.execute("UPDATE chunks SET data = zeroblob(length(data)) WHERE seq = 5")
    live = mounted(ring.path)
    live.expected += ["damaged"]
    path = live.point / "ring/dev/artifacts/big"
    with path.open("rb", buffering=0) as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
        assert os.pread(file.fileno(), 4096, 100) == LARGE[100:4196]
        assert os.pread(file.fileno(), 4096, 8 * CHUNK) == LARGE[8 * CHUNK :][:4096]
        assert errno_of(lambda: os.pread(file.fileno(), 4096, 5 * CHUNK + 100)) == errno.EIO
    assert errno_of(path.read_bytes) == errno.EIO
    lives(live)


@pytest.mark.parametrize("is_whole", [True, False])
def test_a_large_file_of_an_earlier_version(ring: Builder, mounted: Mounted, is_whole: bool) -> None:
    """It is read to its end before its first byte is given."""
    with ring.snapshot.transaction() as db:
        db.execute("DROP TABLE chunk_sums")
        if not is_whole:
            db.execute("UPDATE chunks SET data = zeroblob(length(data)) WHERE seq = 5")
    live = mounted(ring.path)
    live.expected += ["damaged"]
    path = live.point / "ring/dev/artifacts/big"
    if is_whole:
        assert path.read_bytes() == LARGE
    else:
        with path.open("rb", buffering=0) as file:
            assert errno_of(lambda: os.pread(file.fileno(), 10, 0)) == errno.EIO
    lives(live)


def test_damage_comes_under_a_live_mount(ring: Builder, mounted: Mounted) -> None:
    """And goes again."""
    live = mounted(ring.path)
    live.expected += ["damaged"]
    path = live.point / "ring/dev/skills/first.md"
    assert path.read_text() == "one\n"
    with ring.snapshot.transaction() as db:
        db.execute("UPDATE bodies SET data = 'text' WHERE length(data) = 4")
    drop_caches()
    assert errno_of(path.read_bytes) == errno.EIO
    ring.memory("/ring/dev", "s1", title="First", content="again\n")
    until(lambda: errno_of(path.read_bytes) == 0, 3)
    assert path.read_text() == "again\n"


def test_a_read_ahead_leaves_out_what_is_damaged(ring: Builder, mounted: Mounted) -> None:
    """A whole cold `cat *` fails for the damaged files, and only for them."""
    for number in range(60):
        ring.memory("/ring/dev", f"n{number}", "decision", title=f"N {number}", content=f"number {number}\n")
    with ring.snapshot.transaction() as db:
        db.execute(
            "UPDATE bodies SET data = CAST(upper(data) AS BLOB) WHERE data = CAST('number 33' || char(10) AS BLOB)"
        )
    live = mounted(ring.path)
    live.expected += ["damaged"]
    said = sh("cat * 2> /dev/null || true", live.point / "ring/dev/decisions")
    assert sorted(said.split("\n")) == sorted(["", *(f"number {number}" for number in range(60) if number != 33)])


@pytest.mark.slow
def test_flipped_bits_through_the_mount(ring: Builder, mounted: Mounted, tmp_path: Path) -> None:
    """What `cat` gives with success is what was stored."""
    expected = {
        "ring/dev/skills/first.md": b"one\n",
        "ring/dev/skills/second.md": b"two\n" * 100,
        "ring/dev/workspace/item": b"item\n",
        "ring/dev/artifacts/big": LARGE,
    }
    ring.snapshot.close()
    whole = ring.path.read_bytes()
    chance = random.Random(7)
    for number in range(15):
        path = tmp_path / f"flipped-{number}.db"
        shutil.copy(ring.path, path)
        at = chance.randrange(len(whole) // 5) if number % 2 else chance.randrange(len(whole))
        with path.open("r+b") as file:
            file.seek(at)
            file.write(bytes([whole[at] ^ 1 << chance.randrange(8)]))
        try:
            live = mounted(path)
        except AssertionError:  # not even mounted
            continue
        live.expected += ["damaged", "cannot be read", "refresh", "Traceback"]
        for name, content in expected.items():
            done = subprocess.run(["cat", name], cwd=live.point, capture_output=True, check=False)
            assert done.returncode or done.stdout == content, f"byte {at}: {name}"
        live.stop()
