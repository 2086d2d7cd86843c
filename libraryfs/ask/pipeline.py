"""request → retrieval → blocks → answer → grounding and shape → result. The one way to ask, for every surface."""

import time
from collections.abc import Callable, Iterator, Sequence, Sized
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeVar

from libraryfs.ask import answer, bands, candidates, choice, conflicts, exam, grounding, passages, prompt
from libraryfs.ask.answer import Draft
from libraryfs.ask.evidence import Retrieval
from libraryfs.ask.request import AskRequest
from libraryfs.ask.result import (
    NEAREST,
    NOT_IN_LIBRARY,
    AskResult,
    Event,
    EvidenceFound,
    Failure,
    TextPiece,
    Trace,
)
from libraryfs.ask.retrieval import retrieve
from libraryfs.errors import DeadlineExceeded, ModelError, ModelUnavailable, ShapeNotSatisfied
from libraryfs.library.resolver import Library
from libraryfs.models.cancel import Cancel, within
from libraryfs.models.protocols import Embedder, LanguageModel

if TYPE_CHECKING:
    from libraryfs.ask.shaped import Shaped

Made = TypeVar("Made")

READABLE: Final = 0.5
"""Where the embedding model reads the question with less certainty than this, blocks and bands go by words alone."""
NAME_SECONDS: Final = 0.02


class Models(NamedTuple):
    """The models to ask with; None where none is set. `Models(factory.embedder(s), factory.language_model(s))`."""

    embedder: Embedder | None
    language_model: LanguageModel | None


def ask(
    library: Library,
    models: Models,
    request: AskRequest,
    cancel: Cancel | None = None,
    on_event: Callable[[Event], None] | None = None,
    since: float | None = None,
) -> AskResult:
    """The answer, checked against its evidence. Blocks: call it in a thread, with a Library of that thread.

    `since` is when the question was asked, on the clock of `time.monotonic()`: the latency budget counts from there.
    `on_event` is called in this thread: EvidenceFound once, then TextPiece for each checked piece of the answer.
    Raises PathNotFound, InvalidPath, SnapshotError, Cancelled. Models that fail raise nothing: the result says so.
    """
    outer = cancel or Cancel()
    inner = Cancel(_deadline(request, outer, time.monotonic() if since is None else since))
    with outer.watch(inner.cancel):
        return _Ask(library, models, request, inner, on_event or (lambda event: None)).run()


def _deadline(request: AskRequest, outer: Cancel, since: float) -> float | None:
    budget = request.latency_budget_ms
    own = None if budget is None else since + budget / 1000
    return min((moment for moment in (own, outer.deadline) if moment is not None), default=None)


