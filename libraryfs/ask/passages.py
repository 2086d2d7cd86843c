"""Evidence → the text to read for an answer, in blocks: whole files, and of long ones what is near the question."""

import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from libraryfs.ask import terms
from libraryfs.ask.blocks import Block, Span, blocks
from libraryfs.ask.evidence import Evidence
from libraryfs.ask.sentences import Sentence, split
from libraryfs.errors import PathNotFound
from libraryfs.library.resolver import Library

WHOLE_BYTES: Final = 48_000
"""A file up to this size is read whole: the block that answers need not be in a chunk that is near."""
AROUND_BYTES: Final = 2_000
"""Of a longer file, this much before and after each near chunk, cut to whole lines."""
LONGEST_BYTES: Final = 4_000_000
"""Of a file, at most; what comes after is not looked at for an answer."""
MAX_FILES: Final = 20
"""Evidence items that are read for an answer, the first ones."""

_HEADING: Final = re.compile(r"^(#{1,6})\s+(\S.*?)\s*#*$", re.MULTILINE)


class Reading(NamedTuple):
    """What is read of one evidence item: the whole text, the blocks that were looked for in it, and its near chunks."""

    item: Evidence
    text: str
    blocks: tuple[Block, ...]
    near: tuple[tuple[int, int, float | None], ...]
    """(start, end, cosine) of the near chunks, in characters of the text."""


class Passage(NamedTuple):
    """One block of one file, as it is shown to a model and checked: its sentences, and the terms of each."""

    item: Evidence
    text: str
    block: Block
    sentences: tuple[Sentence, ...]
    terms: tuple[set[str], ...]

    @property
    def title_terms(self) -> set[str]:
        """The terms of the item's title and of the headings above the block."""
        return set(terms.terms(" ".join((self.item.title, *self.block.headings))))

    def quote(self, first: int, last: int) -> str:
        """The text from sentence `first` up to, not including, sentence `last`: a substring of the file."""
        return self.text[self.sentences[first].start : self.sentences[last - 1].end]


def read(library: Library, evidence: Sequence[Evidence]) -> list[Reading]:
    """The evidence's texts and blocks, in its order, at most MAX_FILES."""
    return [_reading(library, item) for item in evidence[:MAX_FILES]]


def of_text(item: Evidence, text: str) -> Passage:
    """The passage that is this text, as one block."""
    return passage(item, text, Block("paragraph", 0, len(text)))


def passage(item: Evidence, text: str, block: Block) -> Passage:
    """The passage that is this block of the item's text."""
    found = [
        Sentence(start + one.start, start + one.end, one.text)
        for start, end in block.spans(text)
        for one in split(text[start:end])
    ]
    kept = tuple(sentence for sentence in found if "\ufffd" not in sentence.text)
    return Passage(item, text, block, kept, tuple(set(terms.terms(sentence.text)) for sentence in kept))


def _reading(library: Library, item: Evidence) -> Reading:
    name = item.path.rpartition("/")[2]
    try:
        entry = library.entry(item.ino)
        data = library.utf8(entry, 0, LONGEST_BYTES)
    except PathNotFound:  # it went while we were asking
        return Reading(
            item, item.excerpt, tuple(blocks(item.excerpt, name)), ((0, len(item.excerpt), item.similarity),)
        )
    text = data.decode("utf-8", "replace")
    near = tuple(
        (
            len(data[: one.start].decode("utf-8", "replace")),
            len(data[: one.start + one.length].decode("utf-8", "replace")),
            one.similarity,
        )
        for one in item.near
    )
    if len(data) <= WHOLE_BYTES or not near:
        return Reading(item, text[:LONGEST_BYTES], tuple(blocks(text, name)), near)
    found = [block for span in _windows(text, near) for block in _within(text, span, name)]
    return Reading(item, text, tuple(found), near)


def _windows(text: str, near: Iterable[tuple[int, int, float | None]]) -> list[Span]:
    """The surroundings of the near chunks, whole lines, in order, those that touch as one."""
    merged: list[Span] = []
    for start, end, _ in sorted(near):
        begin = text.rfind("\n", 0, max(0, start - AROUND_BYTES)) + 1
        stop = text.find("\n", end + AROUND_BYTES)
        stop = len(text) if stop < 0 else stop
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], stop))
        else:
            merged.append((begin, stop))
    return merged


def _within(text: str, span: Span, name: str) -> list[Block]:
    """The blocks of a part of a text, with the headings that stand before the part."""
    begin, end = span
    above: list[tuple[int, str]] = []
    for found in _HEADING.finditer(text, 0, begin):
        above = [one for one in above if one[0] < len(found[1])] + [(len(found[1]), found[2])]
    moved = []
    for block in blocks(text[begin:end], name):
        lead = None if block.lead is None else (begin + block.lead[0], begin + block.lead[1])
        headings = (
            block.headings
            if _HEADING.search(text, begin, begin + block.start)
            else (*(t for _, t in above), *block.headings)
        )
        moved.append(Block(block.kind, begin + block.start, begin + block.end, lead, headings))
    return moved
