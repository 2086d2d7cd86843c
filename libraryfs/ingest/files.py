"""Reading the files of a source, and naming them in messages."""

import os
import stat
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path

from libraryfs.errors import InvalidSource
from libraryfs.ingest.walk import Stat
from libraryfs.paths import shown
from libraryfs.store.bodies import CHUNK, Body, of_bytes


class Moved(InvalidSource):
    """A file that is not as it was when it was first read."""


def read_head(root: Path, path: str, size: int) -> bytes:
    """The first `size` bytes of a file. Raises InvalidSource."""
    fd = open_file(root, path)
    try:
        pieces = []
        while size > 0 and (piece := os.read(fd, size)):
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)
    except OSError as error:
        raise unreadable(root / path, error) from None
    finally:
        os.close(fd)


def read_body(root: Path, path: str, known: Stat) -> Body:
    """A file's content. A large one is read in pieces: once for its digest here, once to store it.

    Raises Moved when the file is not as `known` says any more, InvalidSource when it cannot be read.
    """

    def pieces() -> Iterator[bytes]:
        fd = open_file(root, path)
        try:
            status, left = os.fstat(fd), known.size
            if Stat(status.st_size, status.st_mtime_ns, status.st_ino) != known:
                raise Moved(f"{show(root / path)}: changed during the import")
            # never more than there is: a large buffer for each small file costs more than all else here
            while left and (piece := os.read(fd, min(CHUNK, left))):
                left -= len(piece)
                yield piece
        except OSError as error:
            raise unreadable(root / path, error) from None
        finally:
            os.close(fd)

    if known.size <= CHUNK:
        return of_bytes(b"".join(pieces()))
    state = blake2b(digest_size=16)
    for piece in pieces():
        state.update(piece)
    return Body(known.size, state.digest(), pieces)


def open_file(root: Path, path: str) -> int:
    """A descriptor of a regular file below `root`. Never waits (a FIFO put there since the walk is refused)."""
    try:
        fd = os.open(f"{root}/{path}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        raise Moved(f"{show(root / path)}: went away during the import") from None
    except OSError as error:
        raise unreadable(root / path, error) from None
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise Moved(f"{show(root / path)}: is no longer a regular file")
    return fd


def unreadable(path: Path | str, error: OSError) -> InvalidSource:
    """The error for a file or folder of the source that cannot be read."""
    return InvalidSource(f"{show(path)}: cannot be read: {error.strerror}")


def show(path: Path | str) -> str:
    """A path for a message: one line, whatever its bytes are."""
    text = str(path)
    if text.isprintable():  # so it holds no surrogates either
        return text
    text = os.fsencode(path).decode("utf-8", "backslashreplace")
    return shown(text)
