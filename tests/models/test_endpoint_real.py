"""Endpoints against a real server: llama-cpp-python's own, on the loopback, with the default language model."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import httpx
import numpy as np
import pytest
from pydantic import SecretStr

from libraryfs.errors import DeadlineExceeded, ModelFailed, ModelUnavailable
from libraryfs.models import defaults, factory
from libraryfs.models.cancel import Cancel
from libraryfs.models.protocols import Embedder, LanguageModel, Message
from libraryfs.settings import Settings

pytestmark = pytest.mark.models

CHAT: list[Message] = [
    {"role": "system", "content": "You answer in one short sentence."},
    {"role": "user", "content": "What is the capital of France?"},
]


class Server(NamedTuple):
    """A running server."""

    url: str

    def language_model(self, key: str = "sk-test", path: str = "/v1") -> LanguageModel:
        model = factory.language_model(
            Settings(llm=self.url + path, llm_model="tiny", llm_key=SecretStr(key), llm_context=1024)
        )
        assert model is not None
        return model

    def embedder(self) -> Embedder:
        model = factory.embedder(
            Settings(
                embedder=f"{self.url}/v1", embedder_model="tiny", embedder_key=SecretStr("sk-test"), embedder_window=200
            )
        )
        assert model is not None
        return model


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = {"host": "127.0.0.1", "port": port, "n_ctx": 1024, "api_key": "sk-test", "model_alias": "tiny"}
    arguments = [f"--{name}={value}" for name, value in {**options, "embedding": True}.items()]
    log: Path = tmp_path_factory.mktemp("server") / "log"
    command = [sys.executable, "-m", "llama_cpp.server", f"--model={defaults.LANGUAGE_MODEL.find()}", *arguments]
    with log.open("w") as output, subprocess.Popen(command, stdout=output, stderr=output) as process:
        try:
            for _ in range(600):
                try:
                    httpx.get(f"http://127.0.0.1:{port}/v1/models", timeout=5)
                    break
                except httpx.TransportError:
                    assert process.poll() is None, log.read_text()[-2000:]
                    time.sleep(0.1)
            yield Server(f"http://127.0.0.1:{port}")
        finally:
            process.kill()


def test_it_answers_in_a_stream(server: Server) -> None:
    pieces: list[str] = []
    made = server.language_model().generate(CHAT, max_tokens=30, cancel=Cancel(), on_text=pieces.append)
    assert "Paris" in made.text
    assert "".join(pieces) == made.text
    assert len(pieces) > 3
    assert made.finish_reason == "stop"
    assert made.prompt_tokens > 10


def test_a_schema_holds(server: Server) -> None:
    schema = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 20}}, "required": ["city"]}
    model = server.language_model()
    for _ in range(2):
        made = model.generate(CHAT, max_tokens=40, cancel=Cancel(), schema=schema)
        assert set(json.loads(made.text)) == {"city"}


def test_a_limit_is_said(server: Server) -> None:
    made = server.language_model().generate(CHAT, max_tokens=2, cancel=Cancel())
    assert made.finish_reason == "length"


def test_a_deadline_ends_it_and_the_server_goes_on(server: Server) -> None:
    story: list[Message] = [{"role": "user", "content": "Write a very long story about a cat."}]
    start = time.monotonic()
    with pytest.raises(DeadlineExceeded):
        server.language_model().generate(story, max_tokens=900, cancel=Cancel.after(0.5))
    assert time.monotonic() - start < 4
    assert server.language_model().generate(CHAT, max_tokens=5, cancel=Cancel()).text


def test_a_wrong_key_and_a_wrong_address(server: Server) -> None:
    with pytest.raises(ModelUnavailable, match="LIBRARYFS_LLM_KEY"):
        server.language_model(key="sk-wrong").generate(CHAT, max_tokens=5, cancel=Cancel())
    with pytest.raises(ModelUnavailable, match="usually ends in /v1"):
        server.language_model(path="/v2").generate(CHAT, max_tokens=5, cancel=Cancel())


def test_a_prompt_longer_than_the_server_takes(server: Server) -> None:
    with pytest.raises(ModelFailed, match="LIBRARYFS_LLM_CONTEXT"):
        server.language_model().generate([{"role": "user", "content": "x y " * 900}], max_tokens=5, cancel=Cancel())


def test_embeddings(server: Server) -> None:
    model = server.embedder()
    vectors = model.embed(["The cat sat.", "The cat sat.", "Quarterly revenue grew."], Cancel())
    assert vectors.shape == (3, model.dimension)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2] + 0.01
