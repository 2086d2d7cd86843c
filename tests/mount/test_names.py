"""Names of every kind, and sizes of every kind, on a real mount."""

import errno
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from libraryfs.rows import ArtifactRow
from libraryfs.store import access, artifacts, bodies, memory, names, namespaces, workspace
from libraryfs.store.bodies import CHUNK, Body
from tests.mount.live import Live, sh, until
from tests.store.build import Builder

HARD = [
    "plain.txt",
    "ünïcode",
    "日本語",
    "العربية",
    "עברית",
    "ไทย",
    "हिन्दी",
    "한국어",
    "Ελληνικά",
    "кириллица",
    "ქართული",
    "🦊🦊.md",
    "👩‍👩‍👧‍👦",
    "e\u0301 and \u00e9",
    "\u202eright to left",
    " leading",
    "trailing ",
    ".hidden",
    "..three",
    "-dash",
    "--",
    "new\nline",
    "tab\tname",
    "a\\b",
    "quo'te\"s",
    "*?[x]",
    "$HOME",
    "`id`",
    "~",
    "%41",
    "x" * 255,
    "ü" * 127,
    "x" * 256,
    "日" * 200,
    "slash/inside",
    "//",
    ".",
    "..",
    "",
    "nul\0inside",
    ".ask",
    ".eval",
    ".tree",
    ".drilldown",
    "\udcff\udc80",
    "lone\ud800",
    "CON",
    "a:b",
    "~abcdefgh",
    "x~abcdefgh",
    "%2F",
    "\x01\x7f",
    "\u0085",
    "\ufeffbom",
]


