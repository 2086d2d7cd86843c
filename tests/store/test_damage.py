"""A damaged snapshot never gives wrong bytes: an error, or what was stored."""

import random
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from libraryfs.errors import LibraryError, SnapshotDamaged
from libraryfs.library.resolver import Library
from libraryfs.nodes import Entry
from libraryfs.rows import ArtifactRow
from libraryfs.store import artifacts, bodies
from libraryfs.store.bodies import CHUNK
from libraryfs.store.check import check
from libraryfs.store.snapshot import NEEDED, Snapshot
from tests.store.build import Builder

LARGE = random.Random(1).randbytes(3 * CHUNK + 1000)


def fill(build: Builder) -> dict[str, bytes]:
    """A few rows of each kind, in two rings of which one is hidden; library path → content."""
    ring = build.namespace("/ring/dev", "me")
    build.namespace("/ring/secret", "other")
    expected = {}
    for number in range(12):
        content = f"skill {number}\n" * (number * 20 + 1)
        build.memory("/ring/dev", f"m{number}", title=f"M {number}", content=content)
        build.memory("/ring/secret", f"m{number}", title=f"M {number}", content=f"secret {number}\n" * 20)
        expected[f"/ring/dev/skills/m-{number}.md"] = content.encode()
    build.item("/ring/dev", "w", name="item", content="item\n")
    build.item("/ring/dev", "e", name="empty")
    build.artifact("/ring/dev", "a", "folder/file", content="artifact\n")
    expected |= {"/ring/dev/workspace/item": b"item\n", "/ring/dev/workspace/empty": b""}
    expected["/ring/dev/artifacts/folder/file"] = b"artifact\n"
    with build.snapshot.transaction() as db:
        row = ArtifactRow(namespace="/ring/dev", id="big", filename="big", content="")
        artifacts.upsert(db, ring, row, bodies.of_bytes(LARGE), None, build.now)
    expected["/ring/dev/artifacts/big"] = LARGE
    return expected


def walk(library: Library, folder: Entry, path: str = "") -> Iterator[tuple[str, Entry]]:
    """Every file that listings show; what cannot be listed is left out."""
    try:
        found = library.children(folder)
    except (LibraryError, apsw.Error):
        return
    for child in found:
        below = f"{path}/{child.name.decode('utf-8', 'replace')}"
        if child.is_folder and below.count("/") < 8:
            yield from walk(library, child, below)
        else:
            yield below, child


def wrong_reads(path: Path, expected: dict[str, bytes]) -> list[str]:
    """Paths that gave other bytes than were stored, by name and through listings, and no error."""
    wrong = []
    try:
        snapshot = Snapshot.open(path)
    except (LibraryError, apsw.Error, UnicodeDecodeError):
        return []
    with snapshot:
        library = Library(snapshot, "me")
        for name, content in expected.items():
            try:
                if library.content(library.resolve(name)) != content:
                    wrong.append(name)
            except (LibraryError, apsw.Error, UnicodeDecodeError):
                continue
        stored = set(expected.values())
        try:
            files = list(walk(library, library.resolve("/")))
        except (LibraryError, apsw.Error):
            files = []
        for name, entry in files:
            try:
                if library.content(entry) not in stored:
                    wrong.append(f"listed: {name}")
            except (LibraryError, apsw.Error, UnicodeDecodeError):
                continue
    return wrong


def flip(path: Path, expected: dict[str, bytes], times: int, seed: int) -> None:
    """One bit of one byte at a time."""
    whole = bytearray(path.read_bytes())
    chance = random.Random(seed)
    seen = 0
    with path.open("r+b", buffering=0) as file:
        for _ in range(times):
            at, bit = chance.randrange(len(whole)), 1 << chance.randrange(8)
            file.seek(at)
            file.write(bytes([whole[at] ^ bit]))
            assert wrong_reads(path, expected) == [], f"byte {at}, bit {bit}"
            seen += 1
            file.seek(at)
            file.write(whole[at : at + 1])
    assert wrong_reads(path, expected) == []
    assert seen == times


@pytest.fixture
def closed(tmp_path: Path) -> tuple[Path, dict[str, bytes]]:
    """A snapshot that nobody has open, its journal played in."""
    build = Builder(tmp_path / "library.db")
    expected = fill(build)
    build.snapshot.close()
    assert wrong_reads(build.path, expected) == []
    return build.path, expected


def test_a_flipped_bit_never_gives_wrong_bytes(closed: tuple[Path, dict[str, bytes]]) -> None:
    flip(*closed, times=60, seed=1)


@pytest.mark.slow
def test_a_thousand_flipped_bits(closed: tuple[Path, dict[str, bytes]]) -> None:
    flip(*closed, times=1000, seed=2)


def test_a_truncated_file(closed: tuple[Path, dict[str, bytes]]) -> None:
    path, expected = closed
    whole = path.read_bytes()
    for length in range(len(whole) - 4096, 0, -4096 * 7):
        path.write_bytes(whole[:length])
        assert wrong_reads(path, expected) == [], length


