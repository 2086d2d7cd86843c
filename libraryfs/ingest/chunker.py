"""Long texts in overlapping chunks that each fit the embedding model's window, cut between sentences where possible.

All text but white space is in some chunk: nothing is cut off silently.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

VERSION: Final = 1
"""Moves when the same text would be cut in another way; what an older version cut is embedded again."""

TARGET_TOKENS: Final = 128
"""Tokens of a chunk, where the window allows it."""
OVERLAP_TOKENS: Final = 32
"""Tokens at the end of a chunk that the next one repeats, in whole sentences."""

# After the end of a sentence, or between lines; after full-width punctuation no space follows.
_BOUNDARY: Final = re.compile(r"(?<=[.!?])[\"')\]]?\s+|(?<=[。！？；])|\n+")
_FRONT_MATTER: Final = re.compile(r"\A\ufeff?---[ \t]*\r?\n.*?^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)

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
    found = _FRONT_MATTER.match(text)
    if found is None or found.end() >= len(text):
        return [Chunk(0, len(text))]
    return [Chunk(0, found.end()), Chunk(found.end(), len(text))]


def _pieces(text: str, part: Chunk, starts: Sequence[int], limit: int) -> list[tuple[int, int, int]]:
    """(start, end, tokens) of the sentences of a part; one of more than `limit` tokens is cut between words."""
    cuts = [part.start, *(found.end() for found in _BOUNDARY.finditer(text, part.start, part.end)), part.end]
    pieces: list[tuple[int, int, int]] = []
    for start, end in pairwise(cuts):
        first, last = bisect_left(starts, start), bisect_left(starts, end)
        while last - first > limit:
            cut = _word_start(text, start, starts[first + limit])
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
    first = 0
    while first < len(pieces):
        last, tokens = first, 0
        while last < len(pieces) and (last == first or tokens + pieces[last][2] <= limit):
            tokens += pieces[last][2]
            last += 1
        runs.append((pieces[first][0], pieces[last - 1][1]))
        if last == len(pieces):
            break
        repeated, first = 0, last
        while _may_repeat(pieces, first, last, runs[-1][0], repeated, limit, overlap):
            first -= 1
            repeated += pieces[first][2]
    return runs


def _may_repeat(
    pieces: Sequence[tuple[int, int, int]],
    first: int,
    last: int,
    run_start: int,
    repeated: int,
    limit: int,
    overlap: int,
) -> bool:
    """Whether the piece before `first` can be repeated: little enough, not the whole run, and the next still fits."""
    before = pieces[first - 1]
    total = repeated + before[2]
    return before[0] > run_start and total <= overlap and total + pieces[last][2] <= limit


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
