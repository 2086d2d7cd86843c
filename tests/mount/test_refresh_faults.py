"""What the refresh cannot digest: everything is forgotten, nothing hidden is shown, and later commits show again."""

import mmap
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from libraryfs.store import access, memory, namespaces
from tests.mount.conftest import Mounted
from tests.mount.live import Live, sh, until
from tests.store.build import Builder


def soon(condition: Callable[[], bool]) -> None:
    """The condition holds within a second. A machine that does much else gets some more."""
    until(condition, 3)


@pytest.fixture
def live(build: Builder, mounted: Mounted) -> Live:
    """A mount of two rings with a skill each."""
    for ring in ("dev", "secret"):
        build.namespace(f"/ring/{ring}", "me")
        build.memory(f"/ring/{ring}", "a", title="A", content=f"old of {ring}\n")
    return mounted(build.path)


def revoke(build: Builder, ring: str) -> None:
    """Takes a ring away from the mount's principal."""
    with build.snapshot.transaction():
        access.revoke(build.db, "me", namespaces.ensure(build.db, f"/ring/{ring}"))


def is_closed(read: Callable[[], object]) -> bool:
    """Whether reading fails."""
    try:
        read()
    except OSError:
        return True
    return False


def shows_commits(live: Live, build: Builder, word: str) -> None:
    """Changed and new rows show, cached or not."""
    skills = live.point / "ring/dev/skills"
    build.memory("/ring/dev", "a", title="A", content=f"{word}\n")
    build.memory("/ring/dev", word, title=word, content="added\n")
    soon(lambda: (skills / "a.md").read_text() == f"{word}\n")
    soon((skills / f"{word}.md").exists)


def test_a_charter_comes_under_a_live_mount(live: Live, build: Builder) -> None:
    """It is stored below a number that the kernel must never hear. What is committed later shows, a revocation too."""
    skills = live.point / "ring/dev/skills"
    assert not (skills / "new.md").exists()
    with (skills / "a.md").open("rb", buffering=0) as held, mmap.mmap(held.fileno(), 0, prot=mmap.PROT_READ) as mapped:
        assert mapped[:3] == b"old"
        build.memory("/ring/dev", "c", "charter", title="Charter", content="first\n")
        soon((live.point / "ring/dev/charter/charter.md").exists)
        shows_commits(live, build, "new")
        assert os.pread(held.fileno(), 100, 0) == b"new\n"
        build.memory("/ring/dev", "c", "charter", title="Charter", content="second\n")
        soon(lambda: (live.point / "ring/dev/charter/charter.md").read_text() == "second\n")
        revoke(build, "dev")
        soon(lambda: not (live.point / "ring/dev").exists())
        soon(lambda: is_closed(lambda: os.pread(held.fileno(), 100, 0)))


def test_a_ring_with_a_shadowed_charter_is_revoked(live: Live, build: Builder) -> None:
    """Open files and answers give nothing of it any more."""
    build.memory("/ring/secret", "c1", "charter", title="One", content="one\n", updated_at=1_600_000_000)
    build.memory("/ring/secret", "c2", "charter", title="Two", content="two\n", updated_at=1_700_000_000)
    soon(lambda: os.listdir(live.point / "ring/secret/charter") == ["two.md"])
    charter = (live.point / "ring/secret/charter/two.md").open("rb", buffering=0)
    skill = (live.point / "ring/secret/skills/a.md").open("rb", buffering=0)
    with charter, skill:
        assert charter.read() == b"two\n"
        assert skill.read() == b"old of secret\n"
        assert "a.md" in sh("""echo '{"depth": 4}' > .tree; cat .tree""", live.point)
        revoke(build, "secret")
        for held in (charter, skill):
            soon(lambda held=held: is_closed(lambda: os.pread(held.fileno(), 100, 0)))  # type: ignore[misc]
        soon(lambda: "secret" not in sh("cat .tree", live.point))
    assert not (live.point / "ring/secret").exists()


