"""Long texts in overlapping chunks that each fit the embedding model's window, cut between sentences where possible.

All text but white space is in some chunk: nothing is cut off silently.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from libraryfs import frontmatter

VERSION: Final = 1
"""Moves when the same text would be cut in another way; what an older version cut is embedded again."""

TARGET_TOKENS: Final = 128
"""Tokens of a chunk, where the window allows it."""
OVERLAP_TOKENS: Final = 32
"""Tokens at the end of a chunk that the next one repeats, in whole sentences."""
MAX_CHARACTERS: Final = 2000
"""Of a chunk: a tokenizer may take a page of base64 for one unknown word, and no reader wants that as an excerpt."""

# After the end of a sentence, or between lines; after full-width punctuation no space follows.
_BOUNDARY: Final = re.compile(r"(?<=[.!?])[\"')\]]?\s+|(?<=[。！？；])|\n+")

Offsets = Sequence[tuple[int, int]]
Tokenize = Callable[[str], Offsets]
"""Text → its tokens' (start, end) in characters."""


class Chunk(NamedTuple):
    """Characters `start` to `end` of a text, without white space at its ends."""

    start: int
    end: int


def chunk(text: str, tokenize: Tokenize, window: int, prefix: str = "") -> list[Chunk]:
    """The chunks of a text, in order; `prefix + chunk` has at most `window` tokens. Blank text has none."""
    room = window - len(tokenize(prefix)) if prefix else window
    limit = min(room, TARGET_TOKENS)
    if limit < 1:
        raise ValueError(f"the prefix leaves no room in a window of {window} tokens")
    starts = [start for start, end in tokenize(text) if end > start]
    chunks: list[Chunk] = []
    for part in _parts(text):
        for start, end in _packed(_pieces(text, part, starts, limit), limit, OVERLAP_TOKENS):
            chunks += _fitting(text, _trimmed(text, start, end), tokenize, window, prefix)
    return chunks


def _parts(text: str) -> list[Chunk]:
    """The front matter, if any, apart from the rest, so that neither waters down the other."""
    found = frontmatter.find(text)
    if found is None or found.end >= len(text):
        return [Chunk(0, len(text))]
    return [Chunk(0, found.end), Chunk(found.end, len(text))]


def _pieces(text: str, part: Chunk, starts: Sequence[int], limit: int) -> list[tuple[int, int, int]]:
    """(start, end, tokens) of the sentences of a part; too long ones are cut between words."""
    cuts = [part.start, *(found.end() for found in _BOUNDARY.finditer(text, part.start, part.end)), part.end]
    pieces: list[tuple[int, int, int]] = []
    for start, end in pairwise(cuts):
        first, last = bisect_left(starts, start), bisect_left(starts, end)
        while last - first > limit or end - start > MAX_CHARACTERS:
            most = start + MAX_CHARACTERS
            cut = _word_start(text, start, min(starts[first + limit], most) if last - first > limit else most)
            pieces.append((start, cut, bisect_left(starts, cut) - first))
            start, first = cut, bisect_left(starts, cut)
        if end > start:
            pieces.append((start, end, last - first))
    return pieces


def _word_start(text: str, start: int, cut: int) -> int:
    """The last beginning of a word at or before `cut`, in its second half; `cut` where there is none."""
    for place in range(cut, start + (cut - start) // 2, -1):
        if text[place - 1].isspace():
            return place
    return cut


def _packed(pieces: Sequence[tuple[int, int, int]], limit: int, overlap: int) -> list[tuple[int, int]]:
    """Pieces joined to runs of at most `limit` tokens; each run begins with the end of the one before."""
    runs: list[tuple[int, int]] = []
    first = last = 0
    while last < len(pieces):
        tokens = sum(piece[2] for piece in pieces[first:last])
        while last < len(pieces) and (last == first or _fits(pieces, first, last, tokens, limit)):
            tokens += pieces[last][2]
            last += 1
        runs.append((pieces[first][0], pieces[last - 1][1]))
        if last < len(pieces):
            first = _overlap(pieces, first, last, limit, overlap)
    return runs


def _fits(pieces: Sequence[tuple[int, int, int]], first: int, last: int, tokens: int, limit: int) -> bool:
    """Whether the piece `last` can join a run that begins with `first` and has `tokens`."""
    return tokens + pieces[last][2] <= limit and pieces[last][1] - pieces[first][0] <= MAX_CHARACTERS


def _overlap(pieces: Sequence[tuple[int, int, int]], first: int, last: int, limit: int, overlap: int) -> int:
    """Where the run that goes on with `last` begins: it repeats little, not the whole run before, and `last` fits."""
    begin, repeated = last, 0
    while begin - 1 > first:
        repeated += pieces[begin - 1][2]
        if repeated > overlap or not _fits(pieces, begin - 1, last, repeated, limit):
            break
        begin -= 1
    return begin


def _trimmed(text: str, start: int, end: int) -> Chunk:
    body = text[start:end]
    return Chunk(start + len(body) - len(body.lstrip()), end - (len(body) - len(body.rstrip())))


def _fitting(text: str, whole: Chunk, tokenize: Tokenize, window: int, prefix: str) -> list[Chunk]:
    """The chunk, or its halves: a text cut within a word can have more tokens than it had as a part of the whole."""
    if whole.end <= whole.start:
        return []
    body = text[whole.start : whole.end]
    if len(body) == 1 or len((prefix + body).encode()) <= window or len(tokenize(prefix + body)) <= window:
        return [whole]
    middle = _word_start(text, whole.start, (whole.start + whole.end) // 2)
    halves = _trimmed(text, whole.start, middle), _trimmed(text, middle, whole.end)
    return [piece for half in halves for piece in _fitting(text, half, tokenize, window, prefix)]
