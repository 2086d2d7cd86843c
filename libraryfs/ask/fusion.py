"""Vector and keyword hits in one ranking, and how far the embedding model can be believed about them."""

import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Final

from libraryfs.ask.evidence import WORDS_LEAD_BELOW

READS: Final[tuple[float, float, float]] = (-0.4, 25.0, -33.0)
"""Constant, then the weights of: how far the nearest chunk stands above texts of the question's language that are about
something else, and how near these are. A logistic function; fitted on even questions, see the decision record."""
LEAST: Final = 8
"""Fewer cosines than this say nothing about the model: it is believed."""

MEANING: Final[tuple[float, float]] = (2.0, 1.5)
"""Weight and power of the share of words beside a cosine that can be believed. Above 1, so that many files with few of
the words do not drown a near one."""
WORDS: Final = 12.0
"""Weight of the share of words where the cosine cannot be believed."""


def readable(nearest: float, others: Sequence[float]) -> float:
    """How surely the embedding model reads the question and the texts in its language, 0 to 1.

    `nearest` is the cosine of the question and the nearest chunk, `others` those of chunks that have next to nothing of
    the question but its commonest words. A model that reads finds these far away, and what is meant near. One that does
    not finds all texts of the language alike.
    """
    if len(others) < LEAST:
        return 1.0
    middle = median(others)
    constant, above, near = READS
    return 1 / (1 + math.exp(-(constant + above * (nearest - middle) + near * middle)))


def fused(similarities: Mapping[int, float], shares: Mapping[int, float], reads: float = 1.0) -> list[int]:
    """The items of both legs, best first; ties by inode number. `reads` is what `readable` says.

    Both measures are absolute, which ranks (RRF) and per-question scaling are not: where no word matches the cosines
    decide, and where the model cannot read, the words.
    """

    def score(ino: int) -> float:
        share = shares.get(ino, 0.0)
        weight, power = MEANING
        return similarities.get(ino, 0.0) + reads * weight * math.pow(share, power) + (1 - reads) * WORDS * share

    return sorted(similarities.keys() | shares.keys(), key=lambda ino: (-score(ino), ino))


def best(similarities: Mapping[int, float], shares: Mapping[int, float], reads: float, wanted: int) -> list[int]:
    """The `wanted` best items of both legs. The first of each leg is among them, a cosine's where the model reads.

    A question in other words than the file's has some words in common with many files, and then these would fill all
    places, however near the file is.
    """
    ranked = fused(similarities, shares, reads)
    near = [max(similarities, key=lambda ino: (similarities[ino], -ino))] if similarities else []
    named = [max(shares, key=lambda ino: (shares[ino], -ino))] if shares and max(shares.values()) > 0 else []
    leaders = {*named, *(near if reads >= WORDS_LEAD_BELOW else ())}
    kept = ranked[:wanted]
    for ino in ranked[wanted:]:
        if ino in leaders:
            last = next((one for one in reversed(kept) if one not in leaders), None)
            if last is not None:
                kept.remove(last)
                kept.append(ino)
    return kept