DAMAGE = {
    "a row of text": "INSERT INTO changes (op, ino, parent, name) VALUES ('x', 'y', 'z', 'text')",
    "a name that is a number": "INSERT INTO changes (op, ino, parent, name) VALUES (1, 5, 1, 7)",
    "an operation that is none": "INSERT INTO changes (op, ino, parent, name) VALUES (99, 5, -1, x'2f')",
    "numbers beyond all": f"INSERT INTO changes (op, ino, parent, name) VALUES (2, {2**63 - 1}, {-(2**63)}, x'00')",
    "an endless name": "INSERT INTO changes (op, ino, parent, name) VALUES (1, 5, 1, zeroblob(100000))",
    "no log": "ALTER TABLE changes RENAME TO elsewhere",
    "a log of something else": "DROP TABLE changes; CREATE TABLE changes (seq INTEGER PRIMARY KEY, note)",
    "a log that goes back": "UPDATE sqlite_sequence SET seq = 1 WHERE name = 'changes'; DELETE FROM changes",
}
WRITERS_NEED = (
    "CREATE TABLE IF NOT EXISTS changes (seq INTEGER PRIMARY KEY AUTOINCREMENT, op, ino, parent, name, namespace_id)"
)


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_log_that_cannot_be_read(live: Live, build: Builder, damage: str) -> None:
    """What was committed with the damage shows; nothing that was hidden with it can be read; it is said once."""
    live.expected += ["refresh: ", "Traceback", "the kernel refused a notification"]
    skills = live.point / "ring/dev/skills"
    assert not (skills / "new.md").exists()
    secret = (live.point / "ring/secret/skills/a.md").open("rb", buffering=0)
    gone = (skills / "a.md").open("rb", buffering=0)
    with secret, gone:
        assert secret.read() == b"old of secret\n"
        assert gone.read() == b"old of dev\n"
        ring = namespaces.ensure(build.db, "/ring/dev")
        with build.snapshot.transaction() as db:
            access.revoke(db, "me", namespaces.ensure(db, "/ring/secret"))
            memory.delete(db, ring, build.entry(memory, "/ring/dev", "a").ino)
            db.execute(DAMAGE[damage])
            db.execute(WRITERS_NEED)
        for held in (secret, gone):
            soon(lambda held=held: is_closed(lambda: os.pread(held.fileno(), 100, 0)))  # type: ignore[misc]
        soon(lambda: not (live.point / "ring/secret").exists())
        soon(lambda: not (skills / "a.md").exists())
    with suppress(Exception):
        shows_commits(live, build, "new")  # with no log of its form nobody can write
    assert live.log_file.read_text().count("refresh: ") <= 2


def test_rights_that_changed_past_the_log(live: Live, build: Builder) -> None:
    """A grant that another program rewrote in place."""
    held = (live.point / "ring/secret/skills/a.md").open("rb", buffering=0)
    with held:
        assert held.read() == b"old of secret\n"
        with build.snapshot.transaction() as db:
            ring = namespaces.ensure(db, "/ring/secret")
            db.execute("UPDATE grants SET principal = 'other' WHERE namespace_id = ?", (ring.id,))
        soon(lambda: is_closed(lambda: os.pread(held.fileno(), 100, 0)))
        soon(lambda: not (live.point / "ring/secret").exists())


def test_a_mount_that_cannot_catch_up_answers_eio(live: Live, build: Builder) -> None:
    """For as long as nothing can be read; then it is as it was."""
    live.expected += ["refresh: ", "cannot keep up", "Traceback", "cannot be read"]
    path = live.point / "ring/dev/skills/a.md"
    held = path.open("rb", buffering=0)
    with held:
        assert held.read() == b"old of dev\n"
        with build.snapshot.transaction() as db:
            db.execute(DAMAGE["a row of text"])
            db.execute("ALTER TABLE entries RENAME TO elsewhere")
        soon(lambda: is_closed(lambda: os.pread(held.fileno(), 100, 0)))
        soon(lambda: is_closed(path.read_bytes))
        until(lambda: "requests get EIO" in live.log_file.read_text(), 12)
        assert is_closed(lambda: os.listdir(live.point / "ring"))
        assert is_closed(lambda: Path(live.point / ".tree").read_bytes())
        with build.snapshot.transaction() as db:
            db.execute("ALTER TABLE elsewhere RENAME TO entries")
        soon(lambda: not is_closed(path.read_bytes))
    assert path.read_text() == "old of dev\n"
    time.sleep(0.3)
    shows_commits(live, build, "new")
    assert "has caught up" in live.log_file.read_text()
