"""Real tools on a mount and on the same tree as plain files: the same output."""

import mmap
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from libraryfs.ingest.importer import import_source
from libraryfs.store.snapshot import Snapshot
from tests.mount.live import Live, sh

FILES = {
    "README.md": b"# Start\n\nneedle in the first file\n",
    "empty": b"",
    "no newline": b"the last line has no end, needle",
    "deep/er/than/that/leaf.txt": b"needle\n" * 50,
    "deep/other.md": b"---\ntitle: kept as it is\n---\nbody\n",
    "data.bin": bytes(range(256)) * 40,
    "page": b"p" * 4096,
    "page-and-one": b"q" * 4097,
    "chunk": b"c" * (128 * 1024),
    "chunk-and-one": b"d" * (128 * 1024) + b"\n",
    "large.log": b"".join(b"line %07d of a larger file\n" % number for number in range(40_000)),
    "crlf.txt": b"one\r\ntwo\r\n",
    "-dash": b"needle after a dash\n",
    ".hidden": b"needle in a hidden file\n",
    "sp ace/ta\tb.txt": b"spaces\n",
    "new\nline.txt": b"a new line in its name\n",
    "日本/語.md": "needle 日本語\n".encode(),
    "émoji-🦊.txt": "🦊 needle\n".encode(),
    "image.png": b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x02\x00\x00\x00",
    "script.sh": b"#!/bin/sh\necho needle\n",
    "page.html": b"<!DOCTYPE html><html><body>needle</body></html>\n",
}
EACH = "find . -type f -print0 | sort -z | xargs -0"
COMMANDS = [
    "ls -1AR",
    "ls -A --format=single-column --sort=size",
    f"{EACH} cat | sha256sum",
    f"{EACH} -n1 cat -A | sha256sum",
    f"{EACH} wc",
    f"{EACH} head -c 99 | sha256sum",
    f"{EACH} tail -n 3 | sha256sum",
    f"{EACH} tail -c 5000 | sha256sum",
    f"{EACH} stat -c '%n %s %Y %F'",
    f"{EACH} du --apparent-size -B1",
    f"{EACH} sha256sum",
    f"{EACH} file",
    "find . -printf '%y %P\\n' | sort",
    "find . -type f -size +4k -printf '%f %s\\n' | sort",
    "find . -empty -type f; find . -name '*.md' | sort; find . -newermt 2001-01-01 -type f | wc -l",
    "find . -type f -exec cat {} + | wc -c",
    "grep -rn needle . | sort",
    "grep -rlZ needle . | sort -z | tr '\\0' '\\n'",
    "grep -rc needle . | sort",
    "rg --no-config -n --hidden --sort path needle",
    "rg --no-config --files -uuu --sort path",
    "busybox find . -type f -print0 | sort -z | busybox xargs -0 busybox md5sum",
    "busybox grep -r needle . | sort",
    f"{EACH} busybox cat | busybox sha1sum",
    "busybox ls -1AR",
    "find . -type f -print0 | sort -z | tar --null -T - --mode=644 --owner=0 --group=0 -cf - | sha256sum",
    "busybox tar cf - README.md deep/er | tar tf - | grep -v /$ | sort",
    "git grep --no-index -n needle -- . | sort",
    f"{EACH} git hash-object",
    "vim.tiny -u NONE -R -es -c '%print' -c 'qa!' deep/er/than/that/leaf.txt",
    "diff -r . . && echo same",
    "cmp chunk chunk-and-one; od -A d -t x1 data.bin | tail -5; dd if=large.log bs=1000 skip=333 count=2 status=none",
    "sort large.log | tail -1; awk 'END { print NR }' large.log; sed -n 20000p large.log; xxd data.bin | head -3",
    "cp README.md /dev/stdout; cat < page | wc -c; cat -- -dash",
]


class Trees(NamedTuple):
    """The same files twice."""

    plain: Path
    mount: Path
    live: Live


