"""Is the answer in the evidence at all? One small logistic function of what ranking measured. No model call.

Fitted on the first 50 answerable and 50 unanswerable ClapNQ questions, measured on the next 100 of each: see the
decision record on answers for the figures and for what else was tried.
"""

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

from libraryfs.ask import terms as lexicon
from libraryfs.ask.passages import Passage
from libraryfs.ask.selection import Ranking

WITH_VECTORS: Final[tuple[float, ...]] = (-7.5, 12.52, 0.83)
"""Constant, then the weights of: the cosine of the question and the best sentence with the one before it, and whether
the best sentence is in the file of the nearest chunk (0 or 1)."""
BY_WORDS: Final[tuple[float, ...]] = (-1.04, 2.97)
"""Constant, then the weight of the coverage of the question's terms by the best passage, where there are no vectors: it
says little, so the constant is such that few answerable questions are refused (4 of the 100)."""
REFUSE_BELOW: Final = 0.5
COVERED: Final = 0.72
"""A best sentence that covers this much of the question, or whose file's title covers all of it, is not refused,
whatever its cosine. On XQuAD, whose questions repeat their text's words, 15 % of the answerable are then refused
instead of 23 %; on ClapNQ it changes little."""
HOPELESS_BELOW: Final = 0.02
"""Under it a capable model is not asked either; between the two it decides."""


class Outlook(NamedTuple):
    """How probable it is that the evidence holds the answer, and the figures that say so."""

    probability: float
    covered: float
    figures: dict[str, float]

    @property
    def refuse(self) -> bool:
        """Whether to say that it is not in the library, where only sentences can be quoted."""
        return self.probability < REFUSE_BELOW and self.covered < COVERED

    @property
    def hopeless(self) -> bool:
        """Whether to say so without asking a capable model."""
        return self.probability < HOPELESS_BELOW and self.covered < COVERED


def outlook(passages: Sequence[Passage], ranking: Ranking) -> Outlook:
    """The probability that the answer is in the passages."""
    if not ranking.candidates:
        return Outlook(0.0, 0.0, {})
    best = max(ranking.candidates, key=lambda one: one.score)
    near = max(passages, key=lambda passage: passage.item.similarity or 0.0)
    if ranking.context is None or near.item.similarity is None:
        figures = {"coverage": max(_coverage(passage, ranking) for passage in passages)}
        weights = BY_WORDS
    else:
        agree = float(passages[best.passage] is near)
        figures = {"context": ranking.context, "agree": agree}
        weights = WITH_VECTORS
    total = weights[0] + sum(weight * figure for weight, figure in zip(weights[1:], figures.values(), strict=True))
    probability = 1 / (1 + math.exp(-max(-50.0, min(50.0, total))))
    covered = 1.0 if passages[best.passage].titled(ranking.weights) else best.coverage
    return Outlook(probability, covered, {"probability": probability, "covered": covered, **figures})


def _coverage(passage: Passage, ranking: Ranking) -> float:
    return lexicon.coverage(ranking.weights, passage.title_terms.union(*passage.terms))
