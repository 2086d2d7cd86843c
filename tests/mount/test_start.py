"""Mount points and snapshots that cannot be used: one line that says what to do, and nothing mounted."""

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import apsw
import pytest

from libraryfs.errors import LibraryError
from libraryfs.mount.daemon import MountOptions, serve, umount
from libraryfs.store.snapshot import SCHEMA_VERSION
from tests.mount.conftest import Mounted
from tests.mount.live import Live, is_mounted, until
from tests.store.build import Builder


@pytest.fixture
def snapshot(build: Builder) -> Path:
    """A closed snapshot with a ring."""
    build.namespace("/ring/dev", "me")
    build.memory("/ring/dev", "s1", title="First", content="one\n")
    build.snapshot.close()
    return build.path


def refusal(snapshot: Path, point: Path, **options: Any) -> str:
    """What is said when this cannot be mounted."""
    with pytest.raises(LibraryError) as caught:
        serve(MountOptions(snapshot=snapshot, mountpoint=point, principal="me", **options))
    assert "\n" not in caught.value.message
    assert not is_mounted(point)
    return caught.value.message


def test_bad_mount_points(snapshot: Path, tmp_path: Path) -> None:
    """Missing, a file, not empty, holding the snapshot."""
    missing, file, full = tmp_path / "missing", tmp_path / "file", tmp_path / "full"
    file.touch()
    full.mkdir()
    (full / "x").touch()
    assert f"mkdir -p {missing}" in refusal(snapshot, missing)
    assert "is a file" in refusal(snapshot, file)
    assert "not empty" in refusal(snapshot, full)
    assert "lies in it" in refusal(snapshot, snapshot.parent)
    shutil.copy(snapshot, full / "below.db")
    assert "lies in it" in refusal(full / "below.db", full)
    link = tmp_path / "link.db"
    link.symlink_to(full / "below.db")
    assert "lies in it" in refusal(link, full)
    assert (full / "x").exists()


def test_beside_the_snapshot(snapshot: Path, mounted: Mounted) -> None:
    """A mount point in the snapshot's folder is fine: it hides nothing."""
    live = mounted(snapshot)
    assert live.point.parent == snapshot.parent
    assert os.listdir(live.point / "ring") == ["dev"]


def test_mounted_already(snapshot: Path, mounted: Mounted) -> None:
    """The first mount is left as it is."""
    live = mounted(snapshot)
    with pytest.raises(LibraryError, match="mounted here already"):
        serve(MountOptions(snapshot=snapshot, mountpoint=live.point, principal="me"))
    assert os.listdir(live.point / "ring") == ["dev"]


def test_another_file_system_is_not_ours_to_end(tmp_path: Path) -> None:
    """umount ends libraryfs mounts only."""
    point = tmp_path / "tmpfs"
    point.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "none", str(point)], check=True)
    try:
        with pytest.raises(LibraryError, match="not libraryfs's to end"):
            umount(point)
        assert is_mounted(point)
    finally:
        subprocess.run(["umount", str(point)], check=True)


