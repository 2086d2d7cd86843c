"""Models that run in a worker process on this machine."""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from libraryfs.errors import ModelUnavailable
from libraryfs.models import defaults
from libraryfs.models.cancel import Cancel
from libraryfs.models.client import Ticket, Worker
from libraryfs.models.protocols import FinishReason, Generation, Likelihood, Message, Vectors
from libraryfs.models.tokens import EstimatedTokens, FileTokens, Tokens, clean

BATCH_TEXTS = 32
BATCH_CHARACTERS = 4096
"""A batch's size. Smaller ones pad less: a fifth less work than whole batches of 32 texts of mixed lengths."""
SHORT_TEXTS = 4
"""A call with so few texts is a question's: it goes before the next batch of a bulk job."""
AHEAD = 3
"""Batches under way at once, so that the worker never waits for the next."""


class LocalEmbedder:
    """A sentence-transformers folder."""

    def __init__(self, source: defaults.Packaged | Path, worker: Worker) -> None:
        self._source = source
        self._worker = worker

    @cached_property
    def _folder(self) -> Path:
        _need("sentence_transformers", "the embedder")
        folder = self._source.check() if isinstance(self._source, defaults.Packaged) else self._source
        if not (folder / "config.json").is_file():
            raise ModelUnavailable(
                f"{folder}: not a sentence-transformers folder (it has no config.json): set LIBRARYFS_EMBEDDER to one, "
                "to `default`, or to `none`"
            )
        self._worker.order["path"] = str(folder)
        return folder

    @cached_property
    def model(self) -> str:
        """Name and the start of the weights' checksum."""
        if isinstance(self._source, defaults.Packaged):
            return self._source.model
        weights = next(
            (path for pattern in ("*.safetensors", "*.bin") for path in sorted(self._folder.glob(pattern))), None
        )
        if weights is None:
            raise ModelUnavailable(f"{self._folder}: no weights in it (*.safetensors): copy the model there again")
        return f"{self._folder.name}@{defaults.fingerprint(weights)[:12]}"

    @cached_property
    def dimension(self) -> int:
        """Length of a vector, from the folder when it says so, else from the loaded model."""
        modules = _json(self._folder / "modules.json")
        names = [module["path"] for module in modules] if isinstance(modules, list) else []
        for name in reversed(names):
            config = _json(self._folder / name / "config.json") if name else {}
            for key in ("out_features", "word_embedding_dimension"):
                if isinstance(config, dict) and key in config:
                    return int(config[key])
        return int(self._described["dimension"])

    @cached_property
    def window(self) -> int:
        """Tokens of text in one vector."""
        config = _json(self._folder / "sentence_bert_config.json")
        longest = config.get("max_seq_length") if isinstance(config, dict) else None
        longest = int(longest) if longest else int(self._described["max_tokens"])
        marks = self._tokens.marks if isinstance(self._tokens, FileTokens) else 2
        return longest - marks

    @cached_property
    def _tokens(self) -> Tokens:
        path = self._folder / "tokenizer.json"
        return FileTokens(path) if path.is_file() else EstimatedTokens()

    @cached_property
    def _described(self) -> dict[str, Any]:
        return self._worker.describe(Cancel())

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """Tokens as character positions."""
        return self._tokens.offsets(text)

    def embed(self, texts: Sequence[str], cancel: Cancel) -> Vectors:
        """Unit vectors in the order given; computed longest first, in batches of like length."""
        import numpy as np

        self._folder  # noqa: B018  (raises when the model cannot be used)
        result = np.empty((len(texts), self.dimension), dtype=np.float32)
        batches = _batches(texts)
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

    def close(self) -> None:
        """End the worker."""
        self._worker.close()


class LocalLanguageModel:
    """A GGUF file."""

    supports_likelihoods = True

    def __init__(self, source: defaults.Packaged | Path, worker: Worker) -> None:
        self._source = source
        self._worker = worker

    @cached_property
    def _file(self) -> Path:
        _need("llama_cpp", "the language model")
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

    def close(self) -> None:
        """End the worker."""
        self._worker.close()

    def _call(
        self, do: str, order: dict[str, Any], cancel: Cancel, on_text: Callable[[str], None] | None = None
    ) -> dict[str, Any]:
        self._file  # noqa: B018  (raises when the model cannot be used)
        return self._worker.call({"do": do}, json.dumps(order).encode("ascii"), cancel, on_text)[0]


def threads(setting: int) -> int:
    """The setting, or one for each processor that this process may use."""
    return setting or len(os.sched_getaffinity(0))


def _batches(texts: Sequence[str]) -> list[list[int]]:
    """Indexes in batches of like length, the longest texts in the last one."""
    order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
    batches: list[list[int]] = []
    for index in order:
        size = len(batches[-1]) + 1 if batches else 0
        # A batch is padded to its longest text, which is this one.
        if not batches or size > BATCH_TEXTS or size * len(texts[index]) > BATCH_CHARACTERS:
            batches.append([])
        batches[-1].append(index)
    return batches


def _need(package: str, what: str) -> None:
    if importlib.util.find_spec(package) is None:
        raise ModelUnavailable(f"{what} needs the package {package}: pip install 'libraryfs[models]'")


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ModelUnavailable(f"{path}: cannot be read as JSON ({error}): copy the model there again") from None
