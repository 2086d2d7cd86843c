"""Evidence → the text to read for an answer: the excerpt, or the whole file where it is small."""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from libraryfs.ask import terms
from libraryfs.ask.evidence import Evidence
from libraryfs.ask.sentences import Sentence, split
from libraryfs.errors import PathNotFound
from libraryfs.library.resolver import Library

SMALL_BYTES: Final = 4_000
"""A file up to this size is read whole: the sentence that answers need not be in the chunk that was nearest."""
AROUND_BYTES: Final = 400
"""Of a larger file, this much before and after the excerpt too, cut to whole sentences."""
MAX_PASSAGES: Final = 20
"""Evidence items that are read for an answer, the first ones."""


class Passage(NamedTuple):
    """What is read of one evidence item: the text, its sentences, and the terms of each."""

    item: Evidence
    text: str
    sentences: tuple[Sentence, ...]
    terms: tuple[set[str], ...]

    @property
    def title_terms(self) -> set[str]:
        """The terms of the item's title."""
        return set(terms.terms(self.item.title))

    def titled(self, asked: Iterable[str]) -> bool:
        """Whether the item's title has all of the terms, and there is one."""
        wanted = set(asked)
        return bool(wanted) and wanted <= self.title_terms

    def quote(self, first: int, last: int) -> str:
        """The text from sentence `first` up to, not including, sentence `last`: a substring of the file."""
        return self.text[self.sentences[first].start : self.sentences[last - 1].end]


def read(library: Library, evidence: Sequence[Evidence]) -> list[Passage]:
    """The passages of the evidence, in its order, at most MAX_PASSAGES."""
    return [_passage(library, item) for item in evidence[:MAX_PASSAGES]]


def _passage(library: Library, item: Evidence) -> Passage:
    text, begins_cut, ends_cut = _text(library, item)
    sentences = split(text)[1 if begins_cut else 0 :]
    if ends_cut:
        sentences = sentences[:-1]
    if not sentences:
        text, sentences = item.excerpt, split(item.excerpt)
    return _of(item, text, sentences)


def of_text(item: Evidence, text: str) -> Passage:
    """The passage that is this text."""
    return _of(item, text, split(text))


def _of(item: Evidence, text: str, sentences: Sequence[Sentence]) -> Passage:
    # A sentence with bytes that are not UTF-8 cannot be quoted as it stands.
    kept = tuple(sentence for sentence in sentences if "\ufffd" not in sentence.text)
    return Passage(item, text, kept, tuple(set(terms.terms(sentence.text)) for sentence in kept))


def _text(library: Library, item: Evidence) -> tuple[str, bool, bool]:
    """The text, and whether its first and last sentence may be cut."""
    try:
        entry = library.entry(item.ino)
    except PathNotFound:  # it went while we were asking
        return item.excerpt, False, False
    if entry.size <= SMALL_BYTES:
        return library.text(entry, 0, 4 * entry.size), False, False  # 4: bytes of a character in UTF-8, at most
    begin = max(0, item.start - AROUND_BYTES)
    end = item.start + len(item.excerpt.encode("utf-8", "replace")) + AROUND_BYTES
    return library.text(entry, begin, end - begin), begin > 0, end < entry.size
