"""An answer as it goes out, to every surface: the control file, the command line, evals."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, SerializerFunctionWrapHandler, model_serializer

from libraryfs.ask.evidence import Evidence

Grounding = Literal["grounded", "ungrounded", "missing"]
"""`grounded`: all that the answer says is in its citations; `ungrounded`: some of it is not (only a shaped answer can
be: its form is asked for); `missing`: no answer, as it is not in the library, did not come in time, or failed."""

NOT_IN_LIBRARY = "not in the library"
NEAREST = "no file answers this directly; nearest passages"


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)


class Citation(_Frozen):
    """`quote` is a substring of the file at the library path `path`, byte for byte."""

    id: str
    path: str
    quote: str
    line: int = Field(1, description="line of the file in which the quote begins, from 1")
    headings: tuple[str, ...] = Field((), description="the headings that the quote stands under, the outermost first")
    lead: str | None = Field(
        None, description="a lead-in or a table's header that belongs to the quote and stands apart from it, verbatim"
    )

    @property
    def text(self) -> str:
        """The quote after its lead-in."""
        return self.quote if self.lead is None else f"{self.lead}\n{self.quote}"


class ClaimEvidence(_Frozen):
    """Where a claim is supported: the row's id (of whatever store; the name is the protocol's), and the words."""

    memory_id: str
    path: str
    quote: str


class Claim(_Frozen):
    """One statement of the answer, and whether its evidence says it."""

    text: str
    supported: bool
    evidence: tuple[ClaimEvidence, ...] = ()


class Failure(_Frozen):
    """Why there is no answer, where that is an error: the same code and message as for a bad request."""

    code: str
    message: str


class Trace(_Frozen):
    """How the answer came about."""

    steps: dict[str, float] = Field({}, description="milliseconds of each step, in order")
    models: dict[str, str | None] = Field({}, description="embedding and language model; null: none set")
    attempts: int = Field(0, description="calls of the language model")
    rerank_method: Literal["linear", "none"] = "none"
    degraded: tuple[str, ...] = Field((), description="what did not run as it should, and why; empty when all is well")
    cut: tuple[str, ...] = Field((), description="what was left out of evidence, prompt or answer, and why")
    answered_by: Literal["model", "quote", "none"] = "none"
    notes: tuple[str, ...] = Field((), description="decisions on the way: why the model's words were not used, …")
    scores: dict[str, float] = Field({}, description="the figures that the decisions were made on")


class AskResult(_Frozen):
    """The answer and all that it rests on. `answer` is text, or the JSON value that `shape` asked for, or null."""

    question: str = Field("", description="what was asked: an answer that somebody else asked for can be told")
    answer: JsonValue = None
    grounding: Grounding = "missing"
    message: str | None = Field(None, description="why `answer` is null, in words")
    citations: tuple[Citation, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    truncated: bool = Field(False, description="the latency budget was up: evidence only")
    rejected_citations: tuple[str, ...] = Field((), description="handles that the model named and that do not exist")
    claims: tuple[Claim, ...] | None = Field(None, description="with `ground` only")
    conflicts: tuple[str, ...] | None = Field(None, description="what the shown files say differently, in words")
    sentence: str | None = Field(None, description="the sentence of the first citation that answers; at most 40 words")
    confidence: float | None = Field(None, description="how probable it is that what is shown holds the answer, 0 to 1")
    nearest: tuple[Citation, ...] | None = Field(None, description="where no file answers: the nearest blocks, if any")
    error: Failure | None = None
    trace: Trace = Trace()

    @model_serializer(mode="wrap")
    def _leave_out(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """What is optional is there only when it says something."""
        found: dict[str, Any] = handler(self)
        return {key: value for key, value in found.items() if value is not None or key not in _OPTIONAL}


_OPTIONAL = ("claims", "error", "message", "sentence", "confidence", "nearest", "conflicts")


class EvidenceFound(_Frozen):
    """Event: retrieval is done. Comes first, and once."""

    evidence: tuple[Evidence, ...]


class TextPiece(_Frozen):
    """Event: more of the answer, already checked. The pieces put together are the answer's text."""

    text: str
    quoted: bool = False
    """Whole blocks, at the end: a surface that shows them in its own way may pass this over."""


Event = EvidenceFound | TextPiece
