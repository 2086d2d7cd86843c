"""Vector and keyword hits in one ranking."""

from collections.abc import Mapping
from typing import Final

KEYWORD_WEIGHT: Final = 4.0
"""Weight of the keyword leg's share (0 to 1) beside a cosine."""


def fused(similarities: Mapping[int, float], shares: Mapping[int, float], floor: float) -> list[int]:
    """The items of both legs, best first: cosine + KEYWORD_WEIGHT × share; ties by inode number.

    Both measures are absolute, which ranks (RRF) and per-question scaling are not: where the embedding model cannot
    read the question's script its cosines lie close together, so the keywords decide, and the other way round where no
    word matches. `floor` stands in for the share of an item that the keyword leg cut off.
    """
    everything = similarities.keys() | shares.keys()
    return sorted(
        everything, key=lambda ino: (-similarities.get(ino, 0.0) - KEYWORD_WEIGHT * shares.get(ino, floor), ino)
    )
