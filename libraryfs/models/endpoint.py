"""Models behind OpenAI-compatible endpoints: vLLM, llama-server, Ollama, llama-cpp-python's server, hosted ones."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from functools import cached_property
from typing import Any

import httpx
from pydantic import SecretStr

from libraryfs.errors import ModelUnavailable, PromptTooLong
from libraryfs.models.cancel import Cancel
from libraryfs.models.endpoint_http import Endpoint, Refused
from libraryfs.models.protocols import Generation, Likelihood, Message, Vectors
from libraryfs.models.tokens import EstimatedTokens, clean

EMBED_BATCH = 64
"""Texts in one request."""
PROBE_SECONDS = 60.0
_TOO_LONG = ("context_length_exceeded", "maximum context length", "context window", "exceeds the available context")


class EndpointLanguageModel:
    """Chat completions, streamed."""

    supports_likelihoods = False

    def __init__(self, url: str, *, model: str, key: SecretStr, context: int) -> None:
        self._endpoint = Endpoint(url, key, what="language model", setting="LIBRARYFS_LLM")
        self._model = model
        self.context = context
        self._tokens = EstimatedTokens()
        self._dialects: list[Callable[[dict[str, Any]], dict[str, Any]]] = list(_DIALECTS)

    @property
    def model(self) -> str:
        """The model's name and where it is served."""
        return f"{self._model or 'default'}@{self._endpoint.name}"

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
        body: dict[str, Any] = {
            "messages": [{"role": turn["role"], "content": clean(turn["content"])} for turn in messages],
            "max_tokens": max_tokens,
            "temperature": temperature,
            "seed": seed,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if self._model:
            body["model"] = self._model
        if stop:
            body["stop"] = list(stop)
        if schema is not None:
            body["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": "answer", "schema": schema, "strict": True},
            }

        async def work(client: httpx.AsyncClient) -> Generation:
            return await self._speak(client, body, on_text, cancel)

        return self._endpoint.run(work, cancel)

    def likelihoods(self, messages: Sequence[Message], candidates: Sequence[str], cancel: Cancel) -> list[Likelihood]:
        """Not to be had from a chat endpoint."""
        raise ModelUnavailable(f"{self._endpoint.name} cannot tell likelihoods: ask `supports_likelihoods` first")

    def count_tokens(self, texts: Sequence[str], cancel: Cancel) -> list[int]:
        """An estimate from above: the endpoint's tokeniser is not known."""
        return [self._tokens.count(text) for text in texts]

    def close(self) -> None:
        """Nothing is held between calls."""

    async def _speak(
        self,
        client: httpx.AsyncClient,
        body: dict[str, Any],
        on_text: Callable[[str], None] | None,
        cancel: Cancel,
    ) -> Generation:
        """Ask; where the server does not know a parameter, ask again in the next dialect, and remember it."""
        refusals: list[Refused] = []
        tried: list[dict[str, Any]] = []
        for dialect in self._dialects:
            said = dialect(body)
            if said in tried:
                continue
            tried.append(said)
            try:
                made = await self._complete(client, said, on_text, cancel)
            except Refused as refused:
                if refused.status in (400, 413, 422) and any(word in refused.words.lower() for word in _TOO_LONG):
                    raise PromptTooLong(f"{self._endpoint.name}: {refused.words}: ask over fewer paths") from None
                if refused.status not in (400, 422):
                    raise
                refusals.append(refused)
            else:
                if refusals:
                    self._dialects = [dialect, *(other for other in self._dialects if other is not dialect)]
                return made
        raise refusals[0]

    async def _complete(
        self,
        client: httpx.AsyncClient,
        body: dict[str, Any],
        on_text: Callable[[str], None] | None,
        cancel: Cancel,
    ) -> Generation:
        pieces: list[str] = []
        finish: str | None = None
        usage: dict[str, Any] = {}
        async with self._endpoint.post(client, "chat/completions", body, cancel) as response:
            async for event in self._events(response):
                piece, reason = self._piece(event)
                finish = reason or finish
                usage = event.get("usage") or usage
                if piece:
                    pieces.append(piece)
                    if on_text is not None:
                        on_text(piece)
        if finish is None and not pieces:
            raise self._endpoint.failed(
                "it ended the stream without a word, as some servers do when a prompt is longer than their context: "
                "set LIBRARYFS_LLM_CONTEXT to the server's"
            )
        if finish is None:
            raise self._endpoint.failed("the stream was cut before the answer's end")
        prompt = usage.get("prompt_tokens")
        made = usage.get("completion_tokens")
        return Generation(
            text="".join(pieces),
            finish_reason="length" if finish == "length" else "stop",
            prompt_tokens=prompt
            if isinstance(prompt, int)
            else sum(self.count_tokens([turn["content"] for turn in body["messages"]], Cancel())),
            completion_tokens=made if isinstance(made, int) else len(pieces),
        )

    async def _events(self, response: httpx.Response) -> AsyncIterator[dict[str, Any]]:
        """The server-sent events of a stream; of a server that does not stream, its one answer."""
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            yield self._object(await response.aread())
            return
        async for line in response.aiter_lines():
            if not line.startswith("data:"):
                continue
            data = line[len("data:") :].strip()
            if data == "[DONE]":
                return
            yield self._object(data)

    def _object(self, text: str | bytes) -> dict[str, Any]:
        event = self._endpoint.parse(text)
        if not isinstance(event, dict):
            raise self._endpoint.failed("its answer is JSON, but not an object")
        if event.get("error"):
            error = event["error"]
            raise self._endpoint.failed(str(error.get("message", error) if isinstance(error, dict) else error)[:300])
        return event

    def _piece(self, event: dict[str, Any]) -> tuple[str, str | None]:
        """New text and the finish reason of an event."""
        choices = event.get("choices")
        if choices == [] and "usage" in event:
            return "", None
        try:
            choice = choices[0]  # type: ignore[index]
            turn = choice["delta"] if "delta" in choice else choice["message"]
            text, reason = turn.get("content"), choice.get("finish_reason")
        except (TypeError, KeyError, IndexError, AttributeError):
            raise self._endpoint.failed("its answer is JSON, but not a chat completion (no choices[0])") from None
        if not isinstance(text, str | None) or not isinstance(reason, str | None):
            raise self._endpoint.failed("its answer is JSON, but its content is not text")
        return text or "", reason


