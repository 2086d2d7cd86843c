"""Is the answer in what was found? A calibrated probability, and what is shown for it: answer, nearest, or nothing.

One logistic function of what ranking measured, fitted on half of the question sets and measured on the other half: see
the decision record on answers for the figures, the reliability table and what else was tried. No model call.
"""

import math
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from libraryfs.ask.candidates import Candidate, Ranking

Band = Literal["answer", "nearest", "none"]

WITH_VECTORS: Final[dict[str, float]] = {"constant": -6.0, "cosine": 7.0, "covered": 3.0}
BY_WORDS: Final[dict[str, float]] = {"constant": -1.04, "covered": 2.97}
ANSWER: Final = 0.5
"""Blocks that hold the answer with this probability or more are the answer."""
NEAREST: Final = 0.1
"""Less probable ones are shown as the nearest; under this, nothing is."""
HOPELESS: Final = 0.02
"""Under it a capable model is not asked either; above it decides."""


class Outlook(NamedTuple):
    """How probable it is that the blocks shown hold the answer, and the figures that say so."""

    probability: float
    figures: dict[str, float]

    @property
    def band(self) -> Band:
        """What is shown where blocks are quoted."""
        return "answer" if self.probability >= ANSWER else "nearest" if self.probability >= NEAREST else "none"

    @property
    def hopeless(self) -> bool:
        """Whether to say that it is not there without asking a capable model."""
        return self.probability < HOPELESS


def outlook(ranking: Ranking, chosen: Sequence[Candidate]) -> Outlook:
    """The probability that the answer is in the blocks chosen."""
    if not chosen or not ranking.weights:
        return Outlook(0.0, {})
    figures = _figures(ranking, chosen)
    weights = WITH_VECTORS if "cosine" in figures else BY_WORDS
    total = weights["constant"] + sum(weights[name] * figure for name, figure in figures.items() if name in weights)
    probability = 1 / (1 + math.exp(-max(-50.0, min(50.0, total))))
    return Outlook(probability, {"probability": probability, **figures})


def _figures(ranking: Ranking, chosen: Sequence[Candidate]) -> dict[str, float]:
    best = chosen[0]
    figures = {"covered": best.all}
    if best.cosine is not None:
        figures["cosine"] = max(one.cosine for one in chosen if one.cosine is not None)
    return figures
