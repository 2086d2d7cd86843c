"""Readings → their blocks, ranked by how well each would answer the question. No language model.

What a block says for itself:

    cosine(question, title + headings + block) + W_CHUNK cosine(question, chunk) + W_OWN coverage + W_ALL coverage with
    title and headings - W_FACTS for front matter

and its score is that, and W_NEIGHBOUR of the better of the blocks before and after it (what answers often stands beside
what the question repeats), W_FIRST for the first two of a file, less up to W_PLACE by the file's place in the evidence.

`coverage` is the share of the question's terms, weighted by their rarity among the blocks read. Only the MAX_EMBEDDED
best by the other figures get a cosine of their own, since each costs the embedder some 10 ms; for the others their
chunk's stands in. Where there are no vectors, the coverage ranks.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from libraryfs.ask import terms as lexicon
from libraryfs.ask.blocks import Block
from libraryfs.ask.evidence import Evidence
from libraryfs.ask.passages import Reading
from libraryfs.models.cancel import Cancel
from libraryfs.models.protocols import Embedder

W_CHUNK: Final = 0.3
W_OWN: Final = 0.2
W_ALL: Final = 0.2
W_FACTS: Final = 0.15
W_NEIGHBOUR: Final = 0.3
W_FIRST: Final = 0.05
W_PLACE: Final = 0.15
LAST_PLACE: Final = 5
NOT_EMBEDDED: Final = 1.0
"""A block without a cosine of its own stands behind those that have one."""
WORDS_ALONE: Final = 2.0
"""Where there are no vectors, coverage is weighed up, so that scores are as far apart as they are with them."""
MAX_EMBEDDED: Final = 8
BELOW_NEAR: Final = 0.05
"""A block in no near chunk is taken to be this much farther than the file's farthest near one."""


class Candidate(NamedTuple):
    """A block of a reading, and its figures."""

    reading: int
    item: Evidence
    source: str
    block: Block
    own: float
    """Coverage of the question by the block's words."""
    all: float
    """Coverage by those of title and headings too."""
    headed: float
    """Coverage by the title or the nearest heading alone."""
    chunk: float
    cosine: float | None
    score: float
    terms: frozenset[str]
    """Those of the block, its title and its headings."""

    @property
    def text(self) -> str:
        """The block, verbatim."""
        return self.block.text(self.source)


def weigh(question: str, readings: Sequence[Reading]) -> tuple[list[Candidate], dict[str, float]]:
    """All blocks with what is known of them without a model, in no order; and the weights of the question's terms."""
    held = [[set(lexicon.terms(block.text(one.text))) for block in one.blocks] for one in readings]
    weights = lexicon.weights(lexicon.terms(question), [some for each in held for some in each])
    found = []
    for number, (reading, each) in enumerate(zip(readings, held, strict=True)):
        title = reading.item.title
        for block, some in zip(reading.blocks, each, strict=True):
            above = set(lexicon.terms(" ".join((title, *block.headings))))
            own, headed = lexicon.coverage(weights, some), _headed(weights, reading.item.title, block)
            everything = frozenset(some | above)
            every = lexicon.coverage(weights, everything)
            near = _near(block, reading)
            score = W_CHUNK * near + W_OWN * own + W_ALL * every - W_FACTS * (block.kind == "facts")
            found.append(
                Candidate(number, reading.item, reading.text, block, own, every, headed, near, None, score, everything)
            )
    return found, weights


def _headed(weights: dict[str, float], title: str, block: Block) -> float:
    """Coverage by the title or by the nearest heading, the better."""
    return max(lexicon.coverage(weights, set(lexicon.terms(one))) for one in (title, *block.headings[-1:]))


class Ranking(NamedTuple):
    """Candidates, best first, and the weights of the question's terms."""

    candidates: tuple[Candidate, ...]
    weights: dict[str, float]


def rank(
    question: str, readings: Sequence[Reading], vector: bytes | None, embedder: Embedder | None, cancel: Cancel
) -> Ranking:
    """All blocks of the readings, best first. `vector` is the question's. Raises ModelError when the embedder fails."""
    every, weights = weigh(question, readings)
    if vector is None or embedder is None:
        found = [one._replace(score=one.score * WORDS_ALONE) for one in every]
    else:
        near = sorted(range(len(every)), key=lambda at: -every[at].score)[:MAX_EMBEDDED]
        cosines = cosines_with(vector, [shown(every[at]) for at in near], embedder, cancel)
        measured = dict(zip(near, cosines, strict=True))
        found = [
            one._replace(cosine=measured.get(at), score=one.score + measured.get(at, one.chunk))
            for at, one in enumerate(every)
        ]
    ranked = [one._replace(score=score) for one, score in zip(found, _placed(found), strict=True)]
    if vector is not None and embedder is not None:
        ranked = [one if one.cosine is not None else one._replace(score=one.score - NOT_EMBEDDED) for one in ranked]
    return Ranking(tuple(sorted(ranked, key=lambda one: -one.score)), weights)


def _placed(found: Sequence[Candidate]) -> list[float]:
    """The score of each block with what its neighbours and its place add; `found` is in the order of the texts."""
    scores = []
    first = 0
    for at, one in enumerate(found):
        if at and found[at - 1].reading != one.reading:
            first = at
        beside = [found[n].score for n in (at - 1, at + 1) if 0 <= n < len(found) and found[n].reading == one.reading]
        place = min(one.reading, LAST_PLACE) / LAST_PLACE
        score = one.score + W_NEIGHBOUR * max(beside, default=0.0) + W_FIRST * (at - first < 2)
        scores.append(score - W_PLACE * place)
    return scores


def cosines_with(vector: bytes, texts: Sequence[str], embedder: Embedder, cancel: Cancel) -> list[float]:
    """The cosine of a vector and each of the texts. Raises ModelError."""
    if not texts:
        return []
    made = embedder.embed([_begin(text, embedder) for text in texts], cancel)
    return [float(cosine) for cosine in made @ np.frombuffer(vector, dtype=np.float32)]


def _begin(text: str, embedder: Embedder) -> str:
    """As much of the text as the embedder reads: enough to compare a very long one."""
    if len(text) <= embedder.window:  # a token has a character at least
        return text
    offsets = embedder.offsets(text)
    return text if len(offsets) <= embedder.window else text[: offsets[embedder.window - 1][1]]


def _near(block: Block, reading: Reading) -> float:
    """The cosine of the question and the near chunk that the block is in."""
    start, end = (block.lead or (block.start,))[0], block.end
    least, best = 1.0, None
    for begin, stop, cosine in reading.near:
        if cosine is None:
            continue
        least = min(least, cosine)
        shared = min(end, stop) - max(block.start if stop > block.start else start, begin)
        if shared > 0 and shared * 2 >= min(block.end - block.start, stop - begin):
            best = cosine if best is None else max(best, cosine)
    return best if best is not None else max(0.0, least - BELOW_NEAR) if least < 1.0 else 0.0


def shown(candidate: Candidate) -> str:
    """What is compared with the question: title, headings and block."""
    headings = [one for one in candidate.block.headings if one != candidate.item.title]
    return ". ".join((candidate.item.title, *headings)) + "\n" + candidate.text
