"""The bytes of files: whole up to 128 KiB, in chunks of 128 KiB above, so that any range costs only its own chunks."""

from collections.abc import Callable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn

import apsw
from xxhash import xxh3_128_digest

from libraryfs.errors import SnapshotDamaged
from libraryfs.nodes import Entry
from libraryfs.store import checked, names

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


_OF_NOTHING: Final = digest(b"")


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
            _insert_sum(db, db.last_insert_rowid(), piece)
            written += len(piece)
    if written != body.size:
        raise ValueError(f"the content changed while it was read: {body.size} bytes, then {written}")


def _insert_sum(db: apsw.Connection, pk: int, piece: bytes) -> None:
    db.execute("INSERT OR REPLACE INTO chunk_sums (pk, sum) VALUES (?, ?)", (pk, xxh3_128_digest(piece)))


def remove(db: apsw.Connection, ino: int) -> None:
    """Removes the content of `ino`."""
    db.execute("DELETE FROM bodies WHERE ino = ?", (ino,))
    db.execute("DELETE FROM chunk_sums WHERE pk IN (SELECT pk FROM chunks WHERE ino = ?)", (ino,))
    db.execute("DELETE FROM chunks WHERE ino = ?", (ino,))


def read(db: apsw.Connection, entry: Entry, offset: int, size: int) -> bytes:
    """Up to `size` bytes from `offset`; short or empty at the end. Raises SnapshotDamaged: missing, short, or changed.

    A small body is compared with its digest, a large one's chunks each with its sum.
    """
    size = min(size, entry.size - offset)
    if size <= 0:
        check_empty(entry)
        return b""
    if entry.size <= CHUNK:
        row = db.execute("SELECT data FROM bodies WHERE ino = ?", (entry.ino,)).fetchone()
        data = _whole(entry, row[0] if row else None)
        return data if offset == 0 and size == len(data) else data[offset : offset + size]
    first, last = offset // CHUNK, (offset + size - 1) // CHUNK
    pieces = []
    for seq, (pk, checksum) in enumerate(_chunks(db, entry, first, last), first):
        piece = db.execute("SELECT data FROM chunks WHERE pk = ?", (pk,)).get
        if type(piece) is not bytes or len(piece) != _length(entry, seq):
            _damaged(entry)
        _check_sum(entry, piece, checksum)
        pieces.append(piece)
    data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
    start = offset - first * CHUNK
    return data if start == 0 and size == len(data) else data[start : start + size]


def read_into(db: apsw.Connection, entry: Entry, offset: int, buffer: bytearray) -> int:
    """Fills `buffer` from `offset` of a file of more than CHUNK bytes; how many bytes there were. Raises as `read`.

    The same as `read` for large ranges, at two thirds of its cost: no row, no joining.
    """
    size = min(len(buffer), entry.size - offset)
    if size <= 0:
        return 0
    first, last = offset // CHUNK, (offset + size - 1) // CHUNK
    chunks = _chunks(db, entry, first, last)
    target, filled, start = memoryview(buffer), 0, offset - first * CHUNK
    blob = db.blob_open("main", "chunks", "data", chunks[0][0], False)
    try:
        for seq, (pk, checksum) in enumerate(chunks, first):
            if seq > first:
                blob.reopen(pk)
            whole = _length(entry, seq)
            if blob.length() != whole:
                _damaged(entry)
            length = min(whole - start, size - filled)
            if length == whole:
                blob.read_into(buffer, filled, length)
                _check_sum(entry, target[filled : filled + length], checksum)
            else:  # the sum is that of the whole chunk
                piece = blob.read()
                _check_sum(entry, piece, checksum)
                target[filled : filled + length] = piece[start : start + length]
            filled, start = filled + length, 0
    finally:
        blob.close()  # an open one would keep its view of the file
    return filled


def check_empty(entry: Entry) -> None:
    """Raises SnapshotDamaged for a file of size 0 that was not empty when it was stored: nothing of it is ever read."""
    if not entry.size and not entry.is_folder and entry.digest != _OF_NOTHING:
        _damaged(entry)


