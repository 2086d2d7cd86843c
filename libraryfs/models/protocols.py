"""What the rest of libraryfs knows of a model. Every call blocks: call it in a thread, never on an event loop.

Errors, all of them `ModelError`: `ModelUnavailable` (cannot be used as set, with how to fix it), `ModelCrashed` (its
process died; the next call starts it again), `ModelFailed` (it answered with an error), `PromptTooLong`, `ModelBusy`
(its queue is full), `DeadlineExceeded`, `Cancelled`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias, TypedDict

from libraryfs.models.cancel import Cancel

if TYPE_CHECKING:  # numpy comes with the extra `models`; a mount that asks nothing does not load it
    import numpy as np
    from numpy.typing import NDArray

Vectors: TypeAlias = "NDArray[np.float32]"
FinishReason = Literal["stop", "length"]


class Message(TypedDict):
    """One turn of a chat."""

    role: Literal["system", "user", "assistant"]
    content: str


class Generation(NamedTuple):
    """A model's reply. `finish_reason` is "length" when `max_tokens` or the context cut it."""

    text: str
    finish_reason: FinishReason
    prompt_tokens: int
    completion_tokens: int


class Likelihood(NamedTuple):
    """How probable a continuation is after a prompt."""

    log_probability: float
    """Natural logarithm of the probability of the whole continuation: the sum over its tokens."""
    tokens: int

    @property
    def mean(self) -> float:
        """Log-probability per token: comparable between continuations of different lengths."""
        return self.log_probability / max(1, self.tokens)


class Embedder(Protocol):
    """Text → unit vectors. Nothing loads before the first call that needs it."""

    @property
    def model(self) -> str:
        """Name and checksum or endpoint; two embedders of one `model` give interchangeable vectors."""

    @property
    def dimension(self) -> int:
        """Length of a vector. May ask the endpoint once."""

    @property
    def window(self) -> int:
        """Tokens of text that one vector can hold, the model's own start and end marks taken off."""

    def embed(self, texts: Sequence[str], cancel: Cancel) -> Vectors:
        """float32 (len(texts), dimension), L2-normalised, in the order given.

        A text longer than the window is cut by the model: chunk it first. Bulk calls of some hundred texts are fastest.
        """

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """The text's tokens as (start, end) character positions. Never loads the model."""

    def close(self) -> None:
        """Close the connections behind it; the next call opens them again. A worker on this machine ends when idle."""


class LanguageModel(Protocol):
    """Chat → text, at temperature 0 the same text every time. Nothing loads before the first call that needs it."""

    @property
    def model(self) -> str:
        """Name and checksum or endpoint."""

    @property
    def context(self) -> int:
        """Tokens that prompt and reply can have together."""

    @property
    def supports_likelihoods(self) -> bool:
        """Whether `likelihoods` can be called; false for endpoints, which do not give a prompt's probabilities."""

    def generate(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int,
        cancel: Cancel,
        temperature: float = 0.0,
        seed: int = 0,
        schema: dict[str, Any] | None = None,
        stop: Sequence[str] = (),
        on_text: Callable[[str], None] | None = None,
    ) -> Generation:
        """The reply to a chat. With `schema`, decoding is constrained to JSON of that JSON Schema (validate it still: a
        reply that `max_tokens` cut is not whole). `on_text` gets each new piece of text, in the caller's thread."""

    def likelihoods(self, messages: Sequence[Message], candidates: Sequence[str], cancel: Cancel) -> list[Likelihood]:
        """For each candidate, its likelihood as the assistant's reply to the chat (its end mark not counted)."""

    def count_tokens(self, texts: Sequence[str], cancel: Cancel) -> list[int]:
        """Tokens of each text; an estimate from above for endpoints that cannot tell."""

    def close(self) -> None:
        """Close the connections behind it; the next call opens them again. A worker on this machine ends when idle."""
