"""Language models that say what a test wants, and pass the reading test or do not."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from libraryfs.ask import exam, prompt
from libraryfs.errors import ModelError
from libraryfs.models.cancel import Cancel
from libraryfs.models.protocols import Generation, Likelihood, Message

_numbers = itertools.count()

Reply = str | Callable[[str], str] | ModelError


class Scripted:
    """Answers each request with the next reply: a text, a function of the prompt, or an error; the last one repeats.

    In the reading test it looks the answers up (`capable`), or says something else.
    """

    supports_likelihoods = False

    def __init__(self, *replies: Reply, capable: bool = True, context: int = 8192) -> None:
        self.model = f"scripted-{next(_numbers)}"  # a name of its own: the test is sat once a name
        self.context = context
        self.capable = capable
        self.replies = list(replies)
        self.prompts: list[str] = []
        self.schemas: list[Any] = []
        self.examined = 0
        self.before: Callable[[Cancel], None] = lambda cancel: None

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
        shown = "\n\n".join(message["content"] for message in messages)
        known = next((one for one in exam.QUESTIONS if shown.endswith(f"Question: {one.question}")), None)
        if known is not None:
            self.examined += 1
            text = (known.expected or prompt.NOT_FOUND) if self.capable else "It is the blue one."
        else:
            cancel.check()
            self.before(cancel)
            self.prompts.append(shown)
            self.schemas.append(schema)
            reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
            if isinstance(reply, ModelError):
                raise reply
            text = reply if isinstance(reply, str) else reply(shown)
        for piece in _pieces(text) if on_text else ():
            on_text(piece)  # type: ignore[misc]
        return Generation(text, "stop", 1, 1)

    def likelihoods(self, messages: Sequence[Message], candidates: Sequence[str], cancel: Cancel) -> list[Likelihood]:
        raise AssertionError("not supported")

    def count_tokens(self, texts: Sequence[str], cancel: Cancel) -> list[int]:
        return [len(text) // 3 + 1 for text in texts]

    def close(self) -> None:
        return None


def _pieces(text: str) -> Iterator[str]:
    for at in range(0, len(text), 7):
        yield text[at : at + 7]
