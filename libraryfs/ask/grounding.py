"""The claim check: does the evidence say what the answer says? And the quotes that show it.

A claim is supported by up to WINDOW sentences in a row of one file when all of these hold:

1. every number of the claim is in those sentences;
2. every name of the claim is in the file's passage or its title;
3. of the claim's other terms, at least MIN_SHARE are in those sentences, the title or the question;
4. it says at least one thing that the question does not, and that is in those sentences;
5. it negates where they negate, and only there.

The rules and the two figures were chosen by measuring what they let through: see the decision record on answers.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from libraryfs.ask import terms as lexicon
from libraryfs.ask.passages import Passage
from libraryfs.ask.result import Citation, Claim, ClaimEvidence

WINDOW: Final = 3
MIN_SHARE: Final = 0.75


class Support(NamedTuple):
    """Sentences `first` up to `last` of a passage, and the share of the claim's terms that they hold."""

    passage: int
    first: int
    last: int
    share: float


class _Parts(NamedTuple):
    terms: set[str]
    numbers: set[str]
    names: set[str]
    negated: bool


def support(claim: str, question: str, passages: Sequence[Passage], cited: Iterable[int] = ()) -> Support | None:
    """Where the passages say the claim, those in `cited` before the others; None when they do not."""
    parts = _Parts(set(lexicon.terms(claim)), lexicon.numbers(claim), lexicon.names(claim), lexicon.negated(claim))
    asked = set(lexicon.terms(question))
    first = list(dict.fromkeys(cited))
    for group in (first, [number for number in range(len(passages)) if number not in first]):
        found = [one for number in group if (one := _in_passage(parts, asked, number, passages[number])) is not None]
        if found:
            return max(found, key=lambda one: (one.share, one.first - one.last))
    return None


def holds(value: str, passages: Sequence[Passage]) -> Support | None:
    """Where the passages have this value, a word or a few: all its terms and numbers in up to WINDOW sentences."""
    wanted, figures = set(lexicon.terms(value)), lexicon.numbers(value)
    if not wanted and not figures:
        return None
    for number, passage in enumerate(passages):
        for length in range(1, WINDOW + 1):
            for first in range(len(passage.sentences) - length + 1):
                held = set().union(*passage.terms[first : first + length])
                if wanted <= held and figures <= lexicon.numbers(passage.quote(first, first + length)):
                    return Support(number, first, first + length, 1.0)
    return None


def _in_passage(parts: _Parts, asked: set[str], number: int, passage: Passage) -> Support | None:
    title = passage.title_terms
    anywhere = title.union(*passage.terms) if passage.terms else title
    if not parts.names <= anywhere:
        return None
    best: Support | None = None
    for first in range(len(passage.sentences)):
        for last in range(first + 1, min(first + WINDOW, len(passage.sentences)) + 1):
            share = _share(parts, asked, title, passage, first, last)
            if share is not None and (best is None or share > best.share + 1e-9):
                best = Support(number, first, last, share)
    return best


def _share(parts: _Parts, asked: set[str], title: set[str], passage: Passage, first: int, last: int) -> float | None:
    """The share of the claim's terms in these sentences; None when one of the rules is broken."""
    held = set().union(*passage.terms[first:last])
    if not (parts.terms & held) - asked or len(parts.terms & (held | title | asked)) < MIN_SHARE * len(parts.terms):
        return None
    text = passage.quote(first, last)
    if not parts.numbers <= lexicon.numbers(text) or parts.negated != lexicon.negated(text):
        return None
    return len(parts.terms & held) / len(parts.terms)


def citation(passage: Passage, first: int, last: int) -> Citation:
    """The citation of some sentences in a row."""
    return Citation(id=passage.item.id, path=passage.item.path, quote=passage.quote(first, last))


def claim(text: str, found: Citation | None) -> Claim:
    """A claim with its verdict."""
    if found is None:
        return Claim(text=text, supported=False)
    evidence = ClaimEvidence(memory_id=found.id, path=found.path, quote=found.quote)
    return Claim(text=text, supported=True, evidence=(evidence,))
