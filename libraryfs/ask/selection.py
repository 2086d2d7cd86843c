"""Evidence → its sentences, ranked by how well each would answer the question. No language model.

The score of a sentence (weights fitted on one half of XQuAD, checked on the other; see the decision record):

    cosine(question, sentence) + 0.3 cosine(question, chunk) + 0.5 coverage + 0.2 coverage with the sentence before

and W_TITLE where the file's title has all terms of the question, less W_HEADING for a heading, which is near to many a
question and seldom answers one. Questions, and headings that are topics, are no answers and not ranked; what follows
them gains by the coverage with the sentence before.

`coverage` is the share of the question's terms in the sentence, weighted by their rarity in the evidence. Without an
embedder the two cosines are missing and the rest still ranks.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from libraryfs.ask import terms as lexicon
from libraryfs.ask.passages import Passage
from libraryfs.ask.sentences import Sentence, words
from libraryfs.models.cancel import Cancel
from libraryfs.models.protocols import Embedder

W_SENTENCE: Final = 1.0
W_CHUNK: Final = 0.3
W_COVERAGE: Final = 0.5
W_BEFORE: Final = 0.2
W_TITLE: Final = 0.3
W_HEADING: Final = 0.25
TOPIC_WORDS: Final = 3
"""A heading of so many words or fewer names a topic."""
MAX_EMBEDDED: Final = 8
"""Sentences that get a cosine, the best by the other figures first: each costs the embedder some 10 ms."""
MAX_CONTEXTS: Final = 4
"""Sentences whose context is compared too."""
_QUESTION_MARKS: Final = "?\uff1f\u061f\u2047\u203d\u055e\u1367"
_CLOSING: Final = " \"'”’»)]*_"


class Candidate(NamedTuple):
    """The sentence `at` of the passage `passage`, and its figures."""

    passage: int
    at: int
    sentence: Sentence
    score: float
    cosine: float | None
    coverage: float

    @property
    def text(self) -> str:
        """The sentence, verbatim."""
        return self.sentence.text


class Ranking(NamedTuple):
    """Candidates, best first, and what the question looked for."""

    candidates: tuple[Candidate, ...]
    weights: dict[str, float]
    context: float | None
    """The highest cosine of the question and one of the best sentences with the one before it; None without one."""

    @property
    def best(self) -> Candidate | None:
        """The best sentence of all."""
        return self.candidates[0] if self.candidates else None


class _Rough(NamedTuple):
    passage: int
    at: int
    sentence: Sentence
    coverage: float
    before: float
    chunk: float
    titled: bool
    heading: bool

    @property
    def score(self) -> float:
        words_of_it = W_COVERAGE * self.coverage + W_BEFORE * self.before
        return W_CHUNK * self.chunk + words_of_it + W_TITLE * self.titled - W_HEADING * self.heading


def rank(question: str, passages: Sequence[Passage], embedder: Embedder | None, cancel: Cancel) -> Ranking:
    """All sentences of the passages, best first. Raises ModelError when the embedder fails."""
    weighted = lexicon.weights(lexicon.terms(question), [held for passage in passages for held in passage.terms])
    rough = sorted(_rough(passages, weighted), key=lambda one: -one.score)
    cosines = _cosines(question, [one.sentence.text for one in rough[:MAX_EMBEDDED]], embedder, cancel)
    ranked = [
        Candidate(one.passage, one.at, one.sentence, one.score + W_SENTENCE * (cosine or 0.0), cosine, one.coverage)
        for one, cosine in zip(rough, [*cosines, *[None] * (len(rough) - len(cosines))], strict=True)
    ]
    ranked.sort(key=lambda candidate: -candidate.score)
    pairs = [passages[one.passage].quote(max(0, one.at - 1), one.at + 1) for one in ranked[:MAX_CONTEXTS]]
    near = [cosine for cosine in _cosines(question, pairs, embedder, cancel) if cosine is not None]
    return Ranking(tuple(_current_first(ranked, passages)), weighted, max(near, default=None))


def _current_first(ranked: Sequence[Candidate], passages: Sequence[Passage]) -> Iterator[Candidate]:
    """The same candidates; before the first of a superseded item comes the best of what replaces it."""
    places = {passage.item.id: number for number, passage in enumerate(passages)}
    moved: set[Candidate] = set()
    for candidate in ranked:
        newer = places.get(passages[candidate.passage].item.superseded_by or "")
        best = next((one for one in ranked if one.passage == newer), None)
        if best is not None and best not in moved and best.score < candidate.score:
            moved.add(best)
            yield best
        if candidate not in moved:
            yield candidate


def _rough(passages: Sequence[Passage], weighted: dict[str, float]) -> Iterator[_Rough]:
    for number, passage in enumerate(passages):
        titled = passage.titled(weighted)
        for at, (sentence, held) in enumerate(zip(passage.sentences, passage.terms, strict=True)):
            heading = _is_heading(passage.text, sentence)
            if _asks(sentence.text) or (heading and words(sentence.text) <= TOPIC_WORDS):
                continue
            together = held | passage.terms[at - 1] if at else held
            coverage, before = lexicon.coverage(weighted, held), lexicon.coverage(weighted, together)
            yield _Rough(number, at, sentence, coverage, before, passage.item.similarity or 0.0, titled, heading)


def _asks(text: str) -> bool:
    return text.rstrip(_CLOSING).endswith(tuple(_QUESTION_MARKS))


def _is_heading(text: str, sentence: Sentence) -> bool:
    return text[text.rfind("\n", 0, sentence.start) + 1 : sentence.start].lstrip().startswith("#")


def _cosines(question: str, texts: Sequence[str], embedder: Embedder | None, cancel: Cancel) -> Sequence[float | None]:
    if embedder is None or not texts:
        return [None] * len(texts)
    vectors = embedder.embed([_begin(text, embedder) for text in (question, *texts)], cancel)
    return [float(cosine) for cosine in np.asarray(vectors[1:] @ vectors[0])]


def _begin(text: str, embedder: Embedder) -> str:
    """As much of the text as the embedder reads: enough to rank a very long sentence."""
    if len(text) <= embedder.window:  # a token has a character at least
        return text
    offsets = embedder.offsets(text)
    return text if len(offsets) <= embedder.window else text[: offsets[embedder.window - 1][1]]
