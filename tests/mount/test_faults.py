"""Faults of the daemon and of its handlers: EIO and the mount lives; its end leaves no mount point behind."""

import ctypes
import errno
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from libraryfs.mount.daemon import umount
from libraryfs.store import memory, namespaces
from tests.mount.conftest import Mounted
from tests.mount.live import Live, drop_caches, is_mounted, sh, until
from tests.store.build import Builder

GONE = (errno.ENOTCONN, errno.ECONNABORTED)


@pytest.fixture
def ring(build: Builder) -> Builder:
    """A snapshot of a ring with two skills."""
    build.namespace("/ring/dev", "me")
    build.memory("/ring/dev", "s1", title="First", content="one\n")
    build.memory("/ring/dev", "s2", title="Second", content="two\n" * 100)
    return build


def write_to_control(root: Path) -> None:
    """A request, written whole."""
    (root / ".tree").write_text('{"depth": 0}')


def open_and_close(root: Path) -> None:
    """No more than that."""
    os.close(os.open(root / "ring/dev/skills/first.md", os.O_RDONLY))


def sync(root: Path, flags: int, path: str) -> None:
    """fsync(2)."""
    descriptor = os.open(root / path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_and_forget(root: Path) -> None:
    """The kernel learns of an inode, and lets go of it."""
    (root / "ring/dev/skills/second.md").read_bytes()
    drop_caches()


def access(path: Path, mode: int) -> None:
    """access(2), with its error."""
    if not os.access(path, mode):
        libc = ctypes.CDLL(None, use_errno=True)  # os.access does not tell why not
        assert libc.access(os.fsencode(path), mode) == -1
        raise OSError(ctypes.get_errno(), "access")


HANDLERS: dict[str, Callable[[Path], object]] = {
    "lookup": lambda root: os.stat(root / "ring/dev/never looked up"),
    "getattr": lambda root: os.stat(root / ".tree"),
    "setattr": lambda root: os.chmod(root / "ring", 0o700),
    "access": lambda root: access(root / "ring", os.R_OK),
    "open": open_and_close,
    "read": lambda root: (root / "ring/dev/skills/first.md").read_bytes(),
    "write": write_to_control,
    "opendir": lambda root: os.listdir(root / "ring/dev"),
    "readdir": lambda root: os.listdir(root / "ring/dev"),
    "statfs": os.statvfs,
    "getxattr": lambda root: os.getxattr(root / "ring", "user.library.id"),
    "listxattr": lambda root: os.listxattr(root / "ring"),
    "setxattr": lambda root: os.setxattr(root / "ring", "user.x", b"1"),
    "removexattr": lambda root: os.removexattr(root / "ring", "user.x"),
    "fsync": lambda root: sync(root, os.O_RDONLY, "ring/dev/skills/first.md"),
    "fsyncdir": lambda root: sync(root, os.O_RDONLY | os.O_DIRECTORY, "ring/dev/skills"),
    "create": lambda root: (root / "ring/dev/skills/new.md").touch(),
    "mknod": lambda root: os.mkfifo(root / "ring/dev/fifo"),
    "mkdir": lambda root: (root / "ring/new").mkdir(),
    "symlink": lambda root: (root / "ring/link").symlink_to("dev"),
    "link": lambda root: os.link(root / "ring/dev/skills/first.md", root / "ring/dev/skills/link.md"),
    "unlink": lambda root: (root / "ring/dev/skills/first.md").unlink(),
    "rmdir": lambda root: (root / "ring/dev/skills").rmdir(),
    "rename": lambda root: (root / "ring/dev/skills/first.md").rename(root / "ring/dev/skills/other.md"),
}
"""What makes the kernel send each request whose error the caller sees."""

UNSEEN: dict[str, Callable[[Path], object]] = {
    "release": open_and_close,
    "releasedir": lambda root: os.listdir(root / "ring/dev"),
    "forget": read_and_forget,
}
"""Those whose error nobody sees."""


@pytest.fixture(scope="module")
def faulty(module_build: Builder, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Live, Path]]:
    """A mount that fails where the file says, and that file."""
    module_build.namespace("/ring/dev", "me")
    module_build.memory("/ring/dev", "s1", title="First", content="one\n")
    module_build.memory("/ring/dev", "s2", title="Second", content="two\n" * 100)
    work = tmp_path_factory.mktemp("faulty")
    told = work / "told"
    told.write_text("")
    with Live(module_build.path, work / "mount", fault=told) as live:
        live.expected += ["injected in", "a bug", "Traceback"]
        yield live, told