@pytest.fixture(scope="module")
def live(module_build: Builder, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A mount of hard names in all three stores."""
    build = module_build
    build.namespace("/ring/hard", "me")
    for number, name in enumerate(HARD):
        build.item("/ring/hard", f"w{number}", name=name, content=f"item {number}\n")
        build.artifact("/ring/hard", f"a{number}", filename=name, content=f"artifact {number}\n")
        build.memory("/ring/hard", f"m{number}", title=name, content=f"memory {number}\n")
    for number in range(3):
        build.item("/ring/hard", f"same{number}", name="equal", content=f"equal {number}\n")
        build.memory("/ring/hard", f"same{number}", "decision", title="Equal", content=f"equal {number}\n")
    build.artifact("/ring/hard", "file-a", filename="both", content="the file\n")
    build.artifact("/ring/hard", "file-b", filename="both/below", content="below\n")
    parent = None
    for depth in range(60):
        build.item("/ring/hard", f"level{depth}", parent, name=f"level {depth}", folder=True)
        parent = f"level{depth}"
    build.item("/ring/hard", "bottom", parent, name="bottom.txt", content="sixty deep\n")
    with Live(build.path, tmp_path_factory.mktemp("names") / "mount") as live:
        yield live


@pytest.mark.parametrize(("section", "store"), [("workspace", workspace), ("artifacts", artifacts), ("skills", memory)])
def test_every_name_opens(live: Live, module_build: Builder, section: str, store: object) -> None:
    """Each row has one name in the listing, that name opens, and holds that row's bytes."""
    folder = os.fsencode(live.point / "ring/hard" / section)
    listed = set(os.listdir(folder))
    kind = {"workspace": "item", "artifacts": "artifact", "skills": "memory"}[section]
    for number, name in enumerate(HARD):
        entry = module_build.entry(store, "/ring/hard", f"{kind[0].replace('i', 'w')}{number}")
        path = folder
        if section == "artifacts" and "/" in name:
            path = os.fsencode(live.point) + names.to_bytes(_path(live, entry.ino))
            path = os.path.dirname(path)
        assert len(entry.name) <= 255
        assert b"/" not in entry.name
        if path == folder:
            assert entry.name in listed
        with open(os.path.join(path, entry.name), "rb") as file:
            assert file.read() == f"{kind} {number}\n".encode()
        assert os.stat(os.path.join(path, entry.name)).st_ino == entry.ino


def _path(live: Live, ino: int) -> str:
    from libraryfs.library.resolver import Library
    from libraryfs.store.snapshot import Snapshot

    with Snapshot.open(live.snapshot) as snapshot:
        library = Library(snapshot, "me")
        return library.path_of(library.entry(ino))


def test_the_true_name_is_an_attribute(live: Live, module_build: Builder) -> None:
    """However a name is shown, its own is in user.library.name."""
    for number, name in enumerate(HARD):
        entry = module_build.entry(workspace, "/ring/hard", f"w{number}")
        path = os.path.join(os.fsencode(live.point / "ring/hard/workspace"), entry.name)
        assert os.getxattr(path, "user.library.name") == names.to_bytes(name)
        assert os.getxattr(path, "user.library.id") == f"w{number}".encode()


def test_tools_on_hard_names(live: Live, tmp_path: Path) -> None:
    """Listing, walking, searching and copying meet no name that stops them."""
    ring = live.point / "ring/hard"
    count = int(sh("find . -type f -not -name .ask -not -name .eval -print0 | tr -cd '\\0' | wc -c", ring))
    assert count == 3 * len(HARD) + 3 + 3 + 2 + 1
    assert int(sh("grep -rlZ . . | tr -cd '\\0' | wc -c", ring)) == count
    assert int(sh("tar cf - . | tar tf - --quoting-style=escape | grep -vc '/$'", ring)) == count + 2  # .ask, .eval
    sh(f"cp -r . {tmp_path}/copy && diff -r . {tmp_path}/copy", ring)
    assert sh("ls -laR > /dev/null && rg --files -uuu -0 | tr -cd '\\0' | wc -c", ring).strip() == str(count + 2)


def test_a_file_beside_a_folder_of_its_name(live: Live) -> None:
    """Neither hides the other."""
    folder = live.point / "ring/hard/artifacts"
    texts = {path.read_text() for path in folder.rglob("*") if path.is_file() and "both" in str(path)}
    assert texts == {"the file\n", "below\n"}


def test_equal_names(live: Live) -> None:
    """Three items of one name, three decisions of one title: six files."""
    ring = live.point / "ring/hard"
    for folder, pattern in (("workspace", "equal*"), ("decisions", "equal*.md")):
        texts = {path.read_text() for path in (ring / folder).glob(pattern)}
        assert texts == {f"equal {number}\n" for number in range(3)}


def test_an_item_named_as_a_control_file(live: Live) -> None:
    """It is shown under another name; the control file keeps its own."""
    folder = live.point / "ring/hard/workspace"
    shown = [name for name in os.listdir(folder) if name.startswith("%2Etree~")]
    assert len(shown) == 1
    assert (folder / shown[0]).read_text() == f"item {HARD.index('.tree')}\n"
    assert (folder / ".tree").read_text().startswith("/ring/hard/workspace\n")


def test_sixty_folders_deep(live: Live) -> None:
    """The file at the bottom, by its whole path and by walking."""
    path = live.point / "ring/hard/workspace" / "/".join(f"level {depth}" for depth in range(60)) / "bottom.txt"
    assert path.read_text() == "sixty deep\n"
    assert sh("find . -name bottom.txt", live.point / "ring/hard/workspace").count("level") == 60
    assert (path.parent / ".tree").read_text().startswith("/ring/hard/workspace/level 0/")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.binary(min_size=1, max_size=300).filter(lambda raw: b"\0" not in raw and b"/" not in raw))
def test_looking_up_any_bytes(live: Live, name: bytes) -> None:
    """Any name at all: there, not there, or too long; never another error."""
    folder = os.fsencode(live.point / "ring/hard/workspace")
    try:
        os.stat(os.path.join(folder, name))
    except OSError as error:
        assert error.errno == (errno.ENAMETOOLONG if len(name) > 255 else errno.ENOENT)
    else:
        assert name in os.listdir(folder) or name in (b".", b"..", b".tree", b".drilldown")


