"""The claim check: does the evidence say what the answer says? And the quotes that show it.

A claim is supported by up to WINDOW sentences in a row of one file when all of these hold:

1. every number of the claim is in those sentences;
2. every name of the claim is in the file's passage or its title;
3. of the terms that are the claim's own, at least MIN_SHARE are in those sentences or the title; of those that it has
   from the question, at least MIN_ASKED_SHARE are in the passage or the title;
4. it says something that the question does not: a term or number of those sentences, or that it is not so;
5. MIN_ASKED_SHARE (rounded down) of the question's terms are in those sentences or the title, unless the claim is the
   cited text's own wording (VERBATIM of its terms, VERBATIM_TERMS or more), which a question in other words asks for;
6. it negates as the one among them that is nearest to it does.

The rules and the figures were chosen by measuring what they let through: see the decision record on answers.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from libraryfs.ask import terms as lexicon
from libraryfs.ask.blocks import Span
from libraryfs.ask.candidates import Candidate
from libraryfs.ask.evidence import Evidence
from libraryfs.ask.passages import Passage
from libraryfs.ask.result import Citation, Claim, ClaimEvidence

WINDOW: Final = 3
MIN_SHARE: Final = 0.75
MIN_ASKED_SHARE: Final = 1 / 3
VERBATIM: Final = 0.9
VERBATIM_TERMS: Final = 4


class Support(NamedTuple):
    """Sentences `first` up to `last` of a passage, and the share of the claim's terms that they hold."""

    passage: int
    first: int
    last: int
    share: float


class _Parts(NamedTuple):
    own: set[str]
    asked: set[str]
    question: set[str]
    numbers: set[str]
    new_numbers: set[str]
    names: set[str]
    negated: bool
    turned: bool
    """The claim negates and the question does not, or the other way round."""


def _parts(claim: str, question: str) -> _Parts:
    said, asked = _words(claim), _words(question)
    figures, negated = lexicon.numbers(claim), lexicon.negated(claim)
    turned = negated != lexicon.negated(question)
    new = figures - lexicon.numbers(question)
    return _Parts(said - asked, said & asked, asked, figures, new, lexicon.names(claim), negated, turned)


def _words(text: str) -> set[str]:
    """The terms without numbers, which have a rule of their own."""
    return {term for term in lexicon.terms(text) if not term[0].isdigit()}


def support(claim: str, question: str, passages: Sequence[Passage], cited: Iterable[int] = ()) -> Support | None:
    """Where the passages say the claim, those in `cited` before the others; None when they do not."""
    parts = _parts(claim, question)
    first = list(dict.fromkeys(cited))
    for group in (first, [number for number in range(len(passages)) if number not in first]):
        found = [
            one
            for number in group
            if (one := _in_passage(parts, number, passages[number], cited=number in first)) is not None
        ]
        if found:
            return max(found, key=lambda one: (one.share, one.first - one.last))
    return None


def holds(value: str, question: str, passages: Sequence[Passage]) -> Support | None:
    """Where the passages have this value, a word or a few: all its terms and numbers in up to WINDOW sentences.

    Rule 5 counts here too, and at least one term: 128 stands somewhere in every library.
    """
    wanted, figures = _words(value), lexicon.numbers(value)
    if not wanted and not figures:
        return None
    asked = _words(question)
    least = max(1, int(MIN_ASKED_SHARE * len(asked))) if asked else 0
    for number, passage in enumerate(passages):
        title = passage.title_terms
        for length in range(1, WINDOW + 1):
            for first in range(len(passage.sentences) - length + 1):
                held = set().union(*passage.terms[first : first + length])
                if len(asked & (held | title)) < least or not wanted <= held:
                    continue
                if figures <= lexicon.numbers(passage.quote(first, first + length)):
                    return Support(number, first, first + length, 1.0)
    return None


def _in_passage(parts: _Parts, number: int, passage: Passage, *, cited: bool) -> Support | None:
    title = passage.title_terms
    anywhere = title.union(*passage.terms)
    if not parts.names <= anywhere or len(parts.asked & anywhere) < MIN_ASKED_SHARE * len(parts.asked):
        return None
    best: Support | None = None
    for first in range(len(passage.sentences)):
        for last in range(first + 1, min(first + WINDOW, len(passage.sentences)) + 1):
            share = _share(parts, title, passage, first, last, cited=cited)
            if share is not None and (best is None or share > best.share + 1e-9):
                best = Support(number, first, last, share)
    return best


def _share(parts: _Parts, title: set[str], passage: Passage, first: int, last: int, *, cited: bool) -> float | None:
    """The share of the claim's terms and numbers in these sentences; None when one of the rules is broken."""
    held = set().union(*passage.terms[first:last])
    if len(parts.own & (held | title)) < MIN_SHARE * len(parts.own):
        return None
    every = parts.own | parts.asked
    verbatim = cited and len(every) >= VERBATIM_TERMS and len(every & held) >= VERBATIM * len(every)
    if not verbatim and len(parts.question & (held | title)) < int(MIN_ASKED_SHARE * len(parts.question)):
        return None
    if not (parts.own & held or parts.new_numbers or parts.turned):
        return None
    nearest = max(range(first, last), key=lambda at: len(every & passage.terms[at]))
    if parts.negated != lexicon.negated(passage.sentences[nearest].text):
        return None
    if not parts.numbers <= lexicon.numbers(passage.quote(first, last)):
        return None
    return (len(every & held) + len(parts.numbers)) / (len(every) + len(parts.numbers))


def citation(passage: Passage, first: int, last: int) -> Citation:
    """The citation of some sentences in a row."""
    start = passage.sentences[first].start
    return _citation(passage.item, passage.text, (start, passage.sentences[last - 1].end), passage.block.headings)


def cite(candidate: Candidate) -> Citation:
    """The citation of a block."""
    block, source = candidate.block, candidate.source
    *lead, rest = block.spans(source)
    made = _citation(candidate.item, source, rest, block.headings)
    return made.model_copy(update={"lead": source[slice(*lead[0])]}) if lead else made


def _citation(item: Evidence, source: str, span: Span, headings: tuple[str, ...]) -> Citation:
    start, end = span
    line = 1 + source.count("\n", 0, start)
    return Citation(id=item.id, path=item.path, quote=source[start:end], line=line, headings=headings)


def claim(text: str, found: Citation | None) -> Claim:
    """A claim with its verdict."""
    if found is None:
        return Claim(text=text, supported=False)
    evidence = ClaimEvidence(memory_id=found.id, path=found.path, quote=found.quote)
    return Claim(text=text, supported=True, evidence=(evidence,))
