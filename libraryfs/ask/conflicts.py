"""Do the blocks that are shown contradict each other? What is said of it, in words.

Two sentences of two current files conflict where both speak of the question in much the same words and differ in their
numbers, or in that one negates. This sees other figures and plain negation; it does not see other names or opinions.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Final, NamedTuple

from libraryfs.ask import terms as lexicon
from libraryfs.ask.candidates import Candidate, Ranking
from libraryfs.ask.sentences import split

COVERED: Final = 0.6
"""Of the question's terms that the blocks have, by each of the two sentences, weighed by rarity."""
ALIKE: Final = 0.5
"""Of the terms of the shorter sentence, in the other."""


class _Said(NamedTuple):
    text: str
    terms: set[str]
    numbers: set[str]
    negated: bool


def conflicts(question: str, ranking: Ranking, chosen: Sequence[Candidate]) -> tuple[str, ...]:
    """One line for each pair of blocks that differ, with their places among the citations; () where they agree."""
    there = set().union(*(lexicon.terms(one.text) for one in chosen))
    weights = {term: weight for term, weight in ranking.weights.items() if term in there}
    said = [list(_sentences(one, weights)) for one in chosen]
    asked = lexicon.numbers(question)
    found = []
    for (left, one), (right, other) in combinations(enumerate(chosen, 1), 2):
        if one.item.id == other.item.id or one.item.superseded_by or other.item.superseded_by:
            continue
        pairs = ((a, b) for a in said[left - 1] for b in said[right - 1] if _differ(a, b, asked))
        if pair := next(pairs, None):
            found.append(f"the files differ: [{left}] says “{pair[0].text}”, [{right}] says “{pair[1].text}”")
    return tuple(found)


def _sentences(candidate: Candidate, weights: dict[str, float]) -> Iterator[_Said]:
    """The sentences of a block that cover the question."""
    for start, end in candidate.block.spans(candidate.source):
        for sentence in split(candidate.source[start:end]):
            held = set(lexicon.terms(sentence.text))
            if lexicon.coverage(weights, held) >= COVERED:
                text = " ".join(sentence.text.split())
                words = {term for term in held if not term[0].isdigit()}
                yield _Said(text, words, lexicon.numbers(text), lexicon.negated(text))


def _differ(one: _Said, other: _Said, asked: set[str]) -> bool:
    shared = len(one.terms & other.terms)
    if shared < 2 or shared < ALIKE * min(len(one.terms), len(other.terms)):
        return False
    new, others = one.numbers - asked, other.numbers - asked
    if new and others:
        return not (new & others)
    return one.negated != other.negated and not (new or others)
