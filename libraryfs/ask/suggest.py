"""Questions that a library can answer: made from the titles and headings of its files, and tried."""

import re
from collections.abc import Iterator
from typing import Final

from libraryfs import errors
from libraryfs.ask.pipeline import Models, ask
from libraryfs.ask.request import AskRequest
from libraryfs.library.resolver import Library
from libraryfs.nodes import Entry, Kind

_HEADING: Final = re.compile(r"(?m)^#{1,3}[ \t]+(.{8,80}?)[ \t#]*$")
_QUESTION: Final = re.compile(r"(?i)(?:what|when|how|why|who|where|which|can|does|do|is|are)\b.*\?$")
_PLAIN: Final = re.compile(r"[\w][\w ,'’/-]*")
_HEAD: Final = 16 * 1024
_FOLDERS: Final = 200
_TRIED: Final = 12


def questions(library: Library, path: str, wanted: int = 3) -> list[str]:
    """Up to `wanted` questions about what is below `path`, each of which has an answer without any model."""
    found: list[str] = []
    for tried, question in enumerate(_candidates(library, library.resolve(path))):
        if tried >= _TRIED or len(found) >= wanted:
            break
        try:
            result = ask(library, Models(None, None), AskRequest(question=question, paths=(path,)))
        except errors.LibraryError:
            continue
        if result.answer is not None and result.citations:
            found.append(question)
    return found


def _candidates(library: Library, root: Entry) -> Iterator[str]:
    """Headings that are questions first, then what a title names."""
    named: list[str] = []
    for entry in _files(library, root):
        head = library.utf8(entry, 0, _HEAD).decode("utf-8", "replace")
        for title in _HEADING.findall(head)[:20]:
            if _QUESTION.fullmatch(title):
                yield title
            elif _PLAIN.fullmatch(title) and 2 <= len(title.split()) <= 6:
                named.append(title)
    yield from (f"What is said about {title}?" for title in dict.fromkeys(named[:_TRIED]))


def _files(library: Library, root: Entry) -> Iterator[Entry]:
    """Documents, breadth first, of a bounded number of folders."""
    pending = [root]
    for _ in range(_FOLDERS):
        if not pending:
            return
        folder = pending.pop(0)
        for entry in library.children(folder, 0, 50):
            if entry.is_folder:
                pending.append(entry)
            elif entry.kind == Kind.MEMORY or entry.name.lower().endswith((b".md", b".markdown", b".mdx")):
                yield entry