FAULTS = {
    "missing": "DELETE FROM bodies",
    "text": "UPDATE bodies SET data = 'text'",
    "a number": "UPDATE bodies SET data = 7",
    "short": "UPDATE bodies SET data = substr(data, 2) WHERE length(data) > 1",
    "long": "UPDATE bodies SET data = CAST(data || 'x' AS BLOB)",
    "another": "UPDATE bodies SET data = CAST(upper(data) AS BLOB)",
    "of another file": "UPDATE bodies SET data = (SELECT data FROM bodies b WHERE b.ino <> bodies.ino LIMIT 1)",
    "a size too small": "UPDATE entries SET size = size - 1 WHERE kind >= 5",
    "a size of nothing": "UPDATE entries SET size = 0 WHERE kind >= 5",
    "a size of more than there is": "UPDATE entries SET size = 1 << 40 WHERE kind >= 5",
    "a size below 0": "UPDATE entries SET size = -1 WHERE kind >= 5",
    "a size of words": "UPDATE entries SET size = 'many' WHERE kind >= 5",
    "no digest": "UPDATE entries SET digest = NULL WHERE kind >= 5",
    "another digest": "UPDATE entries SET digest = zeroblob(16) WHERE kind >= 5",
    "a digest of another length": "UPDATE entries SET digest = x'00' WHERE kind >= 5",
    "nobody's": "UPDATE entries SET namespace_id = NULL",
    "no kind": "UPDATE entries SET kind = 'file' WHERE kind >= 5",
    "an unknown kind": "UPDATE entries SET kind = 99 WHERE kind >= 5",
    "a time of words": "UPDATE entries SET mtime_ns = 'noon' WHERE kind >= 5",
    "chunks missing": "DELETE FROM chunks WHERE seq = 1",
    "chunks in another order": "UPDATE chunks SET seq = CASE seq WHEN 0 THEN 9 WHEN 9 THEN 0 ELSE seq END",
    "chunks of text": "UPDATE chunks SET data = CAST('text' AS TEXT)",
    "chunks of another sum": "UPDATE chunks SET data = zeroblob(length(data))",
    "a chunk too many": "INSERT INTO chunks (ino, seq, data) SELECT ino, max(seq) + 1, x'00' FROM chunks GROUP BY ino",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_content_that_is_not_what_was_stored(build: Builder, fault: str) -> None:
    expected = fill(build)
    del expected["/ring/dev/workspace/empty"]
    with build.snapshot.transaction() as db:
        db.execute(FAULTS[fault])
    large = ["/ring/dev/artifacts/big"]
    named = large if "chunk" in fault else [name for name in expected if name not in large]
    with Snapshot.open(build.path) as snapshot:
        library = Library(snapshot, "me")
        for name in named:
            with pytest.raises(SnapshotDamaged, match="damaged"):
                library.content(library.resolve(name))
    build.db.execute("DELETE FROM entries WHERE kind >= 5")


def test_damage_of_a_part_is_met_by_who_reads_that_part(build: Builder) -> None:
    """The other chunks of a large file are read as ever, in any range."""
    fill(build)
    with build.snapshot.transaction() as db:
        db.execute("UPDATE chunks SET data = zeroblob(length(data)) WHERE seq = 2")
    with Snapshot.open(build.path) as snapshot:
        library = Library(snapshot, "me")
        entry = library.resolve("/ring/dev/artifacts/big")
        assert library.read(entry, 100, 2 * CHUNK - 100) == LARGE[100 : 2 * CHUNK]
        buffer = bytearray(CHUNK)
        assert library.read_into(entry, CHUNK // 2, buffer) == CHUNK
        assert buffer == LARGE[CHUNK // 2 : CHUNK // 2 + CHUNK]
        for offset, size in ((2 * CHUNK + 5, 1), (2 * CHUNK - 1, 2), (CHUNK, 3 * CHUNK)):
            with pytest.raises(SnapshotDamaged):
                library.read(entry, offset, size)
            with pytest.raises(SnapshotDamaged):
                library.read_into(entry, offset, bytearray(size))


def test_an_earlier_snapshot_has_no_sums(build: Builder) -> None:
    """It is read as it is, and gets them when it is opened for writing; what is damaged gets none."""
    expected = fill(build)
    build.db.execute("DROP TABLE chunk_sums; DELETE FROM settings WHERE key = 'schema'")
    build.snapshot.close()
    assert wrong_reads(build.path, expected) == []
    with Snapshot.open(build.path) as snapshot:
        library = Library(snapshot, "me")
        entry = library.resolve("/ring/dev/artifacts/big")
        assert not library.has_sums(entry)
        library.check_content(entry)
    with Snapshot.open(build.path, write=True) as build.snapshot:
        library = Library(build.snapshot, "me")
        assert library.has_sums(library.resolve("/ring/dev/artifacts/big"))
        build.db.execute("UPDATE chunks SET data = zeroblob(length(data)) WHERE seq = 2")
        build.db.execute("DROP TABLE chunk_sums; DELETE FROM settings WHERE key = 'schema'")
    with Snapshot.open(build.path, write=True) as build.snapshot:
        library = Library(build.snapshot, "me")
        entry = library.resolve("/ring/dev/artifacts/big")
        assert not library.has_sums(entry)
        with pytest.raises(SnapshotDamaged):
            library.check_content(entry)


def test_a_reader_sees_the_change_and_no_damage(build: Builder) -> None:
    """An entry that was read before a commit: its content is what is stored now."""
    fill(build)
    with Snapshot.open(build.path) as snapshot:
        library = Library(snapshot, "me")
        entry = library.resolve("/ring/dev/skills/m-1.md")
        build.memory("/ring/dev", "m1", title="M 1", content="changed, and longer than it was\n" * 30)
        assert library.content(entry) == (b"changed, and longer than it was\n" * 30)[: entry.size]


ENDLESS = "WITH RECURSIVE e (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM e)"


@pytest.mark.parametrize(
    "view",
    [
        f"CREATE VIEW entries AS {ENDLESS} SELECT n AS ino, 1 AS parent, x'61' AS name FROM e",
        "CREATE VIRTUAL TABLE entries USING fts5 (ino, parent, name)",
    ],
)
def test_a_table_that_is_none(build: Builder, view: str) -> None:
    """Refused at once."""
    build.db.execute("DROP TABLE entries")
    build.db.execute(view)
    for write in (False, True):
        with pytest.raises(SnapshotDamaged, match="entries is not a table"):
            Snapshot.open(build.path, write=write)


@pytest.mark.parametrize("table", sorted(NEEDED))
def test_a_table_that_is_gone(build: Builder, table: str) -> None:
    """Named, and no bug."""
    build.db.execute(f"ALTER TABLE {table} RENAME TO elsewhere")
    for write in (False, True):
        with pytest.raises(SnapshotDamaged, match=f"no table {table}"):
            Snapshot.open(build.path, write=write)


def test_grants_of_no_number(build: Builder) -> None:
    """Give nothing."""
    fill(build)
    build.db.execute(
        "PRAGMA foreign_keys = off; INSERT INTO grants VALUES ('me', 'text'), ('me', 99999), ('me', x'02')"
    )
    with Snapshot.open(build.path) as snapshot:
        library = Library(snapshot, "me")
        assert [entry.name for entry in library.children(library.resolve("/ring"))] == [b"dev"]
        assert sorted(library.visible()) == [1, 99999]


def test_a_statement_has_an_end(build: Builder) -> None:
    """Whatever it reads; the next one starts anew."""
    with Snapshot.open(build.path) as snapshot:
        snapshot.most_steps = 3_000_000
        for _ in range(2):
            with pytest.raises(apsw.InterruptError):
                snapshot.db.execute(f"{ENDLESS} SELECT count(*) FROM e").fetchall()
            assert snapshot.db.execute("SELECT count(*) FROM entries").get == 3


def kinds(build: Builder, *, fast: bool = False) -> set[str]:
    """What a check of the snapshot finds."""
    with Snapshot.open(build.path) as snapshot:
        return {problem.kind for problem in check(snapshot.db, fast=fast)}


@pytest.mark.parametrize("fault", FAULTS)
def test_check_finds_it(build: Builder, fault: str) -> None:
    fill(build)
    assert kinds(build) == set()
    with build.snapshot.transaction() as db:
        db.execute(FAULTS[fault])
    assert kinds(build) & {"damaged_row", "damaged_content"}


def test_a_fast_check_reads_no_content(build: Builder) -> None:
    fill(build)
    with build.snapshot.transaction() as db:
        db.execute("UPDATE bodies SET data = CAST(upper(data) AS BLOB)")
    assert kinds(build, fast=True) == set()
    assert kinds(build) == {"damaged_content"}


ROWS = {
    "metadata": "UPDATE memories SET metadata = 'no JSON' WHERE id = 'm3'",
    "a title": "UPDATE memories SET title = 'text' WHERE id = 'm3'",
    "a time": "UPDATE memories SET created_ns = 'noon' WHERE id = 'm3'",
    "text that is none": "UPDATE memories SET memory_type = CAST(x'ff80' AS TEXT) WHERE id = 'm3'",
    "an item": "UPDATE items SET metadata = '[]' WHERE id = 'w'",
    "an artifact": "UPDATE artifacts SET filename = 7 WHERE id = 'a'",
    "a name": "UPDATE entries SET name = x'2e2e' WHERE ino = (SELECT ino FROM memories WHERE id = 'm3')",
    "no row": "DELETE FROM memories WHERE id = 'm3'",
    "no entry": "DROP TRIGGER entry_removed; DELETE FROM entries WHERE ino = (SELECT ino FROM items WHERE id = 'w')",
}


@pytest.mark.parametrize("fault", ROWS)
def test_check_finds_rows_that_are_none(build: Builder, fault: str) -> None:
    fill(build)
    with build.snapshot.transaction() as db:
        db.execute(ROWS[fault])
    for fast in (False, True):
        assert "damaged_row" in kinds(build, fast=fast)
