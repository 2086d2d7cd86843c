"""README.md and AGENTS.md at the root of a mount: they say what is here, for whom the mount is."""

import errno
import os
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from libraryfs.store import access, namespaces
from tests.mount.conftest import Mounted
from tests.mount.live import Live, sh, until
from tests.store.build import Builder


def both(live: Live) -> str:
    """The text, which is the same in both files, and of exact size."""
    texts = {(live.point / name).read_bytes() for name in ("README.md", "AGENTS.md")}
    assert len(texts) == 1
    for name in ("README.md", "AGENTS.md"):
        assert os.stat(live.point / name).st_size == len(next(iter(texts)))
    return next(iter(texts)).decode()


def comes_to(live: Live, said: Callable[[str], bool]) -> bool:
    """Whether both say so by now; between two looks they may be of two moments."""
    with suppress(AssertionError):
        return said(both(live))
    return False


def test_it_names_what_is_seen_and_how_to_ask(build: Builder, mounted: Mounted) -> None:
    """Each thing that it says can be done; what is hidden is not named."""
    build.namespace("/ring/dev", "me")
    build.namespace("/ring/secret", "other")
    build.memory("/ring/dev", "d", "decision", title="Deploys", content="We deploy on Tuesdays.\n")
    live = mounted(build.path)
    said = both(live)
    assert 20 <= len(said.splitlines()) <= 35
    assert "`dev`" in said
    assert "secret" not in said
    for word in (".ask", ".eval", ".tree", ".drilldown", "getfattr", "setsid", str(live.point / "ring/dev")):
        assert word in said
    sh(
        "cat ring/dev/.tree ring/dev/.drilldown; getfattr -d ring/dev/decisions/deploys.md; cat ring/dev/.eval",
        live.point,
    )


def test_it_follows_the_view(build: Builder, mounted: Mounted) -> None:
    """A grant, a revocation, a new ring: within a second, with the size, in the kernel's pages too."""
    build.namespace("/ring/dev", "me")
    build.namespace("/ring/secret", "other")
    live = mounted(build.path)
    before = both(live)
    with build.snapshot.transaction() as db:
        ring = namespaces.find(db, "ring", "secret")
        assert ring is not None
        access.grant(db, "me", ring)
    until(lambda: comes_to(live, lambda text: "`secret`" in text), 5)
    with build.snapshot.transaction() as db:
        access.revoke(db, "me", ring)
    until(lambda: comes_to(live, lambda text: "secret" not in text), 5)
    assert both(live) == before


def test_numbers_stay_and_nothing_is_written(build: Builder, mounted: Mounted) -> None:
    """The inode numbers are the same after a remount; writing is refused as anywhere; there are no attributes."""
    build.namespace("/ring/dev", "me")
    live = mounted(build.path)
    again = mounted(build.path)
    for name in ("README.md", "AGENTS.md"):
        assert os.stat(live.point / name).st_ino == os.stat(again.point / name).st_ino
        assert os.stat(live.point / name).st_mode == 0o100444
        assert os.listxattr(live.point / name) == []
        with pytest.raises(OSError, match="Read-only") as raised:
            os.open(live.point / name, os.O_WRONLY)
        assert raised.value.errno == errno.EROFS
        assert not os.access(live.point / name, os.X_OK)
        with pytest.raises(FileNotFoundError):
            os.stat(live.point / "ring" / name)
    assert sorted(os.listdir(live.point)) == [".ask", "AGENTS.md", "README.md", "agent", "ring"]


def test_tools_take_them(build: Builder, mounted: Mounted, tmp_path: Path) -> None:
    """cp, tar, rsync, busybox and grep -r."""
    build.namespace("/ring/dev", "me")
    live = mounted(build.path)
    said = both(live)
    out = tmp_path / "out"
    for tool in (
        "cp README.md {}",
        "busybox cp README.md {}",
        "rsync -a README.md {}",
        "tar cf - README.md | tar xO > {}",
    ):
        out.unlink(missing_ok=True)
        subprocess.run(["bash", "-c", tool.format(out)], cwd=live.point, check=True)
        assert out.read_text() == said
    assert sh("grep -rl 'read-only view' . | sort", live.point) == "./AGENTS.md\n./README.md\n"


def test_a_library_of_nothing(build: Builder, mounted: Mounted) -> None:
    """It says so."""
    live = mounted(build.path)
    assert both(live).count("none that you may see") == 2