@pytest.fixture(scope="module")
def trees(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trees]:
    """The files in a plain folder, and in the workspace of a mounted ring."""
    work = tmp_path_factory.mktemp("tools")
    plain = work / "source" / "workspace"
    for name, data in FILES.items():
        (plain / name).parent.mkdir(parents=True, exist_ok=True)
        (plain / name).write_bytes(data)
        os.utime(plain / name, ns=(0, 1_600_000_000_123_456_789 + len(data) * 1_000_000_000))
    with Snapshot.open(work / "library.db", create=True) as snapshot:
        import_source(snapshot, work / "source", "/ring/tools", "me", options={"hidden": True})
    with Live(work / "library.db", work / "mount") as live:
        yield Trees(plain, work / "mount" / "ring" / "tools" / "workspace", live)


@pytest.mark.parametrize("command", COMMANDS)
def test_same_output(trees: Trees, command: str) -> None:
    """Each command prints on the mount what it prints on plain files."""
    expected = sh(command, trees.plain, check=False)
    assert expected, "the command must show something"
    assert sh(command, trees.mount, check=False) == expected


@pytest.mark.parametrize(
    "command",
    [
        "cp -a . {out}",
        "cp -r . {out}",
        "busybox cp -r . {out}",
        "rsync -a ./ {out}/",
        "rsync -a --checksum --no-whole-file ./ {out}/",
        "mkdir {out} && tar cf - . | tar xf - -C {out}",
    ],
)
def test_copies(trees: Trees, command: str, tmp_path: Path) -> None:
    """A copy of the mount is the plain tree, to the byte and, where the tool keeps it, to the time."""
    out = tmp_path / "out"
    sh(command.format(out=out), trees.mount)
    assert sh(f"diff -r {out} {trees.plain} && echo same", tmp_path) == "same\n"
    if command.startswith(("cp -a", "rsync")):
        times = "find . -type f -printf '%P %T@\\n' | sort"
        assert sh(times, out) == sh(times, trees.plain)


def test_rsync_finds_nothing_to_do(trees: Trees) -> None:
    """Sizes and times are the source's, so that rsync between both does nothing."""
    assert sh(f"rsync -rtn --itemize-changes ./ {trees.plain}/ | grep -v '^.d'", trees.mount, check=False) == ""


def test_python(trees: Trees, tmp_path: Path) -> None:
    """os.walk, pathlib, copytree, and mmap."""
    for name, data in FILES.items():
        assert (trees.mount / name).read_bytes() == data
    names = {
        os.path.relpath(os.path.join(top, file), trees.mount)
        for top, _, found in os.walk(trees.mount)
        for file in found
    }
    assert names == set(FILES)
    shutil.copytree(trees.mount, tmp_path / "copy")
    assert (tmp_path / "copy" / "large.log").read_bytes() == FILES["large.log"]
    with open(trees.mount / "large.log", "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        assert mapped[700_000:700_100] == FILES["large.log"][700_000:700_100]
        assert mapped.find(b"line 0039999") > 0


def test_size_is_what_cat_gives(trees: Trees) -> None:
    """No file whose stat says another size than its bytes have; blocks are filled, links are one."""
    for name, data in FILES.items():
        status = os.stat(trees.mount / name)
        assert status.st_size == len(data)
        assert status.st_blocks * 512 >= status.st_size
        assert status.st_nlink == 1
        assert (status.st_uid, status.st_gid, status.st_mode & 0o7777) == (os.geteuid(), os.getegid(), 0o444)


def test_statfs(trees: Trees) -> None:
    """The longest name, and no counts of anything."""
    status = os.statvfs(trees.mount)
    assert status.f_namemax == 255
    assert (status.f_blocks, status.f_files, status.f_bfree, status.f_ffree) == (0, 0, 0, 0)


def test_side_by_side(trees: Trees) -> None:
    """Sixteen greps at once all give the right answer."""
    script = "for n in $(seq 16); do grep -rc needle . | sort | sha256sum & done; wait"
    lines = sh(script, trees.mount).splitlines()
    assert len(lines) == 16
    assert len(set(lines)) == 1
