"""The text of a file, as search sees it: its title and its content, or why it has none."""

from enum import IntEnum
from typing import Final, NamedTuple

import apsw

from libraryfs.nodes import Entry, Kind
from libraryfs.store import bodies, charset, entries, names

_BINARY_TYPES: Final = ("image/", "audio/", "video/", "font/", "application/pdf", "application/zip")
_SEARCHED: Final = {
    int(Kind.MEMORY): "SELECT title, NULL, id FROM memories WHERE ino = ?",
    int(Kind.ITEM): "SELECT name, media_type, id FROM items WHERE ino = ?",
    int(Kind.ARTIFACT): "SELECT filename, media_type, id FROM artifacts WHERE ino = ?",
}


class TextState(IntEnum):
    """Whether a file has text to search. The numbers are stored."""

    TEXT = 0
    BLANK = 1
    TOO_LONG = 2
    BINARY = 3


class Text(NamedTuple):
    """A file's text. Where `state` is not TEXT, `text` is empty.

    `text` has one U+FFFD for each byte of a memory that is in no coding; `size_of` gives its true byte lengths.
    Of a file in another coding than UTF-8, lengths are those of its text in UTF-8, as `passage` takes them.
    """

    entry: Entry
    title: str
    text: str
    state: TextState
    raw: str
    """The text with surrogate escapes in place of U+FFFD: `raw[:n]` encodes to the bytes before character n."""
    encoding: str = charset.UTF8
    """The coding that the file is in; empty where it should be text and is in none that is known."""

    def size_of(self, start: int, end: int) -> int:
        """Bytes in the file of the characters from `start` to `end`."""
        return len(self.raw[start:end].encode("utf-8", "surrogateescape"))


def load(db: apsw.Connection, ino: int, max_bytes: int) -> Text | None:
    """The text of a file; None when it is gone or not a file. Content over `max_bytes` is not read."""
    entry = entries.get(db, ino)
    if entry is None or entry.kind not in _SEARCHED:
        return None
    row = db.execute(_SEARCHED[entry.kind], (ino,)).fetchone()
    if row is None:
        return None
    title = printable(names.from_bytes(row[0]))
    if entry.size > max_bytes:
        return Text(entry, title, "", TextState.TOO_LONG, "")
    if entry.kind != Kind.MEMORY and is_binary_type(row[1]):
        return Text(entry, title, "", TextState.BINARY, "")
    data = bodies.read(db, entry, 0, entry.size)
    decoded = charset.decode(data)
    if decoded is None and (entry.kind != Kind.MEMORY or b"\0" in data):
        expected = b"\0" not in data or (row[1] or "").lower().startswith("text/")
        return Text(entry, title, "", TextState.BINARY, "", "" if expected else charset.UTF8)
    raw, encoding = decoded or (data.decode("utf-8", "surrogateescape"), charset.UTF8)
    text = printable(raw)
    if not text or text.isspace():
        return Text(entry, title, "", TextState.BLANK, "")
    return Text(entry, title, text, TextState.TEXT, raw, encoding)


def passage(db: apsw.Connection, entry: Entry, start: int, length: int) -> str:
    """A part of a file's text, by the byte offsets that `Text.size_of` counts."""
    return utf8(db, entry, start, length).decode("utf-8", "replace")


def utf8(db: apsw.Connection, entry: Entry, start: int, length: int) -> bytes:
    """A part of a file's text in UTF-8, whatever coding the file is in; of what is in none, its bytes."""
    if encoding(db, entry.ino) in ("", charset.UTF8):
        return bodies.read(db, entry, start, length)
    decoded = charset.decode(bodies.read(db, entry, 0, entry.size))
    return decoded.text.encode("utf-8", "surrogatepass")[start : start + length] if decoded else b""


def encoding(db: apsw.Connection, ino: int) -> str:
    """The coding of a file as its indexing found it; empty for one that should be text and is in none that is known."""
    try:
        row = db.execute("SELECT encoding FROM charsets WHERE ino = ?", (ino,)).fetchone()
    except apsw.SQLError:  # a snapshot of an older libraryfs, opened to read
        return charset.UTF8
    return str(row[0]) if row else charset.UTF8


def searched(db: apsw.Connection) -> list[int]:
    """The inode numbers of all files."""
    return [ino for (ino,) in db.execute("SELECT ino FROM entries WHERE kind >= 5 ORDER BY ino")]


def title(db: apsw.Connection, entry: Entry) -> str:
    """The title of a memory, the name of an item, the filename of an artifact."""
    row = db.execute(_SEARCHED[entry.kind], (entry.ino,)).fetchone()
    return printable(names.from_bytes(row[0])) if row else ""


def row_id(db: apsw.Connection, entry: Entry) -> str:
    """The id that a file's row has in its store."""
    row = db.execute(_SEARCHED[entry.kind], (entry.ino,)).fetchone()
    return str(row[2]) if row else ""


def is_binary_type(media_type: str | None) -> bool:
    """Whether a media type says that content is not text; what it does not say, the bytes do."""
    kind = (media_type or "").lower()
    return kind.startswith(_BINARY_TYPES) and not kind.endswith(("+xml", "+json"))


def printable(text: str) -> str:
    """The text with U+FFFD, one for one, in place of the surrogates that no UTF-8 can hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in text)
    return text
