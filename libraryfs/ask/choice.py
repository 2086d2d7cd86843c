"""Ranked blocks → those that are shown: a few, of few words, each saying something that the others do not."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from libraryfs.ask import terms as lexicon
from libraryfs.ask.blocks import Block, asks
from libraryfs.ask.candidates import Candidate, Ranking, cosines_with
from libraryfs.ask.fit import fit
from libraryfs.ask.sentences import Sentence, split, words
from libraryfs.models.cancel import Cancel
from libraryfs.models.protocols import Embedder

MAX_BLOCKS: Final = 3
MAX_WORDS: Final = 160
"""Of all blocks together."""
LEAST_WORDS: Final = 25
"""Where all others are too long, the best of them is cut to what room is left, if that is this much."""
LEAST_SHARE: Final = 0.75
"""A block with less than this share of the best one's score is left out, whatever room is left."""
W_NEW: Final = 0.1
"""What the question's terms weigh that a block has, with its headings, and those chosen before it have not."""
SENTENCE_WORDS: Final = 40
MAX_SENTENCES: Final = 8
"""Sentences of the first block that are compared with the question, at most."""
W_COVERAGE: Final = 0.5
W_BEFORE: Final = 0.2


class Answering(NamedTuple):
    """The sentence that answers, or the part of it that does: characters `start` to `end` of the file's text."""

    start: int
    end: int
    text: str
    cosine: float | None
    """The highest cosine of the question and a sentence of the block."""


def choose(ranking: Ranking, most: int = MAX_BLOCKS, room: int = MAX_WORDS) -> list[Candidate]:
    """At most `most` blocks of together at most `room` words, the best first, and none of superseded files."""
    chosen: list[Candidate] = []
    said: set[str] = set()
    held: set[str] = set()
    too_long: list[Candidate] = []
    left = _current_only(ranking.candidates)
    least = left[0].score * LEAST_SHARE if left else 0.0
    while left and len(chosen) < most:
        best = max(left, key=lambda one: one.score + W_NEW * _new(one, held, ranking.weights))
        left.remove(best)
        if best.score < least:
            break
        text = " ".join(best.text.split()).casefold()
        if any(text in other or other in text for other in said):
            continue
        if words(best.text) > room:
            too_long.append(best)
            continue
        room -= words(best.text)
        said.add(text)
        held |= best.terms
        chosen.append(best)
    part = _fitting(too_long[0], room, ranking) if too_long and len(chosen) < most else None
    return chosen if part is None else [*chosen, part]


def replaced(ranking: Ranking, chosen: Sequence[Candidate]) -> list[Candidate]:
    """Of each superseded file that is nearer than the chosen blocks that replace it, the best block."""
    newer = {one.item.id: one.score for one in reversed(chosen)}
    found: dict[str, Candidate] = {}
    for one in ranking.candidates:
        successor = one.item.superseded_by
        if successor is not None and successor in newer and one.score >= newer[successor]:
            found.setdefault(one.item.id, one)
    return list(found.values())


def _current_only(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The candidates without those of superseded files whose successor is among them: its best block takes their place.

    That block has the score of the best that it replaces, if that is higher: it is what was asked for, as it is now.
    """
    there = {one.item.id for one in candidates}
    lifted: dict[str, float] = {}
    for one in candidates:
        if one.item.superseded_by in there:
            lifted[one.item.superseded_by] = max(one.score, lifted.get(one.item.superseded_by, one.score))
    found = []
    for one in candidates:
        if one.item.superseded_by not in there:
            found.append(one._replace(score=max(one.score, lifted.pop(one.item.id, one.score))))
    return sorted(found, key=lambda one: -one.score)


def _new(candidate: Candidate, held: set[str], weights: dict[str, float]) -> float:
    if not held:
        return 0.0
    return lexicon.coverage(weights, candidate.terms - held)


def _fitting(candidate: Candidate, room: int, ranking: Ranking) -> Candidate | None:
    """The block, or whole sentences, items or lines in a row of it that fit the room; None where it is too little."""
    if words(candidate.text) <= room:
        return candidate
    if room < LEAST_WORDS:
        return None
    block, source = candidate.block, candidate.source
    lead = 0 if block.lead is None else words(source[slice(*block.lead)])
    if lead > room // 2:
        lead, block = 0, block._replace(lead=None)
    pieces = [(block.start + one.start, block.start + one.end) for one in split(source[block.start : block.end])]
    best: tuple[float, Block] | None = None
    for first in range(len(pieces)):
        for last in range(len(pieces), first, -1):
            part = block._replace(start=pieces[first][0], end=pieces[last - 1][1])
            length = words(part.text(source))
            if length <= room:
                coverage = lexicon.coverage(ranking.weights, set(lexicon.terms(part.text(source))))
                if best is None or (coverage + length / 1000) > best[0]:
                    best = (coverage + length / 1000, part)
                break
    return None if best is None else candidate._replace(block=best[1])


def answering(
    candidate: Candidate,
    ranking: Ranking,
    vector: bytes | None,
    embedder: Embedder | None,
    cancel: Cancel,
) -> Answering | None:
    """The sentence of the block that answers best, cut to SENTENCE_WORDS. Raises ModelError when the embedder fails."""
    source = candidate.source
    found = [
        Sentence(start + one.start, start + one.end, one.text)
        for start, end in candidate.block.spans(source)
        for one in split(source[start:end])
        if not asks(one.text)
    ]
    if not found:
        return None
    held = [set(lexicon.terms(one.text)) for one in found]
    above = set(lexicon.terms(" ".join((candidate.item.title, *candidate.block.headings))))
    scores = []
    for at, some in enumerate(held):
        before = some | (held[at - 1] if at else above)
        coverage = lexicon.coverage(ranking.weights, some), lexicon.coverage(ranking.weights, before)
        scores.append(W_COVERAGE * coverage[0] + W_BEFORE * coverage[1])
    nearest = None
    if vector is not None and embedder is not None:
        first = sorted(range(len(found)), key=lambda at: -scores[at])[:MAX_SENTENCES]
        cosines = cosines_with(vector, [found[at].text for at in first], embedder, cancel)
        nearest = max(cosines)
        for at, cosine in zip(first, cosines, strict=True):
            scores[at] += cosine
        for at in set(range(len(found))) - set(first):
            scores[at] -= 1.0
    best = found[max(range(len(found)), key=lambda at: scores[at])]
    text = fit(best.text, ranking.weights, SENTENCE_WORDS)
    start = source.index(text, best.start)
    return Answering(start, start + len(text), text, nearest)
