"""Blocks → an answer in words: the model's, claim by claim as far as it holds, or the blocks themselves."""

from collections.abc import Callable, Sequence
from typing import Final, Literal, NamedTuple

from libraryfs.ask import grounding, prompt
from libraryfs.ask import terms as lexicon
from libraryfs.ask.candidates import Candidate
from libraryfs.ask.choice import Answering
from libraryfs.ask.passages import Passage
from libraryfs.ask.result import Citation, Claim
from libraryfs.ask.sentences import Sentence, split, words
from libraryfs.errors import Cancelled, DeadlineExceeded, ModelError
from libraryfs.models.cancel import Cancel
from libraryfs.models.protocols import LanguageModel

MAX_WORDS: Final = prompt.MAX_WORDS
"""Of the model's answer; claims beyond it are cut."""
MAX_TOKENS: Final = 400

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
    sentence: str | None = None


def quoted(chosen: Sequence[Candidate], sentence: Answering | None, replaced: Sequence[Candidate], say: Say) -> Draft:
    """The chosen blocks, verbatim. The sentence that answers is put first, if it stands inside running text.

    `replaced` are blocks of superseded files that what is chosen replaces: cited, not shown.
    """
    if not chosen:
        return Draft(None, "none")
    texts = [one.text for one in chosen]
    if sentence is not None and _is_put_first(chosen[0], sentence):
        texts.insert(0, " ".join(sentence.text.split()))
    text = "\n\n".join(texts)
    say(text)
    cited = [grounding.cite(one) for one in chosen]
    claims = tuple(grounding.claim(one.text, one) for one in cited)
    whole = (*cited, *(grounding.cite(one) for one in replaced))
    return Draft(text, "quote", claims, whole, sentence=None if sentence is None else " ".join(sentence.text.split()))


def _is_put_first(first: Candidate, sentence: Answering) -> bool:
    """Whether it stands in running text, after something else."""
    start, end = first.block.spans(first.source)[0]
    if first.block.kind != "paragraph":
        start, end = first.block.lead or (0, 0)
    return start < sentence.start < end and first.source[start : sentence.start].strip() != ""


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
        self.reply = self.pending = self.gap = self.opening = ""
        self.claims: list[Claim] = []
        self.kept: list[str] = []
        self.citations: list[Citation] = []
        self.over = self.taken = 0
        self.refused = False

    def feed(self, piece: str) -> None:
        self.pending += piece
        self.reply += piece
        found = split(self.pending)
        whole = len(found) - 1  # the last may go on
        if whole > 0 and prompt.leading_handles(found[whole].text) is None:
            whole -= 1  # the handle of the one before is on its way
        if whole > 0:
            after = prompt.leading_handles(found[whole].text) or ""
            self._claims(found[:whole], after)
            self.gap = self.pending[found[whole - 1].end : found[whole].start]
            self.pending = self.pending[found[whole].start :]

    def _claims(self, found: Sequence[Sentence], after: str = "") -> None:
        """Each with what stands between it and the one before (a list's mark, a new line), and with its handles.

        A handle may stand after the full stop, at the head of the next sentence: it is the one before's that has none.
        `after` are the handles that what follows the last one begins with.
        """
        last = 0
        for at, sentence in enumerate(found):
            gap = self.pending[last : sentence.start] if at else self.gap + self.pending[: sentence.start]
            following = prompt.leading_handles(found[at + 1].text) or "" if at + 1 < len(found) else after
            gap = gap[gap.index("\n") :] if "\n" in gap else " " if self.kept else gap
            self._claim(sentence.text, following, gap)
            last = sentence.end

    def finish(self) -> Draft:
        self._claims(split(self.pending))
        named = prompt.handles(self.reply)
        rejected = tuple(name for name in named if name not in self.handles)
        dropped = sum(not claim.supported for claim in self.claims)
        notes: tuple[str, ...] = ()
        if dropped:
            notes += (f"{dropped} of {len(self.claims)} claims of the model are not in the evidence",)
        if self.over:
            notes += (f"{self.over} more claims were cut: an answer has at most {MAX_WORDS} words",)
        return Draft(
            "".join(self.kept).strip() or None,
            "model" if self.kept else "none",
            tuple(self.claims),
            tuple(dict.fromkeys(self.citations)),
            rejected,
            notes=notes,
            refused=self.refused and not self.kept,
        )

    def _claim(self, sentence: str, following: str, gap: str) -> None:
        taken, self.taken = self.taken, 0  # of the sentence's head, handles of the one before
        text = prompt.without_handles(sentence)
        if text.strip(" .!\"'*").upper() == prompt.NOT_FOUND:
            self.refused = True
            return
        if not any(char.isalnum() for char in text):
            return
        if text.endswith((":", "：")) and self._only_opens(text):
            self.opening += gap + text
            return
        named = prompt.handles(sentence[taken:])
        if not named:
            named, self.taken = prompt.handles(following), len(following)
        cited = [self.handles[name] for name in named if name in self.handles]
        held = grounding.support(text, self.question, self.passages, cited)
        if held is None:
            self.claims.append(grounding.claim(text, None))
            return
        if self.kept and words(" ".join([*self.kept, text])) > MAX_WORDS:
            self.over += 1
            return
        citation = grounding.citation(self.passages[held.passage], held.first, held.last)
        self.claims.append(grounding.claim(text, citation))
        piece = self.opening + gap + text
        self.opening = ""
        piece = piece if self.kept else piece.lstrip()
        self.say(piece)
        self.kept.append(piece)
        self.citations.append(citation)

    def _only_opens(self, text: str) -> bool:
        """Whether a lead-in says nothing that question and evidence do not have."""
        known = set(lexicon.terms(self.question)).union(*(some for one in self.passages for some in one.terms))
        return set(lexicon.terms(text)) <= known