class _Ask:
    """One question on its way, and the trace of it."""

    def __init__(
        self, library: Library, models: Models, request: AskRequest, cancel: Cancel, tell: Callable[[Event], None]
    ) -> None:
        self.library = library
        self.models = models
        self.request = request
        self.cancel = cancel
        self.tell = tell
        self.found = Retrieval()
        self.steps: dict[str, float] = {}
        self.degraded: list[str] = []
        self.cut: list[str] = []
        self.notes: list[str] = []
        self.scores: dict[str, float] = {}
        self.attempts = 0
        self.writes: bool | None = None
        self.chosen: list[candidates.Candidate] = []
        self.replaced: list[candidates.Candidate] = []
        self.sentence: choice.Answering | None = None
        self.outlook = bands.Outlook(0.0, {})

    def run(self) -> AskResult:
        self._retrieve()
        if not self.found.evidence:
            return self._missing(NOT_IN_LIBRARY)
        try:
            self.cancel.check()
            self._read()
            if self.outlook.hopeless or (self.outlook.band != "answer" and not self._writer()):
                return self._missing(self._without_answer())
            if self.request.shape is not None:
                return self._shaped(self.request.shape)
            return self._answered(self._draft())
        except DeadlineExceeded:
            return self._missing("no answer in the time given; the evidence is what was found", truncated=True)

    @contextmanager
    def _timed(self, step: str) -> Iterator[None]:
        began = time.perf_counter()
        try:
            yield
        finally:
            self.steps[step] = round(self.steps.get(step, 0.0) + (time.perf_counter() - began) * 1000, 3)

    def _retrieve(self) -> None:
        with self._timed("resolve"):
            scopes = [self.library.resolve(path) for path in self.request.paths]
        self.found = retrieve(
            self.library,
            self.models.embedder,
            self.request.question,
            scopes,
            retrieval=self.request.retrieval,
            cancel=self.cancel,
        )
        self.steps |= self.found.milliseconds
        self.degraded += self.found.degraded
        self.notes += self.found.notes
        self.tell(EvidenceFound(evidence=self.found.evidence))

    @property
    def vector(self) -> bytes | None:
        """The question's vector, where the embedding model reads the question and the texts."""
        readable = self.found.readable
        return self.found.vector if readable is None or readable >= READABLE else None

    def _read(self) -> None:
        """The files' blocks ranked, the few that are shown chosen, and how probable it is that they hold the answer."""
        with self._timed("read"):
            readings = passages.read(self.library, self.found.evidence)
            if len(self.found.evidence) > len(readings):
                self.cut.append(f"evidence: the first {len(readings)} of {len(self.found.evidence)} files were read")
        with self._timed("rank"):
            self.ranking = self._with_embedder(
                lambda embedder: candidates.rank(self.request.question, readings, self.vector, embedder, self.cancel)
            )
            self.chosen = choice.choose(self.ranking)
            self.replaced = choice.replaced(self.ranking, self.chosen)
        with self._timed("sentence"):
            self.sentence = self._find_sentence(self.chosen)
            # What replaces a file that answers answers too, in whatever words.
            asked = [*self.replaced[:1], *self.chosen]
            sentence = self._find_sentence(asked) if self.replaced else self.sentence
        self.outlook = bands.outlook(self.ranking, asked, sentence)
        self.scores = {name: round(figure, 4) for name, figure in self.outlook.figures.items()}

    def _with_embedder(self, make: Callable[[Embedder | None], Made]) -> Made:
        """What `make` gives with the embedder; where that fails, without, and `degraded` says so."""
        embedder = self.models.embedder if self.vector is not None else None
        try:
            return make(embedder)
        except DeadlineExceeded:
            raise
        except ModelError as error:
            if self.cancel.cancelled:
                raise
            self.degraded.append(f"{error}: blocks were ranked by their words")
            return make(None)

    def _find_sentence(self, blocks: Sequence[candidates.Candidate]) -> choice.Answering | None:
        if not blocks:
            return None
        first, vector = blocks[0], self.vector
        return self._with_embedder(
            lambda embedder: choice.answering(first, self.ranking, vector, embedder, self.cancel)
        )

    def _passages(self) -> list[passages.Passage]:
        """The best blocks as they are shown to a language model, those that were chosen first."""
        chosen = {(one.reading, one.block.start) for one in self.chosen}
        every = [
            *self.chosen,
            *(one for one in self.ranking.candidates if (one.reading, one.block.start) not in chosen),
        ]
        return [passages.passage(one.item, one.source, one.block) for one in every[: 2 * prompt.MAX_BLOCKS]]

    def _writer(self) -> LanguageModel | None:
        """The language model, if there is one that passed its reading test."""
        model = self.models.language_model
        if model is None:
            return None
        if self.writes is None:
            self.writes = False
            with self._timed("exam"), self._failures("the best blocks are quoted"):
                within(self.cancel, lambda: model.model)
                result = exam.known(model)
                if result is None or result.writes:  # one that does not write is not started
                    self._ready(model)
                result = result or exam.sit(model, self.cancel)
                self.writes = result.writes
                if not result.writes:
                    self.notes.append(
                        f"the language model missed {result.missed} of {result.asked} questions of its reading test: "
                        "it does not write answers, the best blocks are quoted"
                    )
        return model if self.writes else None

    def _ready(self, model: LanguageModel) -> None:
        """Has it checked and loaded, in the time that there is. Raises ModelError."""
        within(self.cancel, lambda: (model.model, model.context))

    @contextmanager
    def _failures(self, instead: str) -> Iterator[None]:
        """A model's failure becomes a line in `degraded`; the end of the time or of the request goes on up."""
        try:
            yield
        except DeadlineExceeded:
            raise
        except ModelError as error:
            if self.cancel.cancelled:
                raise
            self.degraded.append(f"{error}: {instead}")

    def _draft(self) -> Draft:
        """The model's answer where it may write and what it says holds; else the blocks."""
        writer = self._writer()
        if self.models.language_model is None:
            self.degraded.append("no language model is set: the best blocks are quoted")
        if writer is not None:
            with self._timed("generate"), self._failures("the best blocks are quoted"):
                draft = self._written(writer)
                if draft.text is not None or draft.refused:
                    return draft
                self.notes += (*draft.notes, "nothing of the model's answer is in the evidence: blocks are quoted")
                if self.outlook.band != "answer":
                    return draft._replace(notes=())
        with self._timed("quote"):
            return answer.quoted(self.chosen, self.sentence, self.replaced, self._say_blocks)

    def _written(self, writer: LanguageModel) -> Draft:
        read = self._passages()
        shown = prompt.answer(self.request.question, read, writer.context - answer.MAX_TOKENS)
        self._note_left_out(shown.handles)
        if not shown.handles:
            return Draft(None, "none", notes=("the model's window has no room for any evidence",))
        self.attempts += 1
        return answer.written(writer, self.request.question, read, shown, self.cancel, self._say)

    def _note_left_out(self, handles: Sized) -> None:
        if left := len(self.ranking.candidates) - len(handles):
            self.cut.append(f"prompt: {left} blocks of the evidence were left out, the least near")

    def _say(self, text: str) -> None:
        self.tell(TextPiece(text=text))

    def _say_blocks(self, text: str) -> None:
        self.tell(TextPiece(text=text, quoted=True))

    def _answered(self, draft: Draft) -> AskResult:
        self.cut += draft.cut
        self.notes += draft.notes
        self.degraded += draft.degraded
        if draft.text is None:
            return self._missing(NOT_IN_LIBRARY if draft.refused else self._without_answer(), draft)
        return self._result(
            answer=draft.text,
            grounding="grounded",
            citations=draft.citations,
            rejected_citations=draft.rejected,
            claims=draft.claims if self.request.ground else None,
            by=draft.by,
            sentence=draft.sentence,
            conflicts=self._conflicts() if draft.by == "quote" else None,
        )

    def _conflicts(self) -> tuple[str, ...] | None:
        return conflicts.conflicts(self.request.question, self.ranking, self.chosen) or None

    def _shaped(self, schema: dict[str, Any]) -> AskResult:
        from libraryfs.ask import shaped  # jsonschema is loaded by those that use it

        model = self.models.language_model
        read = self._passages()
        if model is None or (model.supports_likelihoods and self._writer() is None):
            with self._timed("extract"):
                found = shaped.extracted(self.request.question, read, schema, self.cancel)
            if found is not None:
                return self._shaped_as(found)
        if model is None:
            return self._failed(
                ModelUnavailable.code,
                "the files do not state it in this shape, and no language model is set to put it so: set LIBRARYFS_LLM",
            )
        sentence = None if self.sentence is None else " ".join(self.sentence.text.split())
        try:
            with self._timed("generate"):
                self._ready(model)
                made = shaped.answer(model, self.request.question, read, sentence, schema, self.cancel)
        except DeadlineExceeded:
            raise
        except ModelError as error:
            if self.cancel.cancelled:
                raise
            return self._failed(error.code, error.message)
        self.attempts += made.attempts
        if made.left_out:
            self.cut.append(f"prompt: {made.left_out} blocks of the evidence were left out, the least near")
        if made.errors:
            wrong = "; ".join(made.errors)
            return self._failed(
                ShapeNotSatisfied.code, f"after {made.attempts} attempts the answer is not of this shape: {wrong}"
            )
        if made.quoted:
            self.notes.append("what the model said that is not in the evidence gave way to what the evidence states")
        return self._shaped_as(made)

    def _shaped_as(self, made: "Shaped") -> AskResult:
        held = all(claim.supported for claim in made.claims)
        return self._result(
            answer=made.value,
            grounding="grounded" if held else "ungrounded",
            citations=made.citations,
            claims=made.claims if self.request.ground else None,
            by="quote" if made.quoted else "model",
        )

    def _without_answer(self) -> str:
        return NEAREST if self.chosen and self.outlook.band != "none" else NOT_IN_LIBRARY

    def _failed(self, code: str, message: str) -> AskResult:
        return self._result(error=Failure(code=code, message=message), grounding="missing")

    def _missing(self, message: str, draft: Draft | None = None, *, truncated: bool = False) -> AskResult:
        return self._result(
            message=message,
            nearest=tuple(grounding.cite(one) for one in self.chosen) if message == NEAREST else None,
            grounding="missing",
            truncated=truncated,
            rejected_citations=draft.rejected if draft else (),
            claims=(draft.claims if draft else ()) if self.request.ground else None,
        )

    def _result(self, *, by: Literal["model", "quote", "none"] = "none", **fields: Any) -> AskResult:
        """The result with these fields, and what is the same for all."""
        trace = Trace(
            steps=self.steps,
            models={
                "embedding": self._name(self.models.embedder),
                "language_model": self._name(self.models.language_model),
            },
            attempts=self.attempts,
            rerank_method="linear" if self.found.sources > 1 else "none",
            degraded=tuple(dict.fromkeys(self.degraded)),
            cut=tuple(self.cut),
            answered_by=by,
            notes=tuple(self.notes),
            scores=self.scores,
        )
        return AskResult(
            question=self.request.question,
            confidence=round(self.outlook.probability, 3) if self.outlook.figures else None,
            evidence=self.found.evidence,
            trace=trace,
            **fields,
        )

    def _name(self, model: Embedder | LanguageModel | None) -> str | None:
        """Its name, which may be a checksum of its weights: with a deadline, only where that is at hand."""
        soon = Cancel() if self.cancel.deadline is None else Cancel.after(NAME_SECONDS)
        try:
            return None if model is None else within(soon, lambda: model.model)
        except ModelError:  # one that cannot be used has no name either; `degraded` says why
            return None
