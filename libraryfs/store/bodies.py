"""The bytes of files: whole up to 128 KiB, in chunks of 128 KiB above, so that any range costs only its own chunks."""

from collections.abc import Callable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Final, NamedTuple

import apsw

from libraryfs.nodes import Entry

CHUNK: Final = 128 * 1024


class Body(NamedTuple):
    """Content to store. `pieces()` gives it anew at each call, in pieces of CHUNK bytes, the last one shorter."""

    size: int
    digest: bytes
    pieces: Callable[[], Iterator[bytes]]


def of_bytes(data: bytes) -> Body:
    """A Body of bytes in memory."""

    def pieces() -> Iterator[bytes]:
        for start in range(0, len(data), CHUNK):
            yield data[start : start + CHUNK]

    return Body(len(data), digest(data), pieces)


def of_file(path: Path) -> Body:
    """A Body of a file, read once for its digest and once to store it, a chunk in memory at a time. Raises OSError."""

    def pieces() -> Iterator[bytes]:
        with path.open("rb") as file:
            while piece := file.read(CHUNK):
                yield piece

    size, state = 0, blake2b(digest_size=16)
    for piece in pieces():
        size += len(piece)
        state.update(piece)
    return Body(size, state.digest(), pieces)


def digest(data: bytes) -> bytes:
    """blake2b-128: how content is compared everywhere."""
    return blake2b(data, digest_size=16).digest()


def write(db: apsw.Connection, ino: int, body: Body) -> None:
    """Stores the content of `ino` over what it had. Raises as `insert`."""
    remove(db, ino)
    insert(db, ino, body)


def insert(db: apsw.Connection, ino: int, body: Body) -> None:
    """Stores the content of a new `ino`. Raises ValueError when the pieces no longer match the size."""
    written = 0
    if body.size <= CHUNK:
        data = b"".join(body.pieces())
        db.execute("INSERT INTO bodies (ino, data) VALUES (?, ?)", (ino, data))
        written = len(data)
    else:
        for seq, piece in enumerate(body.pieces()):
            db.execute("INSERT INTO chunks (ino, seq, data) VALUES (?, ?, ?)", (ino, seq, piece))
            written += len(piece)
    if written != body.size:
        raise ValueError(f"the content changed while it was read: {body.size} bytes, then {written}")


def remove(db: apsw.Connection, ino: int) -> None:
    """Removes the content of `ino`."""
    db.execute("DELETE FROM bodies WHERE ino = ?", (ino,))
    db.execute("DELETE FROM chunks WHERE ino = ?", (ino,))


def read(db: apsw.Connection, entry: Entry, offset: int, size: int) -> bytes:
    """Up to `size` bytes from `offset`; short or empty at the end."""
    size = min(size, entry.size - offset)
    if size <= 0:
        return b""
    if entry.size <= CHUNK:
        row = db.execute("SELECT data FROM bodies WHERE ino = ?", (entry.ino,)).fetchone()
        data: bytes = row[0] if row else b""
        return data if offset == 0 and size >= len(data) else data[offset : offset + size]
    first, last = offset // CHUNK, (offset + size - 1) // CHUNK
    rows = db.execute(
        "SELECT data FROM chunks WHERE ino = ? AND seq BETWEEN ? AND ? ORDER BY seq", (entry.ino, first, last)
    )
    pieces = [piece for (piece,) in rows]
    data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
    start = offset - first * CHUNK
    return data if start == 0 and size == len(data) else data[start : start + size]


def read_into(db: apsw.Connection, entry: Entry, offset: int, buffer: bytearray) -> int:
    """Fills `buffer` from `offset` of a file of more than CHUNK bytes; how many bytes there were.

    The same as `read` for large ranges, at two thirds of its cost: no row, no joining.
    """
    size = min(len(buffer), entry.size - offset)
    if size <= 0:
        return 0
    first, last = offset // CHUNK, (offset + size - 1) // CHUNK
    rows = db.execute(
        "SELECT pk FROM chunks WHERE ino = ? AND seq BETWEEN ? AND ? ORDER BY seq", (entry.ino, first, last)
    )
    keys: list[int] = [key for (key,) in rows]
    if not keys:
        return 0
    blob, filled, start = db.blob_open("main", "chunks", "data", keys[0], False), 0, offset - first * CHUNK
    try:
        for number, key in enumerate(keys):
            if number:
                blob.reopen(key)
            length = min(blob.length() - start, size - filled)
            blob.seek(start)
            blob.read_into(buffer, filled, length)
            filled, start = filled + length, 0
    finally:
        blob.close()  # an open one would keep its view of the file
    return filled


def following(db: apsw.Connection, entry: Entry, limit: int, max_bytes: int) -> list[tuple[Entry, bytes]]:
    """Up to `limit` small files that come after `entry` in its folder's listing order, with their content.

    The list ends with the file that brings it to `max_bytes`.
    """
    rows = db.execute(
        "SELECT e.ino, e.parent, e.name, e.kind, e.namespace_id, e.size, e.mtime_ns, e.ctime_ns, e.digest, b.data"
        " FROM entries e JOIN bodies b ON b.ino = e.ino WHERE e.parent = ? AND e.ino > ? ORDER BY e.ino LIMIT ?",
        (entry.parent, entry.ino, limit),
    )
    found, total = [], 0
    for row in rows:
        found.append((Entry._make(row[:-1]), row[-1]))
        total += len(row[-1])
        if total >= max_bytes:
            break
    rows.close()
    return found
