"""Reading large files: ranges in one buffer, and reading on in a thread where the disk is slow."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from libraryfs.library.resolver import Library
from libraryfs.mount.view import View
from libraryfs.mount.warming import Warming
from libraryfs.rows import ArtifactRow
from libraryfs.store import artifacts, bodies
from libraryfs.store.bodies import CHUNK
from tests.mount.live import until
from tests.store.build import Builder

DATA = b"".join(b"%07d\n" % number for number in range(5 * CHUNK // 8)) + b"tail"


@pytest.fixture(scope="module")
def large(module_build: Builder) -> Path:
    """A snapshot with one artifact of five chunks and a bit."""
    ring = module_build.namespace("/ring/big", "me")
    with module_build.snapshot.transaction() as db:
        row = ArtifactRow(namespace="/ring/big", id="big", filename="big", content="")
        artifacts.upsert(db, ring, row, bodies.of_bytes(DATA), None, module_build.now)
    return module_build.path


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(offset=st.integers(0, len(DATA) + 10), size=st.integers(0, 3 * CHUNK))
def test_any_range(module_build: Builder, large: Path, offset: int, size: int) -> None:
    """Into a buffer, and as bytes: what a slice gives."""
    library = Library(module_build.snapshot, "me")
    entry = library.resolve("/ring/big/artifacts/big")
    buffer = bytearray(size)
    count = library.read_into(entry, offset, buffer)
    assert buffer[:count] == DATA[offset : offset + size] == library.read(entry, offset, size)


def test_a_slow_stream_is_read_ahead(large: Path) -> None:
    """Only one that is in order, only where the READ took long, and never past the end."""
    view = View(large, "me")
    entry = view.library.resolve("/ring/big/artifacts/big")
    asked: list[tuple[int, int]] = []

    class Recorder(Warming):
        def _put(self, ino: int, offset: int, size: int) -> None:
            assert ino == entry.ino
            asked.append((offset, size))
            super()._put(ino, offset, size)

    warming = Recorder(view)
    warming.after_read(entry, 0, CHUNK, 1.0)
    assert asked == []  # one READ is no stream
    warming.after_read(entry, CHUNK, CHUNK, 1e-9)
    assert asked == []  # from memory
    warming.after_read(entry, 2 * CHUNK, CHUNK, 1.0)
    warming.after_read(entry, 3 * CHUNK, CHUNK, 1.0)
    assert asked == [(3 * CHUNK, 2 * CHUNK), (5 * CHUNK, 4)]
    warming.after_read(entry, 0, CHUNK, 1.0)
    assert len(asked) == 2  # from the start again: no stream yet
    until(lambda: warming.idle, 5)
    view.close()