@pytest.mark.parametrize("handler", [*HANDLERS, *UNSEEN])
def test_a_bug_in_a_handler(faulty: tuple[Live, Path], handler: str) -> None:
    """The caller gets EIO, the log a traceback, and the mount goes on."""
    live, told = faulty
    logged = live.log_file.read_text().count(f"injected in {handler}")
    drop_caches()
    told.write_text(handler)
    try:
        if handler in HANDLERS:
            with pytest.raises(OSError) as caught:
                HANDLERS[handler](live.point)
            assert caught.value.errno == errno.EIO
        else:
            UNSEEN[handler](live.point)
        until(lambda: live.log_file.read_text().count(f"injected in {handler}") > logged, 5)
    finally:
        told.write_text("")
    assert (live.point / "ring/dev/skills/first.md").read_text() == "one\n"
    assert os.listdir(live.point / "ring") == ["dev"]


def test_a_bug_in_flush(ring: Builder, mounted: Mounted, tmp_path: Path) -> None:
    """The kernel asks once; then it knows that there is no need to."""
    told = tmp_path / "told"
    told.write_text("flush")
    live = mounted(ring.path, fault=told)
    live.expected += ["injected in flush", "a bug, or a snapshot", "Traceback"]
    with pytest.raises(OSError) as caught:
        open_and_close(live.point)
    assert caught.value.errno == errno.EIO
    told.write_text("")
    open_and_close(live.point)
    with live.counting() as counted:
        open_and_close(live.point)
    assert "flush" not in counted


MUTATIONS: dict[str, Callable[[Path, Path], object]] = {
    "create": lambda folder, _: (folder / "new.md").touch(),
    "create below a file's name": lambda folder, file: (folder / "x").write_text("y"),
    "unlink": lambda _, file: file.unlink(),
    "rename": lambda folder, file: file.rename(folder / "other.md"),
    "rename a folder": lambda folder, _: folder.rename(folder.with_name("other")),
    "mkdir": lambda folder, _: (folder / "new").mkdir(),
    "rmdir": lambda folder, _: folder.rmdir(),
    "chmod": lambda _, file: file.chmod(0o777),
    "chown": lambda _, file: os.chown(file, 1, 1),
    "utime": lambda _, file: os.utime(file, (1, 1)),
    "truncate": lambda _, file: os.truncate(file, 0),
    "link": lambda folder, file: os.link(file, folder / "link.md"),
    "symlink": lambda folder, _: (folder / "link.md").symlink_to("a"),
    "mknod": lambda folder, _: os.mknod(folder / "node", 0o600),
    "mkfifo": lambda folder, _: os.mkfifo(folder / "fifo"),
    "setxattr": lambda _, file: os.setxattr(file, "user.library.id", b"x"),
    "setxattr replacing": lambda _, file: os.setxattr(file, "user.library.id", b"x", os.XATTR_REPLACE),
    "setxattr creating": lambda _, file: os.setxattr(file, "user.new", b"x", os.XATTR_CREATE),
    "removexattr": lambda _, file: os.removexattr(file, "user.library.id"),
    "write": lambda _, file: os.open(file, os.O_WRONLY),
    "read and write": lambda _, file: os.open(file, os.O_RDWR),
    "append": lambda _, file: os.open(file, os.O_WRONLY | os.O_APPEND),
    "open and truncate": lambda _, file: os.open(file, os.O_RDONLY | os.O_TRUNC),
    "access for writing": lambda _, file: access(file, os.W_OK),
    "remove a control file": lambda folder, _: (folder / ".tree").unlink(),
    "chmod a control file": lambda folder, _: (folder / ".tree").chmod(0o600),
}


@pytest.mark.parametrize("what", MUTATIONS)
def test_every_change_is_refused(faulty: tuple[Live, Path], what: str) -> None:
    """As on a read-only disk: EROFS, and nothing is changed."""
    folder = faulty[0].point / "ring/dev/skills"
    before = sh("ls -lAR; cat *", folder)
    with pytest.raises(OSError) as caught:
        MUTATIONS[what](folder, folder / "first.md")
    assert caught.value.errno == errno.EROFS
    assert sh("ls -lAR; cat *", folder) == before


def test_names_too_long(faulty: tuple[Live, Path]) -> None:
    """255 bytes are a name that is not there; 256 are no name."""
    folder = faulty[0].point / "ring/dev/skills"
    assert not (folder / ("x" * 255)).exists()
    with pytest.raises(OSError) as caught:
        os.stat(folder / ("x" * 256))
    assert caught.value.errno == errno.ENAMETOOLONG


def test_attributes_that_are_none(faulty: tuple[Live, Path]) -> None:
    """ENODATA for one of ours that is not there, ENOTSUP for a kind that this file system does not have."""
    file = faulty[0].point / "ring/dev/skills/first.md"
    for name, number in (
        ("user.library.no", errno.ENODATA),
        ("user.other", errno.ENODATA),
        ("security.x", errno.ENOTSUP),
    ):
        with pytest.raises(OSError) as caught:
            os.getxattr(file, name)
        assert caught.value.errno == number
    assert os.getxattr(file, "user.library.id") == b"s1"