SIZE = 300 * 1024 * 1024
BLOCK = 1 << 20


def block(number: int) -> bytes:
    """One MiB of the large artifact: its own bytes, made when they are needed."""
    return random.Random(number).randbytes(4096) * (BLOCK // 4096)


def large_body() -> Body:
    """300 MiB and 5 bytes."""

    def pieces() -> Iterator[bytes]:
        for number in range(SIZE // BLOCK):
            data = block(number)
            for start in range(0, BLOCK, CHUNK):
                yield data[start : start + CHUNK]
        yield b"tail\n"

    return Body(SIZE + 5, b"x" * 16, pieces)


@pytest.mark.slow
def test_large_artifact(build: Builder, tmp_path: Path) -> None:
    """Any range of it, in the kernel's memory only; a read near the end costs its own chunks."""
    ring = build.namespace("/ring/big", "me")
    with build.snapshot.transaction():
        row = ArtifactRow(namespace="/ring/big", id="big", filename="big.bin", content="")
        artifacts.upsert(build.db, ring, row, large_body(), None, build.now)
    with Live(build.path, tmp_path / "mount") as live:
        path = live.point / "ring/big/artifacts/big.bin"
        assert path.stat().st_size == SIZE + 5
        with path.open("rb", buffering=0) as file, live.counting() as counted:
            assert os.pread(file.fileno(), 100, SIZE) == b"tail\n"
            assert os.pread(file.fileno(), 100, SIZE + 5) == b""
            assert os.pread(file.fileno(), 100, SIZE * 2) == b""
            for number in (299, 0, 150, 7, 298):
                for offset in (0, 1, 4095, CHUNK - 1, CHUNK, BLOCK - 10):
                    data = os.pread(file.fileno(), 5000, number * BLOCK + offset)
                    following = block(number + 1) if number < 299 else b"tail\n"
                    assert data == (block(number) + following)[offset : offset + 5000]
        assert counted["read"] <= 60
        with path.open("rb") as file:
            for number in range(SIZE // BLOCK):
                assert file.read(BLOCK) == block(number)
            assert file.read() == b"tail\n"
        assert _resident(live.pid) < 100_000_000
        assert sh("tail -c 5 big.bin; head -c 10 big.bin | wc -c; stat -c %s big.bin", path.parent).startswith("tail\n")


def _resident(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.slow
def test_a_large_section(build: Builder, tmp_path: Path) -> None:
    """30,000 memories in one section: every one listed once and found, and memory flat over twenty walks."""
    from libraryfs.rows import MemoryRow

    count = 30_000
    with build.snapshot.transaction():
        ring = namespaces.ensure(build.db, "/ring/large")
        access.grant(build.db, "me", ring)
        for number in range(count):
            row = MemoryRow(
                namespace="/ring/large",
                id=f"n{number}",
                memory_type="skill",
                title=f"n {number}",
                content=f"{number}\n",
            )
            memory.upsert(build.db, ring, row, bodies.of_bytes(row.data()), None, build.now)
    with Live(build.path, tmp_path / "mount") as live:
        folder = live.point / "ring/large/skills"
        idle = _resident(live.pid)
        assert idle < 80_000_000
        assert sorted(os.listdir(folder)) == sorted(f"n-{number}.md" for number in range(count))
        assert (folder / f"n-{count - 1}.md").read_text() == f"{count - 1}\n"
        sizes = []
        for _ in range(20):
            assert sh("find . -type f | wc -l; grep -rc '^7$' . | grep -c ':1$'", folder).split() == [str(count), "1"]
            sizes.append(_resident(live.pid))
        assert max(sizes[2:]) <= 1.1 * sizes[1]
        assert max(sizes) < 100_000_000
    until(lambda: not live.process.is_alive(), 5)
