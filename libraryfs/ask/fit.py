"""A sentence cut to the part that answers: whole clauses in a row, never rewritten, so that it stays a quote."""

import re
from collections.abc import Iterable
from typing import Final

from libraryfs.ask import terms as lexicon
from libraryfs.ask.sentences import words

MAX_WORDS: Final = 30
"""Longer sentences are cut: a shorter answer overlaps more with what was wanted, a longer one holds it more often."""
_NEW_TERM: Final = 0.15
_NEW_TERMS: Final = 8

_CLAUSE: Final = re.compile(r"(?<=[,;:—–)])\s+|(?<=[，、；：—])|\s+(?=[(—–])")
_LOOSE: Final = " ,;:—–(，、；："
_WORD: Final = re.compile(r"\S+\s*")


def fit(sentence: str, asked: Iterable[str], limit: int = MAX_WORDS) -> str:
    """The part of the sentence with most of the asked terms and something new besides, of at most `limit` words."""
    if words(sentence) <= limit:
        return sentence
    terms = set(asked)
    cuts = [0, *(found.end() for found in _CLAUSE.finditer(sentence)), len(sentence)]
    part = _best(sentence, cuts, terms, limit)
    if words(part) <= limit:
        return part
    every = [found.start() for found in _WORD.finditer(part)]
    if len(every) < limit:  # a script without spaces: any character may begin a part
        every = list(range(len(part)))
    return _best(part, [*every, len(part)], terms, limit)


def _best(text: str, cuts: list[int], asked: set[str], limit: int) -> str:
    best, found = -1.0, text
    for first, start in enumerate(cuts[:-1]):
        for end in cuts[first + 1 :]:
            part = text[start:end].strip().rstrip(_LOOSE) if end < len(text) else text[start:end].strip()
            length = words(part)
            if length > limit and end != cuts[first + 1]:
                break
            held = set(lexicon.terms(part))
            score = len(held & asked) + _NEW_TERM * min(_NEW_TERMS, len(held - asked)) + length / 1000
            if part and score > best:
                best, found = score, part
    return found
