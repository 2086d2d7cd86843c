"""How often the kernel asks: what makes the mount quick, and steadier to assert than times."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from libraryfs.rows import MemoryRow
from libraryfs.store import access, bodies, memory, namespaces
from tests.mount.live import Live, drop_caches, sh
from tests.store.build import Builder

FILES = 3000


@pytest.fixture(scope="module")
def many(module_build: Builder, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A mount with many small files in one section."""
    db = module_build.db
    with module_build.snapshot.transaction():
        ring = namespaces.ensure(db, "/ring/many")
        access.grant(db, "me", ring)
        for number in range(FILES):
            row = MemoryRow(
                namespace="/ring/many",
                id=f"n{number}",
                memory_type="semantic",
                title=f"Note {number}",
                content=f"note {number}\n" * (number % 100 + 1),
            )
            memory.upsert(db, ring, row, bodies.of_bytes(row.data()), None, 1_700_000_000_000_000_000)
    with Live(module_build.path, tmp_path_factory.mktemp("requests") / "mount") as live:
        yield live


def section(live: Live) -> Path:
    """The folder of the many files."""
    return live.point / "ring" / "many" / "memories"


def cold(live: Live, walk: Callable[[], object]) -> dict[str, int]:
    """The requests of a walk that finds the kernel's caches empty.

    They are the whole machine's, and another process may drop them during the walk: many look-ups tell, and it is
    walked again.
    """
    for _ in range(4):
        drop_caches()
        with live.counting() as counted:
            walk()
        if counted.get("lookup", 0) <= 10:
            break
    return counted


def test_cold_grep_is_read_ahead(many: Live) -> None:
    """The kernel knows nothing: a few files are asked for, the others are there before they are."""
    counted = cold(many, lambda: sh("grep -rl 'note 2999$' .", section(many)))
    assert counted["read"] <= 20
    assert counted["lookup"] <= 10
    assert counted["open"] == FILES


def test_warm_grep_asks_for_nothing_but_opens(many: Live) -> None:
    """Once read, no READ, no LOOKUP and no GETATTR for any file; as `cold`, another process may drop what was read."""
    for _ in range(4):
        sh("grep -r zzz . || true", section(many))
        with many.counting() as counted:
            sh("grep -r zzz . || true", section(many))
        if not counted.get("read", 0) and counted.get("lookup", 0) <= 10:
            break
    assert counted.get("read", 0) == 0
    assert counted.get("flush", 0) == 0
    assert counted.get("lookup", 0) <= 10  # the control files' names are never cached; nothing here asks for one
    assert counted.get("getattr", 0) <= 10
    assert counted["open"] == FILES


def test_walks_are_read_ahead_too(many: Live) -> None:
    """tar, rsync's and Python's order of reading is the listing's order as well."""
    counted = cold(many, lambda: sh("tar cf - . | cat > /dev/null", section(many)))
    assert counted["read"] <= 20
    sizes = []
    counted = cold(many, lambda: sizes.append(sum(len(path.read_bytes()) for path in section(many).iterdir())))
    assert sizes[-1] == sum(len(f"note {number}\n" * (number % 100 + 1)) for number in range(FILES))
    assert counted["read"] <= 20


def test_reading_in_no_order_reads_each_file_once(many: Live) -> None:
    """Where the next file is no guess, nothing is pushed in vain, and nothing is read twice."""
    drop_caches()
    with many.counting() as counted:
        for number in range(0, FILES, 100):
            (section(many) / f"note-{number}.md").read_bytes()
            (section(many) / f"note-{number}.md").read_bytes()
    assert counted["read"] <= FILES // 100


@pytest.mark.parametrize("command", ["ls -l", "ls -la --color=always", "find . -type f", "du -s .", "stat -c %s *.md"])
def test_listings_ask_for_no_file(many: Live, command: str) -> None:
    """Names and attributes come with the listing, cold; no file is asked for by itself."""
    said = []
    counted = cold(many, lambda: said.append(sh(command, section(many))))
    assert said[-1]
    assert counted.get("getattr", 0) <= 20
    assert counted.get("getxattr", 0) <= 20
    assert counted.get("lookup", 0) <= 20
    assert counted.get("open", 0) == 0
    assert counted["readdir"] <= FILES / 20


def test_an_absent_name_is_asked_for_once(many: Live) -> None:
    """The kernel remembers that a name is not there."""
    for _ in range(2):
        assert not (section(many) / "no such file").exists()
    with many.counting() as counted:
        for _ in range(100):
            assert not (section(many) / "no such file").exists()
    assert counted.get("lookup", 0) == 0