class EndpointEmbedder:
    """The /embeddings of an endpoint."""

    def __init__(self, url: str, *, model: str, key: SecretStr, window: int) -> None:
        self._endpoint = Endpoint(url, key, what="embedder", setting="LIBRARYFS_EMBEDDER")
        self._model = model
        self.window = window
        self._tokens = EstimatedTokens()

    @property
    def model(self) -> str:
        """The model's name and where it is served."""
        return f"{self._model or 'default'}@{self._endpoint.name}"

    @cached_property
    def dimension(self) -> int:
        """Length of a vector: asks the endpoint once."""
        return int(self._vectors(["dimension"], Cancel.after(PROBE_SECONDS)).shape[1])

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """An estimate from above: the endpoint's tokeniser is not known."""
        return self._tokens.offsets(text)

    def embed(self, texts: Sequence[str], cancel: Cancel) -> Vectors:
        """Unit vectors in the order given."""
        import numpy as np

        if not texts:
            return np.empty((0, self.dimension), dtype=np.float32)
        vectors = self._vectors(texts, cancel)
        expected = self.__dict__.setdefault("dimension", vectors.shape[1])
        if vectors.shape[1] != expected:
            raise self._endpoint.failed(f"its vectors had {expected} numbers before, and have {vectors.shape[1]} now")
        return vectors

    def close(self) -> None:
        """Nothing is held between calls."""

    def _vectors(self, texts: Sequence[str], cancel: Cancel) -> Vectors:
        import numpy as np

        async def work(client: httpx.AsyncClient) -> list[list[float]]:
            rows: list[list[float]] = []
            for start in range(0, len(texts), EMBED_BATCH):
                rows += await self._batch(client, [clean(text) for text in texts[start : start + EMBED_BATCH]], cancel)
            return rows

        rows = self._endpoint.run(work, cancel)
        try:
            vectors = np.array([_pooled(row) for row in rows], dtype=np.float32)
            norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        except (ValueError, TypeError, OverflowError, IndexError):
            raise self._endpoint.failed("its vectors are not rows of numbers of one length") from None
        if not np.isfinite(norms).all() or not (norms > 0).all():
            raise self._endpoint.failed("one of its vectors is zero or not finite")
        result: Vectors = vectors / norms
        return result

    async def _batch(self, client: httpx.AsyncClient, texts: list[str], cancel: Cancel) -> list[list[float]]:
        body: dict[str, Any] = {"input": texts, "encoding_format": "float"}
        if self._model:
            body["model"] = self._model
        async with self._endpoint.post(client, "embeddings", body, cancel) as response:
            answer = self._endpoint.parse(await response.aread())
        try:
            rows = sorted(answer["data"], key=lambda row: int(row["index"]))
            vectors = [row["embedding"] for row in rows]
        except (TypeError, KeyError, ValueError):
            raise self._endpoint.failed("its answer is JSON, but holds no data[].embedding") from None
        if len(vectors) != len(texts):
            raise self._endpoint.failed(f"{len(texts)} texts were sent, and {len(vectors)} vectors came back")
        return vectors


def _pooled(row: Any) -> Any:
    """A text's vector; of one for each token, as llama.cpp gives for models made for text, their mean."""
    import numpy as np

    return np.mean(np.array(row, dtype=np.float64), axis=0) if row and isinstance(row[0], list) else row


def _standard(body: dict[str, Any]) -> dict[str, Any]:
    return body


def _json_object(body: dict[str, Any]) -> dict[str, Any]:
    """The form of older llama.cpp servers: the schema inside of `json_object`."""
    if "response_format" not in body:
        return body
    schema = body["response_format"]["json_schema"]["schema"]
    return {**body, "response_format": {"type": "json_object", "schema": schema}}


def _completion_tokens(body: dict[str, Any]) -> dict[str, Any]:
    """The form of hosted reasoning models: the limit under its new name, and no sampling parameters."""
    kept = {name: value for name, value in body.items() if name not in ("max_tokens", "temperature", "seed")}
    return {**kept, "max_completion_tokens": body["max_tokens"]}


_DIALECTS = (_standard, _json_object, _completion_tokens)
