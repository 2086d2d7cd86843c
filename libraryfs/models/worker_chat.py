"""Chat messages → a model's prompt tokens, by the template that its file carries.

The template is rendered around place-holders, and each message is tokenised apart as plain text: `<|im_end|>` in a
stored document is then twelve characters, and not the end of the user's turn.
"""

from __future__ import annotations

import ctypes
import re
import secrets
from typing import Any

import llama_cpp
from llama_cpp.llama_chat_format import Jinja2ChatFormatter


class Chat:
    """A loaded model's tokeniser and chat template."""

    def __init__(self, llama: Any) -> None:
        self._llama = llama
        self._vocabulary = llama_cpp.llama_model_get_vocab(llama.model)
        template = llama.metadata.get("tokenizer.chat_template")
        self._format = None if template is None else self._formatter(template)

    def tokens(self, text: str) -> list[int]:
        """A text's tokens; control tokens' names in it are plain text."""
        return self._tokenise(text, control=False)

    def piece(self, token: int) -> bytes:
        """A token's bytes; control tokens have none."""
        size = 64
        while True:
            buffer = ctypes.create_string_buffer(size)
            length = llama_cpp.llama_token_to_piece(self._vocabulary, token, buffer, size, 0, False)
            if length >= 0:
                return buffer.raw[:length]
            size = -length

    def prompt(self, messages: list[dict[str, str]]) -> list[int]:
        """The tokens of a chat, up to where the assistant's reply starts."""
        mark = secrets.token_hex(8)
        masked = [{"role": message["role"], "content": f"{mark}{index}:"} for index, message in enumerate(messages)]
        contents = [message["content"] for message in messages]
        rendered = self._render(masked)
        tokens: list[int] = []
        # Odd parts are the numbers of the messages whose place-holders stood there.
        for index, part in enumerate(re.split(rf"{mark}(\d+):", rendered)):
            if index % 2:
                tokens += self._tokenise(contents[int(part)], control=False)
            else:
                tokens += self._tokenise(part, control=True)
        return tokens if self._format else [*self._begin(), *tokens]

    def _render(self, messages: list[dict[str, str]]) -> str:
        if self._format is None:  # a base model: the shape of a dialogue, in plain words
            return "".join(f"{message['role']}: {message['content']}\n\n" for message in messages) + "assistant: "
        try:
            return self._apply(messages)
        except ValueError:  # some templates know no system message
            if not messages or messages[0]["role"] != "system" or len(messages) < 2:
                raise
            first, second, *others = messages
            return self._apply([{**second, "content": f"{first['content']}\n\n{second['content']}"}, *others])

    def _apply(self, messages: list[dict[str, str]]) -> str:
        assert self._format is not None
        prompt: str = self._format(messages=messages, enable_thinking=False).prompt
        return prompt

    def _formatter(self, template: str) -> Any:
        return Jinja2ChatFormatter(
            template=template,
            eos_token=self._name(llama_cpp.llama_vocab_eos(self._vocabulary)),
            bos_token=self._name(llama_cpp.llama_vocab_bos(self._vocabulary)),
        )

    def _name(self, token: int) -> str:
        return "" if token < 0 else llama_cpp.llama_vocab_get_text(self._vocabulary, token).decode("utf-8", "replace")

    def _begin(self) -> list[int]:
        add = llama_cpp.llama_vocab_get_add_bos(self._vocabulary)
        return [llama_cpp.llama_vocab_bos(self._vocabulary)] if add else []

    def _tokenise(self, text: str, *, control: bool) -> list[int]:
        data = text.encode("utf-8", "replace")
        tokens: list[int] = self._llama.tokenize(data, add_bos=False, special=control) if data else []
        return tokens