def test_bad_snapshots(snapshot: Path, tmp_path: Path) -> None:
    """Missing, empty, a folder, no SQLite, no libraryfs, of a newer schema, truncated."""
    point = tmp_path / "point"
    point.mkdir()
    bad = tmp_path / "bad.db"
    assert "no such snapshot" in refusal(bad, point)
    bad.touch()
    assert "empty" in refusal(bad, point)
    assert "folder" in refusal(tmp_path, point)
    bad.write_bytes(b"not a database, but long enough to be one\n" * 100)
    assert "not a SQLite file" in refusal(bad, point)
    bad.unlink()
    with apsw.Connection(str(bad)) as other:
        other.execute("CREATE TABLE t (x)")
    other.close()
    assert "not a libraryfs snapshot" in refusal(bad, point)
    shutil.copy(snapshot, bad)
    newer = apsw.Connection(str(bad))
    newer.pragma("user_version", SCHEMA_VERSION + 1)
    newer.close()
    assert "newer libraryfs" in refusal(bad, point)
    shutil.copy(snapshot, bad)
    with bad.open("r+b") as file:
        file.truncate(bad.stat().st_size // 3)
    assert "damaged" in refusal(bad, point)
    assert os.listdir(point) == []


def test_read_only_snapshot(snapshot: Path, tmp_path: Path, mounted: Mounted) -> None:
    """On a disk that cannot be written, with no journal beside it, it is mounted all the same."""
    disk = tmp_path / "disk"
    disk.mkdir()
    shutil.copy(snapshot, disk / "library.db")
    subprocess.run(["mount", "--bind", str(disk), str(disk)], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", str(disk)], check=True)
        live = mounted(disk / "library.db")
        assert (live.point / "ring/dev/skills/first.md").read_text() == "one\n"
        live.stop()
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_background(snapshot: Path, tmp_path: Path) -> None:
    """The call returns when the mount serves; the daemon is nobody's child, and logs to the file."""
    point, log = tmp_path / "a point with\ttab", tmp_path / "log"
    point.mkdir()
    options = MountOptions(snapshot=snapshot, mountpoint=point, principal="me", log_file=log, log_level="info")
    assert serve(options) == 0
    try:
        assert (point / "ring/dev/skills/first.md").read_text() == "one\n"
        assert "mounted for me" in log.read_text()
        assert any(line.endswith("fuse.libraryfs") for line in _types(point))
    finally:
        assert "unmounted" in umount(point)
    until(lambda: "ended" in log.read_text(), 5)


def _types(point: Path) -> list[str]:
    done = subprocess.run(["stat", "-f", "-c", "%T", str(point)], capture_output=True, text=True, check=True)
    found = subprocess.run(["findmnt", "-n", "-o", "FSTYPE", str(point)], capture_output=True, text=True, check=True)
    return [done.stdout.strip(), found.stdout.strip()]


def test_background_that_fails(snapshot: Path, tmp_path: Path) -> None:
    """What the kernel or libfuse has against it comes back to the caller as one line."""
    point = tmp_path / "point"
    point.mkdir()
    message = refusal(snapshot, point, fuse_options=("no_such_option",), log_file=tmp_path / "log")
    assert "no_such_option" in message
    message = refusal(snapshot, point, fuse_options=("fsname=ü",), log_file=tmp_path / "log")
    assert "ASCII" in message
    assert os.listdir(point) == []


def test_a_kernel_without_readdirplus(snapshot: Path, tmp_path: Path) -> None:
    """As in gVisor: one line that says so, and what works instead; nothing stays mounted."""
    live = Live(snapshot, tmp_path / "point", environment={"WITHOUT_READDIRPLUS": "1"})
    live.start(serves=False)
    live.process.join(20)
    assert live.log_file.read_text().splitlines()[-1] == (
        f"refused: {live.point}: cannot be mounted: FUSE has no READDIRPLUS here, as in gVisor's sandbox and in kernels"
        " before 3.9; 'libraryfs ask', 'tree', 'drilldown' and 'export' work without a mount"
    )
    assert not is_mounted(live.point)


def test_files_are_made_for_their_owner(snapshot: Path, tmp_path: Path) -> None:
    """The snapshot, its journal while it is open, and the log, whatever the umask allows."""
    was = os.umask(0)
    try:
        with Live(snapshot, tmp_path / "point") as live:
            assert stat.S_IMODE(live.log_file.stat().st_mode) == 0o600
        with Builder(tmp_path / "new.db").snapshot:
            made = sorted(tmp_path.glob("new.db*"))
            assert [path.name for path in made] == ["new.db", "new.db-shm", "new.db-wal"]
            assert {stat.S_IMODE(path.stat().st_mode) for path in made} == {0o600}
    finally:
        os.umask(was)


def test_relative_paths_and_links(snapshot: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The daemon's working folder is another one: paths are made absolute before."""
    (tmp_path / "real").mkdir()
    (tmp_path / "by link").symlink_to("real")
    monkeypatch.chdir(tmp_path)
    options = MountOptions(
        snapshot=Path(snapshot.name), mountpoint=Path("by link"), principal="me", log_file=Path("log")
    )
    serve(options)
    try:
        assert is_mounted(tmp_path / "real")
        assert os.listdir("by link/ring") == ["dev"]
    finally:
        assert umount(Path("by link")) == f"{tmp_path / 'real'}: unmounted"
    assert (tmp_path / "log").exists()


LATER = [
    "numpy",
    "httpx",
    "jsonschema",
    "markdown_it",
    "yaml",
    "rich",
    "regex",
    "onnxruntime",
    "tokenizers",
    "difflib",
    "jinja2",
    "re2",
    "pathspec",
]


def test_nothing_large_is_loaded_before_it_serves() -> None:
    """What a mount needs later, or never, costs no time at its start; scripts/bench/mount.py measures that time."""
    program = f"import libraryfs.mount.serving, libraryfs.cli.mount, sys; print({{*{LATER!r}}} & {{*sys.modules}})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