def test_kill_and_mount_again(ring: Builder, tmp_path: Path) -> None:
    """After kill -9 the point is dead; mounting on it again works, and umount ends a dead one too."""
    point = tmp_path / "mount"
    with Live(ring.path, point) as live:
        os.kill(live.pid, signal.SIGKILL)
        live.process.join()
        with pytest.raises(OSError) as caught:
            os.listdir(point)
        assert caught.value.errno in GONE
        with Live(ring.path, point) as again:
            assert (point / "ring/dev/skills/first.md").read_text() == "one\n"
            os.kill(again.pid, signal.SIGKILL)
            again.process.join()
            assert is_mounted(point)
            assert umount(point) == f"{point}: unmounted"
    assert not is_mounted(point)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("busy", [False, True])
def test_signals_end_the_mount(ring: Builder, tmp_path: Path, number: int, busy: bool) -> None:
    """Within two seconds it is unmounted and the process is gone, whether readers are at it or not."""
    live = Live(ring.path, tmp_path / "mount")
    live.start()
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            try:
                os.listdir(live.point / "ring/dev/skills")
                (live.point / "ring/dev/skills/second.md").read_bytes()
            except OSError:
                return

    reader = threading.Thread(target=read)
    held = os.open(live.point / "ring/dev/skills/first.md", os.O_RDONLY)
    try:
        if busy:
            reader.start()
            time.sleep(0.1)
        else:
            os.close(held)
        assert live.stop(number) < 2
        assert not is_mounted(live.point)
        assert live.process.exitcode == 0
    finally:
        stop.set()
        if busy:
            reader.join()
            os.close(held)
    assert not live.surprises()


def test_umount_twice(ring: Builder, mounted: Mounted) -> None:
    """Says what it did; the daemon ends; the second time there is nothing to do."""
    live = mounted(ring.path)
    assert umount(live.point) == f"{live.point}: unmounted"
    live.process.join(5)
    assert live.process.exitcode == 0
    assert umount(live.point) == f"{live.point}: not mounted"


def test_umount_of_a_mount_in_use(ring: Builder, mounted: Mounted) -> None:
    """It is detached, and says who uses it; what is open can be read to its end, and then the daemon ends."""
    live = mounted(ring.path)
    with subprocess.Popen(["sleep", "60"], cwd=live.point / "ring") as sleeper:
        with (live.point / "ring/dev/skills/second.md").open() as held:
            said = umount(live.point)
            assert f"sleep ({sleeper.pid})" in said
            assert "detached" in said
            assert not is_mounted(live.point)
            assert held.read() == "two\n" * 100
        sleeper.kill()
    live.process.join(5)
    assert live.process.exitcode == 0


def test_readers_of_a_broken_snapshot_get_eio(ring: Builder, mounted: Mounted) -> None:
    """Content that cannot be read is an error of that file; the rest and the mount go on."""
    live = mounted(ring.path)
    live.expected += ["a bug, or a snapshot that cannot be read", "Traceback", "no such table"]
    with ring.snapshot.transaction():
        ring.db.execute("ALTER TABLE bodies RENAME TO elsewhere")
    with pytest.raises(OSError) as caught:
        (live.point / "ring/dev/skills/second.md").read_bytes()
    assert caught.value.errno == errno.EIO
    assert sorted(os.listdir(live.point / "ring/dev/skills")) == ["first.md", "second.md"]
    with ring.snapshot.transaction():
        ring.db.execute("ALTER TABLE elsewhere RENAME TO bodies")
    assert (live.point / "ring/dev/skills/second.md").read_text() == "two\n" * 100


@pytest.mark.parametrize("statement", ["BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"])
def test_a_writer_at_work_holds_up_nobody(ring: Builder, mounted: Mounted, statement: str) -> None:
    """A snapshot that another process has locked to write is mounted and read."""
    ring.db.execute(statement)
    ring.db.execute("UPDATE settings SET value = value")
    try:
        started = time.monotonic()
        live = mounted(ring.path)
        assert (live.point / "ring/dev/skills/first.md").read_text() == "one\n"
        assert time.monotonic() - started < 3
    finally:
        ring.db.execute("ROLLBACK")


def test_a_deleted_row_under_an_open_folder(ring: Builder, mounted: Mounted) -> None:
    """Listing goes on after rows went from under it: nothing twice, nothing left out that was there throughout."""
    for number in range(500):
        ring.memory("/ring/dev", f"n{number}", "decision", title=f"D {number}")
    live = mounted(ring.path)
    found = namespaces.find_path(ring.db, "/ring/dev")
    assert found is not None
    seen = []
    with os.scandir(live.point / "ring/dev/decisions") as folder:
        for count, entry in enumerate(folder):
            seen.append(entry.name)
            if count == 3:
                with ring.snapshot.transaction():
                    for number in range(0, 500, 2):
                        memory.delete(ring.db, found, ring.entry(memory, "/ring/dev", f"n{number}").ino)
    assert len(seen) == len(set(seen))
    assert {f"d-{number}.md" for number in range(1, 500, 2)} <= set(seen)
