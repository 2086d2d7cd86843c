"""Passages → an answer in words: the model's, claim by claim as far as it holds, or the best sentence, quoted."""

from collections.abc import Callable, Sequence
from typing import Final, Literal, NamedTuple

from libraryfs.ask import grounding, prompt
from libraryfs.ask.fit import MAX_WORDS as QUOTE_WORDS
from libraryfs.ask.fit import fit
from libraryfs.ask.passages import Passage
from libraryfs.ask.result import Citation, Claim
from libraryfs.ask.selection import Candidate, Ranking
from libraryfs.ask.sentences import split, words
from libraryfs.errors import Cancelled, DeadlineExceeded, ModelError
from libraryfs.models.cancel import Cancel
from libraryfs.models.protocols import LanguageModel

MAX_WORDS: Final = 40
"""Of the model's answer; claims beyond it are cut."""
MAX_TOKENS: Final = 160

Say = Callable[[str], None]


class Draft(NamedTuple):
    """An answer with what it rests on. `text` None: nothing that holds was said."""

    text: str | None
    by: Literal["model", "quote", "none"]
    claims: tuple[Claim, ...] = ()
    citations: tuple[Citation, ...] = ()
    rejected: tuple[str, ...] = ()
    cut: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    refused: bool = False
    """The model said that the evidence does not hold the answer."""
    degraded: tuple[str, ...] = ()


def quoted(passages: Sequence[Passage], ranking: Ranking, say: Say) -> Draft:
    """The best sentence of all, or the part of it that answers; of a superseded file, its successor's.

    A short one comes with a neighbour of its paragraph: what answers is often in the sentence after ("They are …").
    """
    best = ranking.best
    if best is None:
        return Draft(None, "none")
    passage = passages[best.passage]
    first, last = _with_neighbour(passage, best, ranking)
    whole = passage.quote(first, last)
    text = " ".join(fit(whole, ranking.weights).split())
    say(text)
    cited = [grounding.citation(passage, first, last)]
    older = next((one for one in ranking.candidates[1:] if one.score > best.score), None)
    if older is not None and passages[older.passage].item.superseded_by == passage.item.id:
        cited.append(grounding.citation(passages[older.passage], older.at, older.at + 1))
    cut = () if words(text) == words(whole) else (f"answer: {words(text)} of the {words(whole)} words of the sentence",)
    return Draft(text, "quote", (grounding.claim(text, cited[0]),), tuple(cited), cut=cut)


def _with_neighbour(passage: Passage, best: Candidate, ranking: Ranking) -> tuple[int, int]:
    """The range of the sentence, and of the better one of its neighbours where both are short enough to be quoted."""
    near = {best.at - 1: (best.at - 1, best.at + 1), best.at + 1: (best.at, best.at + 2)}
    for other in ranking.candidates:
        if other.passage != best.passage or other.at not in near:
            continue
        first, last = near[other.at]
        left, right = passage.sentences[first], passage.sentences[last - 1]
        between = passage.text[left.end : right.start]
        if not between.strip() and between.count("\n") < 2 and words(passage.quote(first, last)) <= QUOTE_WORDS:
            return first, last
    return best.at, best.at + 1


def written(
    model: LanguageModel, question: str, passages: Sequence[Passage], shown: prompt.Shown, cancel: Cancel, say: Say
) -> Draft:
    """The model's answer without the claims that the evidence does not hold. Raises ModelError.

    Each claim is given to `say` once it is checked, while the model goes on; what was said stays said if it then fails.
    """
    check = _Check(question, passages, shown.handles, say)
    try:
        model.generate(shown.messages, max_tokens=MAX_TOKENS, cancel=cancel, on_text=check.feed)
    except ModelError as error:
        if not check.kept or isinstance(error, Cancelled | DeadlineExceeded):
            raise
        check.pending = ""
        return check.finish()._replace(degraded=(f"{error}: the answer's end is missing",))
    return check.finish()


class _Check:
    """Takes the reply's text as it comes, and lets through what holds."""

    def __init__(self, question: str, passages: Sequence[Passage], handles: dict[str, int], say: Say) -> None:
        self.question = question
        self.passages = passages
        self.handles = handles
        self.say = say
        self.reply = self.pending = ""
        self.claims: list[Claim] = []
        self.kept: list[str] = []
        self.citations: list[Citation] = []
        self.over = 0
        self.refused = False

    def feed(self, piece: str) -> None:
        self.pending += piece
        self.reply += piece
        found = split(self.pending)
        if len(found) > 1:  # all but the last are whole
            for sentence in found[:-1]:
                self._claim(sentence.text)
            self.pending = self.pending[found[-1].start :]

    def finish(self) -> Draft:
        for sentence in split(self.pending):
            self._claim(sentence.text)
        named = prompt.handles(self.reply)
        rejected = tuple(name for name in named if name not in self.handles)
        dropped = sum(not claim.supported for claim in self.claims)
        notes: tuple[str, ...] = ()
        if dropped:
            notes += (f"{dropped} of {len(self.claims)} claims of the model are not in the evidence",)
        if self.over:
            notes += (f"{self.over} more claims were cut: an answer has at most {MAX_WORDS} words",)
        return Draft(
            " ".join(self.kept) or None,
            "model" if self.kept else "none",
            tuple(self.claims),
            tuple(dict.fromkeys(self.citations)),
            rejected,
            notes=notes,
            refused=self.refused and not self.claims,
        )

    def _claim(self, sentence: str) -> None:
        text = prompt.without_handles(sentence)
        if text.strip(" .!\"'").upper() == prompt.NOT_FOUND:
            self.refused = True
            return
        if not any(char.isalnum() for char in text):
            return
        cited = [self.handles[name] for name in prompt.handles(sentence) if name in self.handles]
        held = grounding.support(text, self.question, self.passages, cited)
        if held is None:
            self.claims.append(grounding.claim(text, None))
            return
        if self.kept and words(" ".join([*self.kept, text])) > MAX_WORDS:
            self.over += 1
            return
        citation = grounding.citation(self.passages[held.passage], held.first, held.last)
        self.claims.append(grounding.claim(text, citation))
        self.say(f" {text}" if self.kept else text)
        self.kept.append(text)
        self.citations.append(citation)
