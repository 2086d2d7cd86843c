"""One file of a source, read once before it is stored: its text, what its front matter says, its title."""

import os
from pathlib import Path
from typing import Final, NamedTuple

from libraryfs.ingest import files
from libraryfs.ingest.front_matter import NOTHING, Reading, Remark
from libraryfs.ingest.front_matter import read as read_front_matter
from libraryfs.ingest.heading import first_heading
from libraryfs.ingest.layout import MARKDOWN, is_document
from libraryfs.ingest.walk import Stat
from libraryfs.store import charset
from libraryfs.store.names import from_bytes

LOOKED_AT: Final = 4 * 1024 * 1024
"""Bytes of a file that are read for its front matter, its links and its secrets; the rest is only stored."""
_SNIFFED: Final = 8 * 1024


class Document(NamedTuple):
    """What is known of a file before it is stored. `text` is None where it is none that can be read."""

    path: str
    stat: Stat
    text: str | None
    encoding: str
    reading: Reading

    @property
    def title(self) -> str:
        """Of the front matter, else the first heading, else the file's stem; of what is no document, its name."""
        suffix = os.path.splitext(self.path)[1].lower()
        folder, _, name = self.path.rpartition("/")
        if self.reading.front.title:
            return self.reading.front.title
        if not is_document(self.path):
            return from_bytes(os.fsencode(name))
        stem = os.path.splitext(name)[0]
        if stem.lower() == "skill":  # it is called by its skill's name, or by that of its folder
            given = self.reading.front.metadata.get("name")
            if isinstance(given, str) and given.strip():
                return given.strip()
            stem = folder.rpartition("/")[2] or stem
        elif self.text and (heading := first_heading(self.text, self.reading.end, suffix)):
            return heading
        return from_bytes(os.fsencode(stem))


def read(root: Path, path: str, stat: Stat) -> Document:
    """Reads a file's head. Raises InvalidSource when it cannot be read, Moved when it went away."""
    data = files.read_head(root, path, min(stat.size, _SNIFFED))
    decoded = charset.decode(data[: _whole(data, stat.size)]) if data else charset.Decoded("", charset.UTF8)
    if decoded is None and b"\0" in data:
        return Document(path, stat, None, "", NOTHING)
    if stat.size > len(data):
        data = files.read_head(root, path, min(stat.size, LOOKED_AT))
        decoded = charset.decode(data[: _whole(data, stat.size)])
    if decoded is None:
        return Document(path, stat, None, "", NOTHING)
    reading = NOTHING
    if os.path.splitext(path)[1].lower() in MARKDOWN:
        reading = read_front_matter(decoded.text)
        if decoded.encoding != charset.UTF8 and reading.end and not decoded.encoding.startswith("utf"):
            remark = Remark(1, f"front matter is not UTF-8; read as {decoded.encoding}")
            reading = reading._replace(remarks=(remark, *reading.remarks))
    return Document(path, stat, decoded.text, decoded.encoding, reading)


def _whole(data: bytes, size: int) -> int:
    """Where to cut a head so that no character of a few bytes is cut through: after its last new line."""
    return len(data) if len(data) == size else data.rfind(b"\n") + 1 or len(data)
