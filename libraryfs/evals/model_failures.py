"""Models that remember how they failed: an answer hides it (it falls back), a pass rate must not."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from libraryfs.ask.pipeline import Models
from libraryfs.errors import ModelBusy, ModelCrashed, ModelError, ModelUnavailable
from libraryfs.models.cancel import Cancel
from libraryfs.models.protocols import Embedder, Generation, LanguageModel, Likelihood, Message, Vectors

_Result = TypeVar("_Result")
_FATAL = (ModelCrashed, ModelUnavailable, ModelBusy)


class Failures:
    """The first failure that makes further answers something other than this model's."""

    def __init__(self) -> None:
        self.first: ModelError | None = None
        self.count = 0
        """Of any kind: an answer in whose making one fell is not to be kept."""

    def see(self, call: Callable[[], _Result]) -> _Result:
        """The call's result; a fatal failure is remembered and raised on."""
        try:
            return call()
        except ModelError as error:
            self.count += 1
            if isinstance(error, _FATAL):
                self.first = self.first or error
            raise

    def check(self) -> None:
        """Raises the failure that was seen, if one was."""
        if self.first is not None:
            raise self.first


def watched(models: Models, failures: Failures) -> Models:
    """The same models, watched."""
    return Models(
        None if models.embedder is None else WatchedEmbedder(models.embedder, failures),
        None if models.language_model is None else WatchedLanguageModel(models.language_model, failures),
    )


class WatchedEmbedder:
    """An Embedder."""

    def __init__(self, inner: Embedder, failures: Failures) -> None:
        self._inner = inner
        self._failures = failures

    @property
    def model(self) -> str:
        """As the protocol says."""
        return self._failures.see(lambda: self._inner.model)

    @property
    def dimension(self) -> int:
        """As the protocol says."""
        return self._failures.see(lambda: self._inner.dimension)

    @property
    def window(self) -> int:
        """As the protocol says."""
        return self._failures.see(lambda: self._inner.window)

    def embed(self, texts: Sequence[str], cancel: Cancel) -> Vectors:
        """As the protocol says."""
        return self._failures.see(lambda: self._inner.embed(texts, cancel))

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """As the protocol says."""
        return self._inner.offsets(text)

    def close(self) -> None:
        """Nothing: the models are the caller's."""


class WatchedLanguageModel:
    """A LanguageModel."""

    def __init__(self, inner: LanguageModel, failures: Failures) -> None:
        self._inner = inner
        self._failures = failures

    @property
    def model(self) -> str:
        """As the protocol says."""
        return self._failures.see(lambda: self._inner.model)

    @property
    def context(self) -> int:
        """As the protocol says."""
        return self._failures.see(lambda: self._inner.context)

    @property
    def supports_likelihoods(self) -> bool:
        """As the protocol says."""
        return self._inner.supports_likelihoods

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
        """As the protocol says."""
        return self._failures.see(
            lambda: self._inner.generate(
                messages,
                max_tokens=max_tokens,
                cancel=cancel,
                temperature=temperature,
                seed=seed,
                schema=schema,
                stop=stop,
                on_text=on_text,
            )
        )

    def likelihoods(self, messages: Sequence[Message], candidates: Sequence[str], cancel: Cancel) -> list[Likelihood]:
        """As the protocol says."""
        return self._failures.see(lambda: self._inner.likelihoods(messages, candidates, cancel))

    def count_tokens(self, texts: Sequence[str], cancel: Cancel) -> list[int]:
        """As the protocol says."""
        return self._failures.see(lambda: self._inner.count_tokens(texts, cancel))

    def close(self) -> None:
        """Nothing: the models are the caller's."""
