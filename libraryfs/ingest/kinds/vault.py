"""A vault of notes (Obsidian, Foam, Logseq, a Zettelkasten): each note a memory, each wiki link an edge."""

import os
import re
import stat
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from libraryfs.ingest.document import Document
from libraryfs.ingest.kind import TreeKind
from libraryfs.ingest.layout import Place, is_document
from libraryfs.ingest.links import Link

RELATED: Final = "related_to"

_SAMPLED, _SAMPLED_EACH, _SAMPLED_BYTES = 60, 5, 16 * 1024
_SHARE: Final = 0.3
_MARKS: Final = (".obsidian", ".foam", "logseq", ".logseq", ".zk", "dendron.yml", ".dendron")
_CODE: Final = re.compile(r"(?ms)^[ \t]*(```|~~~).*?^[ \t]*\1|`[^`\n]*`")
_WIKI: Final = re.compile(r"\[\[([^\[\]|#^\n]{1,300})(?:[#^][^\[\]|\n]*)?(?:\|[^\[\]\n]*)?\]\]")
_PLAIN: Final = re.compile(
    r"\]\(<?((?![a-z][a-z0-9+.-]*:|#)[^)\s>]{1,300}\.(?:md|markdown|org))(?:#[^)\s>]*)?>?\)", re.I
)


def _recognise(path: Path, names: frozenset[str]) -> str | None:
    mark = next((mark for mark in _MARKS if mark in names), None)
    if mark is not None or not names:
        return mark
    looked_at, linked = 0, 0
    for folder, folders, files in os.walk(path):
        folders[:] = [one for one in sorted(folders) if not one.startswith((".", "node_modules"))]
        for name in [one for one in sorted(files) if one.lower().endswith(".md")][:_SAMPLED_EACH]:
            looked_at += 1
            linked += _has_links(os.path.join(folder, name))
        if looked_at >= _SAMPLED:
            break
    return f"wiki links in {linked} of {looked_at} notes" if linked >= max(3, looked_at * _SHARE) else None


def _has_links(path: str) -> bool:
    """Whether a note has a wiki link. What cannot be read has none, and a FIFO or a link is not opened."""
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return False
        with open(path, encoding="utf-8", errors="replace") as file:
            return _WIKI.search(_CODE.sub(" ", file.read(_SAMPLED_BYTES))) is not None
    except OSError:
        return False


def _place(path: str, is_folder: bool) -> Place:
    return Place("memories" if is_folder or is_document(path) else "artifacts", path)


def _links(document: Document) -> list[Link]:
    if not document.text:
        return []
    text = _CODE.sub(" ", document.text)
    found = [Link(RELATED, match[1].strip()) for match in _WIKI.finditer(text)]
    found += [Link(RELATED, unquote(match[1])) for match in _PLAIN.finditer(text)]
    return list(dict.fromkeys(found))


KIND: Final = TreeKind("vault", "a vault of notes, linked as they are", _recognise, _place, links=_links)
