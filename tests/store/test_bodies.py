from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from libraryfs.nodes import Entry, Kind
from libraryfs.store import bodies
from libraryfs.store.bodies import CHUNK
from libraryfs.store.snapshot import Snapshot
from tests.store.build import Builder

SIZES = st.sampled_from([0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 3 * CHUNK + 7])


def entry(data: bytes) -> Entry:
    return Entry(99, 1, b"x", int(Kind.ARTIFACT), None, len(data), 0, 0, bodies.digest(data))


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    return Snapshot.open(tmp_path_factory.mktemp("bodies") / "library.db", create=True)


@settings(max_examples=60, deadline=None)
@given(size=SIZES, ranges=st.lists(st.tuples(st.integers(0, 4 * CHUNK), st.integers(0, 2 * CHUNK)), max_size=8))
def test_any_range_is_that_slice(stored: Snapshot, size: int, ranges: list[tuple[int, int]]) -> None:
    data = (bytes(range(251)) * (size // 251 + 1))[:size]
    bodies.write(stored.db, 99, bodies.of_bytes(data))
    for offset, length in [*ranges, (0, size), (max(size - 1, 0), 10)]:
        assert bodies.read(stored.db, entry(data), offset, length) == data[offset : offset + length]


def test_a_file_is_the_same_body_as_its_bytes(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"ab" * CHUNK)
    of_file, of_bytes = bodies.of_file(path), bodies.of_bytes(b"ab" * CHUNK)
    assert of_file[:2] == of_bytes[:2]
    assert list(of_file.pieces()) == list(of_bytes.pieces())


def test_a_file_that_changes_while_it_is_stored_is_noticed(tmp_path: Path, build: Builder) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"x" * 100)
    body = bodies.of_file(path)
    path.write_bytes(b"x" * 50)
    with pytest.raises(ValueError, match="changed while it was read"):
        bodies.write(build.db, 5, body)


def test_a_range_of_a_large_body_reads_its_own_chunks_only(build: Builder) -> None:
    bodies.write(build.db, 7, bodies.of_bytes(b"z" * (40 * CHUNK)))
    plan = build.db.execute(
        "EXPLAIN QUERY PLAN SELECT data FROM chunks WHERE ino = ? AND seq BETWEEN ? AND ? ORDER BY seq", (7, 38, 39)
    ).fetchall()
    assert any("ino=? AND seq>? AND seq<?" in str(row) for row in plan)