def following(db: apsw.Connection, entry: Entry, limit: int, max_bytes: int) -> list[tuple[Entry, bytes]]:
    """Up to `limit` small files that come after `entry` in its folder's listing order, with their content.

    The list ends with the file that brings it to `max_bytes`. What is damaged is left out.
    """
    rows = db.execute(
        "SELECT e.ino, e.parent, e.name, e.kind, e.namespace_id, e.size, e.mtime_ns, e.ctime_ns, e.digest, b.data"
        " FROM entries e JOIN bodies b ON b.ino = e.ino WHERE e.parent = ? AND e.ino > ? ORDER BY e.ino LIMIT ?",
        (entry.parent, entry.ino, limit),
    )
    found, total = [], 0
    for row in rows:
        try:
            one = checked.entry(row[:-1])
            data = _whole(one, row[-1])
        except SnapshotDamaged:
            continue
        found.append((one, data))
        total += len(data)
        if total >= max_bytes:
            break
    rows.close()
    return found


def is_summed(db: apsw.Connection, entry: Entry) -> bool:
    """Whether each chunk of a large file has its sum. Those that an earlier version stored have none."""
    missing = "SELECT 1 FROM chunks WHERE ino = ? AND pk NOT IN (SELECT pk FROM chunk_sums) LIMIT 1"
    return db.execute(missing, (entry.ino,)).fetchone() is None


def check_whole(db: apsw.Connection, entry: Entry) -> None:
    """Reads a file to its end and compares it with its digest. Raises SnapshotDamaged."""
    state = blake2b(digest_size=16)
    for offset in range(0, entry.size, CHUNK):
        state.update(read(db, entry, offset, CHUNK))
    if state.digest() != entry.digest:
        _damaged(entry)


def add_sums(db: apsw.Connection) -> None:
    """Gives the chunks of an earlier version their sums; not those of a file that is damaged already."""
    missing = "SELECT DISTINCT ino FROM chunks WHERE pk NOT IN (SELECT pk FROM chunk_sums)"
    for (ino,) in db.execute(missing).fetchall():
        row = db.execute(
            "SELECT ino, parent, name, kind, namespace_id, size, mtime_ns, ctime_ns, digest FROM entries WHERE ino = ?",
            (ino,),
        ).fetchone()
        try:
            check_whole(db, checked.entry(row)) if row else None
        except SnapshotDamaged:
            continue
        for pk, data in db.execute("SELECT pk, data FROM chunks WHERE ino = ?", (ino,)):
            _insert_sum(db, pk, data)


def _whole(entry: Entry, data: object) -> bytes:
    if type(data) is not bytes or len(data) != entry.size or digest(data) != entry.digest:
        _damaged(entry)
    return data


def _chunks(db: apsw.Connection, entry: Entry, first: int, last: int) -> list[tuple[int, bytes | None]]:
    """(pk, sum) of these chunks, which are all there; no chunk follows the file's last one."""
    rows: list[Any] = db.execute(
        "SELECT c.seq, c.pk, s.sum FROM chunks c LEFT JOIN chunk_sums s ON s.pk = c.pk"
        " WHERE c.ino = ? AND c.seq BETWEEN ? AND ? ORDER BY c.seq",
        (entry.ino, first, last + 1),
    ).fetchall()
    if rows and rows[-1][0] == last + 1 and last < (entry.size - 1) // CHUNK:
        rows.pop()  # fetched only to see that none follows the last one
    if len(rows) != last + 1 - first or any(row[0] != seq for seq, row in enumerate(rows, first)):
        _damaged(entry)
    return [(pk, checksum) for _, pk, checksum in rows]


def _length(entry: Entry, seq: int) -> int:
    return min(CHUNK, entry.size - seq * CHUNK)


def _check_sum(entry: Entry, piece: bytes | memoryview, checksum: bytes | None) -> None:
    if checksum is not None and xxh3_128_digest(piece) != checksum:
        _damaged(entry)


def _damaged(entry: Entry) -> NoReturn:
    checked.damaged(f"the content of entry {entry.ino} ({names.from_bytes(entry.name)!r}) is damaged or missing")
