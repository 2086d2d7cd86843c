"""A language model whose replies a test decides."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from libraryfs.models.cancel import Cancel
from libraryfs.models.protocols import Generation, Likelihood, Message

Reply = Callable[[Sequence[Message]], str]


class FakeLanguageModel:
    """`reply` gives its text; with `yes` it has likelihoods instead, the probability of yes for a chat."""

    model = "fake@1"
    context = 8192

    def __init__(self, reply: Reply | None = None, yes: Callable[[str], float] | None = None) -> None:
        self._reply = reply
        self._yes = yes
        self.chats: list[Sequence[Message]] = []
        self.settings: list[tuple[float, int]] = []

    @property
    def supports_likelihoods(self) -> bool:
        return self._yes is not None

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
        self.chats.append(messages)
        self.settings.append((temperature, seed))
        assert self._reply is not None
        return Generation(self._reply(messages), "stop", 1, 1)

    def likelihoods(self, messages: Sequence[Message], candidates: Sequence[str], cancel: Cancel) -> list[Likelihood]:
        self.chats.append(messages)
        assert self._yes is not None
        yes = self._yes(messages[-1]["content"])
        chances = {"yes": yes, "no": 0.9 - yes if yes >= 0 else 1e-9}
        return [Likelihood(math.log(max(chances.get(word, 0), 1e-12)), 1) for word in candidates]

    def count_tokens(self, texts: Sequence[str], cancel: Cancel) -> list[int]:
        return [len(text) // 4 for text in texts]

    def close(self) -> None:
        return None
