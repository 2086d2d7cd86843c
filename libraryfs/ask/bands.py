"""Is the answer in what was found? A calibrated probability, and what is shown for it: answer, nearest, or nothing.

One logistic function of what ranking measured, fitted on half of the question sets and measured on the other half: see
the decision record on answers for the figures, the reliability table and what else was tried. No model call.
"""

import math
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from libraryfs.ask.candidates import Candidate, Ranking
from libraryfs.ask.choice import Answering

Band = Literal["answer", "nearest", "none"]

WITH_VECTORS: Final[dict[str, float]] = {"constant": -4.51, "sentence": 7.09, "cosine": 0.45, "covered": 1.77}
"""Weights of: the highest cosine of the question and a sentence of the first block, that of question and block (with
its title and headings), and the share of the question's terms that are in the block."""
BY_WORDS: Final[dict[str, float]] = {"constant": -0.8, "read": 2.97}
"""The weight of the coverage by the block with its headings, where there are no vectors: it says little, so the
constant is such that few answerable questions are refused."""
ANSWER: Final = 0.62
"""Blocks that hold the answer with this probability or more are the answer."""
NEAREST: Final = 0.12
"""Less probable ones are shown as the nearest; under this, nothing is."""
HEADED: Final = 0.99
"""Title and headings that cover so much of the question hold it."""
HOPELESS: Final = 0.05
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


def outlook(ranking: Ranking, chosen: Sequence[Candidate], sentence: Answering | None) -> Outlook:
    """The probability that the answer is in the blocks chosen; `sentence` is the best of the first one."""
    if not chosen or not ranking.weights or sentence is None:
        return Outlook(0.0, {})
    best = chosen[0]
    headed = best.headed >= HEADED
    figures = {"covered": 1.0 if headed else best.own, "read": max(one.all for one in chosen)}
    weights = BY_WORDS
    if best.cosine is not None and sentence.cosine is not None:
        # Under a heading that holds the whole question the sentence that answers need not repeat it.
        nearest = max(sentence.cosine, best.cosine) if headed else sentence.cosine
        figures |= {"sentence": nearest, "cosine": best.cosine}
        weights = WITH_VECTORS
    total = weights["constant"] + sum(weights.get(name, 0.0) * figure for name, figure in figures.items())
    probability = 1 / (1 + math.exp(-max(-50.0, min(50.0, total))))
    return Outlook(probability, {"probability": probability, **figures})
