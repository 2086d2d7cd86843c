"""Models that run in a worker process on this machine."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from libraryfs.errors import ModelUnavailable
from libraryfs.models import defaults, wire
from libraryfs.models.cancel import Cancel
from libraryfs.models.client import Ticket, Worker
from libraryfs.models.embedders import Source, need
from libraryfs.models.protocols import FinishReason, Generation, Likelihood, Message, Vectors
from libraryfs.models.tokens import clean

BATCH_TEXTS = 32
BATCH_TOKENS = 1024
"""A batch's size, padding counted. Small ones pad less and stay in the processor's cache: at 4,096 tokens, onnxruntime
and torch are a quarter slower for each text."""
SHORT_TEXTS = 4
"""A call with so few texts is a question's: it goes before the next batch of a bulk job."""
AHEAD = 3
"""Batches under way at once, so that the worker never waits for the next."""


class LocalEmbedder:
    """An embedder that runs in a worker."""

    def __init__(self, source: Source, worker: Worker) -> None:
        self._source = source
        self._worker = worker

    @property
    def model(self) -> str:
        """Name and the start of the weights' checksum."""
        return self._source.model

    @cached_property
    def dimension(self) -> int:
        """Length of a vector."""
        return self._source.dimension(self._describe)

    @cached_property
    def window(self) -> int:
        """Tokens of text in one vector."""
        return self._source.window(self._describe)

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """Tokens as character positions."""
        return self._source.tokens.offsets(text)

    def embed(self, texts: Sequence[str], cancel: Cancel) -> Vectors:
        """Unit vectors in the order given; computed longest first, in batches of like length."""
        import numpy as np

        self._order()
        result = np.empty((len(texts), self.dimension), dtype=np.float32)
        batches = _batches(self._lengths(texts, cancel))
        under_way: list[tuple[Ticket, list[int]]] = []
        try:
            while batches or under_way:
                while batches and len(under_way) < AHEAD:
                    batch = batches.pop()
                    body = json.dumps([clean(texts[index]) for index in batch]).encode("ascii")
                    header = {"do": "embed", "bulk": len(texts) > SHORT_TEXTS}
                    under_way.append((self._worker.submit(header, body), batch))
                ticket, batch = under_way.pop(0)
                _, data = ticket.wait(cancel)
                result[batch] = np.frombuffer(data, dtype=np.float32).reshape(len(batch), -1)
        finally:
            for ticket, _ in under_way:
                self._worker.drop(ticket)
        return result

    @property
    def process(self) -> int | None:
        """The process id of its worker, while this process is connected to it."""
        return self._worker.pid

    def close(self) -> None:
        """Leave the worker."""
        self._worker.close()

    def _lengths(self, texts: Sequence[str], cancel: Cancel) -> list[int]:
        """Tokens of each text."""
        lengths = []
        for text in texts:
            cancel.check()
            lengths.append(self._source.tokens.count(text))
        return lengths

    def forgive(self) -> None:
        """Let it be started though it died. Raises ModelUnavailable when it cannot be used."""
        self._order()
        self._worker.forgive()

    def _order(self) -> None:
        """Tell the worker what to load. Raises ModelUnavailable when it cannot be."""
        self._worker.order |= {"path": str(self._source.path), "backend": self._source.backend}

    def _describe(self) -> wire.Header:
        self._order()
        return self._worker.describe(Cancel())


class LocalLanguageModel:
    """A GGUF file."""

    supports_likelihoods = True

    def __init__(self, source: defaults.Packaged | Path, worker: Worker) -> None:
        self._source = source
        self._worker = worker

    @cached_property
    def _file(self) -> Path:
        need("llama_cpp", "the language model", "'libraryfs[models]'")
        path = self._source.check() if isinstance(self._source, defaults.Packaged) else self._source
        cure = "set LIBRARYFS_LLM to a .gguf file, to `default`, or to `none`"
        try:
            with path.open("rb") as file:
                magic = file.read(4)
        except OSError as error:
            raise ModelUnavailable(f"{path}: {error.strerror}: {cure}") from None
        if magic != b"GGUF":
            raise ModelUnavailable(f"{path}: not a GGUF file: {cure}")
        self._worker.order["path"] = str(path)
        return path

    @cached_property
    def model(self) -> str:
        """Name and the start of the file's checksum."""
        if isinstance(self._source, defaults.Packaged):
            return self._source.model
        return f"{self._file.stem}@{defaults.fingerprint(self._file)[:12]}"

    @cached_property
    def context(self) -> int:
        """Tokens of prompt and reply together; loads the model."""
        self._file  # noqa: B018
        return int(self._worker.describe(Cancel())["context"])

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
        """The reply to a chat."""
        order = {
            "messages": list(messages),
            "max_tokens": max_tokens,
            "temperature": temperature,
            "seed": seed,
            "schema": schema,
            "stop": list(stop),
            "stream": on_text is not None,
        }
        made = self._call("generate", order, cancel, on_text)
        finish = cast(FinishReason, made["finish"])
        return Generation(made["text"], finish, made["prompt_tokens"], made["completion_tokens"])

    def likelihoods(self, messages: Sequence[Message], candidates: Sequence[str], cancel: Cancel) -> list[Likelihood]:
        """Each candidate's likelihood as the reply."""
        order = {"messages": list(messages), "candidates": list(candidates)}
        return [Likelihood(*pair) for pair in self._call("likelihoods", order, cancel)["likelihoods"]]

    def count_tokens(self, texts: Sequence[str], cancel: Cancel) -> list[int]:
        """Tokens of each text."""
        counts: list[int] = self._call("count", {"texts": list(texts)}, cancel)["counts"]
        return counts

    @property
    def process(self) -> int | None:
        """The process id of its worker, while this process is connected to it."""
        return self._worker.pid

    def close(self) -> None:
        """Leave the worker."""
        self._worker.close()

    def forgive(self) -> None:
        """Let it be started though it died. Raises ModelUnavailable when it cannot be used."""
        self._file  # noqa: B018  (raises)
        self._worker.forgive()

    def _call(
        self, do: str, order: dict[str, Any], cancel: Cancel, on_text: Callable[[str], None] | None = None
    ) -> dict[str, Any]:
        self._file  # noqa: B018  (raises when the model cannot be used)
        return self._worker.call({"do": do}, json.dumps(order).encode("ascii"), cancel, on_text)[0]


def threads(setting: int) -> int:
    """The setting, or one for each processor that this process may use."""
    return setting or len(os.sched_getaffinity(0))


def _batches(lengths: Sequence[int]) -> list[list[int]]:
    """Indexes of texts, by their tokens, in batches of like length; the longest texts in the last one."""
    order = sorted(range(len(lengths)), key=lambda index: lengths[index])
    batches: list[list[int]] = []
    for index in order:
        size = len(batches[-1]) + 1 if batches else 0
        # A batch is padded to its longest text, which is this one.
        if not batches or size > BATCH_TEXTS or size * lengths[index] > BATCH_TOKENS:
            batches.append([])
        batches[-1].append(index)
    return batches
