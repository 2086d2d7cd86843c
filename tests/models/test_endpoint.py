"""OpenAI-compatible endpoints against a server that fails in every way: one clear error each, and never the key."""

from __future__ import annotations

import base64
import json
import logging
import socket
import threading
import time
from typing import Any

import numpy as np
import pytest
from pydantic import SecretStr

from libraryfs.errors import (
    Cancelled,
    DeadlineExceeded,
    ModelBusy,
    ModelError,
    ModelFailed,
    ModelUnavailable,
    PromptTooLong,
)
from libraryfs.models import endpoint_http
from libraryfs.models.cancel import Cancel
from libraryfs.models.endpoint import EndpointEmbedder, EndpointLanguageModel
from libraryfs.models.protocols import Generation, Message
from tests import planted
from tests.models.fake_server import Answer, embeds, raw, says, serving, silent, status
from tests.planted import PASSWORD

KEY = "sk-very-secret"
CHAT: list[Message] = [{"role": "user", "content": "When do we deploy?"}]


def chat(url: str, key: str = KEY) -> EndpointLanguageModel:
    return EndpointLanguageModel(url, model="tiny", key=SecretStr(key), context=4096)


def ask(url: str, cancel: Cancel | None = None, **options: Any) -> Generation:
    return chat(url).generate(CHAT, max_tokens=9, cancel=cancel or Cancel.after(20), **options)


def embedder(url: str) -> EndpointEmbedder:
    return EndpointEmbedder(url, model="tiny", key=SecretStr(KEY), window=254)


@pytest.fixture(autouse=True)
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint_http, "BACKOFF_SECONDS", 0.01)


def test_a_streamed_answer_comes_in_pieces() -> None:
    pieces: list[str] = []
    with serving(says("On ", "Tues", "days.")) as server:
        made = ask(server.url, on_text=pieces.append, stop=["\n"], seed=5)
    assert made == Generation("On Tuesdays.", "stop", 7, 3)
    assert pieces == ["On ", "Tues", "days."]
    path, headers, body = server.requests[0]
    assert path == "/v1/chat/completions"
    assert headers["Authorization"] == f"Bearer {KEY}"
    assert {name: body[name] for name in ("model", "max_tokens", "temperature", "seed", "stop", "stream")} == {
        "model": "tiny", "max_tokens": 9, "temperature": 0.0, "seed": 5, "stop": ["\n"], "stream": True,
    }  # fmt: skip
    assert body["messages"] == CHAT


def test_a_server_that_does_not_stream_is_understood() -> None:
    answer = {"choices": [{"message": {"content": "Tuesday"}, "finish_reason": "length"}]}
    with serving(raw(json.dumps(answer).encode())) as server:
        made = ask(server.url)
    assert (made.text, made.finish_reason) == ("Tuesday", "length")
    assert made.prompt_tokens > 0


def test_a_schema_is_sent_and_older_servers_get_their_own_form() -> None:
    schema = {"type": "object"}
    with serving(status(422, "unknown response_format"), says("{}")) as server:
        model = chat(server.url)
        for _ in range(2):
            assert model.generate(CHAT, max_tokens=9, cancel=Cancel(), schema=schema).text == "{}"
    formats = [body["response_format"] for _, _, body in server.requests]
    assert [form["type"] for form in formats] == ["json_schema", "json_object", "json_object"]
    assert formats[0]["json_schema"]["schema"] == formats[1]["schema"] == schema


def test_a_server_that_wants_the_new_name_of_the_limit_gets_it() -> None:
    with serving(status(400, "use max_completion_tokens"), says("yes")) as server:
        assert ask(server.url).text == "yes"
    assert server.requests[1][2]["max_completion_tokens"] == 9
    assert "max_tokens" not in server.requests[1][2]


def test_too_many_requests_and_server_errors_are_tried_again() -> None:
    with serving(status(429, retry_after="0.05"), status(500), status(503), says("yes")) as server:
        start = time.monotonic()
        assert ask(server.url).text == "yes"
    assert time.monotonic() - start >= 0.05
    assert len(server.requests) == 4


def test_a_wait_longer_than_the_deadline_is_not_begun() -> None:
    with serving(status(429, "slow down", retry_after="30")) as server:
        start = time.monotonic()
        with pytest.raises(ModelBusy, match="slow down"):
            ask(server.url, Cancel.after(5))
    assert time.monotonic() - start < 2
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        (status(401, f"bad key {KEY}"), ModelUnavailable, "LIBRARYFS_LLM_KEY"),
        (status(404, "no model tiny"), ModelUnavailable, "LIBRARYFS_LLM_MODEL"),
        (status(429, f"quota of {KEY}"), ModelBusy, "429"),
        (status(500, f"exploded on {KEY}"), ModelFailed, r"HTTP 500: exploded on \*\*\*"),
        (status(400, "This model's maximum context length is 5"), PromptTooLong, "maximum context length"),
        (status(400, "strange"), ModelFailed, "HTTP 400: strange"),
        (raw(b"<html>login</html>", "text/html"), ModelFailed, "not JSON"),
        (raw(b"[1]"), ModelFailed, "not an object"),
        (raw(b'{"choices": []}'), ModelFailed, "not a chat completion"),
        (raw(b'{"choices": [{"message": {"content": 5}}]}'), ModelFailed, "not text"),
        (raw(b'{"error": {"message": "overloaded"}}'), ModelFailed, "overloaded"),
        (raw(b"data: {oops\n\n", "text/event-stream"), ModelFailed, "not JSON"),
        (says("half", finish=None, end=False), ModelFailed, "cut"),
        (says("half", finish=None), ModelFailed, "cut"),
        (says(finish=None, end=False), ModelFailed, "without a word.*LIBRARYFS_LLM_CONTEXT"),
        (lambda handler: handler.connection.shutdown(socket.SHUT_RDWR), ModelFailed, "cut the connection"),
    ],
)  # fmt: skip
def test_each_failure_is_one_clear_error(answer: Answer, error: type[ModelError], words: str) -> None:
    with serving(answer) as server, pytest.raises(error, match=words) as caught:
        ask(server.url)
    assert str(caught.value).startswith(server.url)
    assert KEY not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_content_length_that_is_not_kept_is_a_cut() -> None:
    def short(handler: Any) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        handler.wfile.write(b'{"choices": [')
        handler.close_connection = True

    with serving(short) as server, pytest.raises(ModelFailed, match="cut the connection"):
        ask(server.url)


def test_nothing_listens() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(ModelUnavailable, match="nothing answers there"):
        ask(f"http://user:{KEY}@127.0.0.1:{port}/v1")
    assert KEY not in chat(f"http://user:{KEY}@127.0.0.1:{port}/v1?token={KEY}").model


@pytest.mark.parametrize("url", ["http://", "http://[::1", "ftp://host/v1", "http://host:99999/v1"])
def test_not_a_url(url: str) -> None:
    with pytest.raises(ModelUnavailable, match="LIBRARYFS_LLM"):
        ask(url)


@pytest.mark.parametrize("key", ["sk-secret\nX: y", "sk-sécret"])
def test_a_key_that_no_header_can_hold(key: str) -> None:
    with pytest.raises(ModelUnavailable, match="LIBRARYFS_LLM_KEY") as caught:
        chat("http://127.0.0.1:1/v1", key).generate(CHAT, max_tokens=1, cancel=Cancel())
    assert "sk-" not in str(caught.value)


@pytest.mark.parametrize("answer", [silent(5), says(*"drip" * 20, pause=0.2)], ids=["silent", "dripping"])
def test_the_deadline_ends_a_slow_answer(answer: Answer) -> None:
    with serving(answer) as server:
        start = time.monotonic()
        with pytest.raises(DeadlineExceeded):
            ask(server.url, Cancel.after(0.4))
        assert time.monotonic() - start < 3


def test_cancelling_ends_the_answer_and_the_server_sees_it() -> None:
    cancel = Cancel()
    with serving(says(*"abcdefghij" * 5, pause=0.05)) as server:
        timer = threading.Timer(0.3, cancel.cancel)
        timer.start()
        start = time.monotonic()
        with pytest.raises(Cancelled):
            ask(server.url, cancel)
        assert time.monotonic() - start < 2  # else 2.5
        assert server.hung_up.wait(2)
        timer.join()


def test_what_it_cannot_do_it_says() -> None:
    model = chat("http://127.0.0.1:1/v1")
    assert not model.supports_likelihoods
    with pytest.raises(ModelUnavailable, match="likelihoods"):
        model.likelihoods(CHAT, ["yes"], Cancel())
    assert model.count_tokens(["", "We deploy on Tuesdays."], Cancel()) == [0, 8]


def test_an_exception_of_the_listener_ends_the_call() -> None:
    def listener(_: str) -> None:
        raise KeyboardInterrupt

    with serving(says("a", "b")) as server, pytest.raises(KeyboardInterrupt):
        ask(server.url, on_text=listener)


def test_embeddings_are_put_in_order_and_normalised() -> None:
    texts = ["x" * n for n in range(1, 151)]
    with serving(embeds(lambda text: [float(len(text)), 1.0, 0.0])) as server:
        model = embedder(server.url)
        vectors = model.embed(texts, Cancel())
        assert model.dimension == 3
        assert model.embed([], Cancel()).shape == (0, 3)
    expected = np.array([[n, 1, 0] for n in range(1, 151)], dtype=np.float32)
    np.testing.assert_allclose(vectors, expected / np.linalg.norm(expected, axis=1, keepdims=True), rtol=1e-6)
    assert [len(body["input"]) for _, _, body in server.requests] == [64, 64, 22]
    assert model.model == f"tiny@{server.url}"
    assert len(model.offsets("We deploy.")) == 4


def test_vectors_of_tokens_are_averaged() -> None:
    with serving(raw(b'{"data": [{"index": 0, "embedding": [[1, 0], [3, 0], [2, 3]]}]}')) as server:
        vectors = embedder(server.url).embed(["a"], Cancel())
    np.testing.assert_allclose(vectors, [[2 / 5**0.5, 1 / 5**0.5]], rtol=1e-6)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (raw(b"nope"), "not JSON"),
        (raw(b'{"data": 5}'), "holds no data"),
        (raw(b'{"data": []}'), "2 texts were sent, and 0 vectors"),
        (raw(b'{"data": [{"index": 0, "embedding": [1, 2]}, {"index": 1, "embedding": [1]}]}'), "of one length"),
        (raw(b'{"data": [{"index": 0, "embedding": ["a"]}, {"index": 1, "embedding": ["b"]}]}'), "rows of numbers"),
        (raw(b'{"data": [{"index": 0, "embedding": 1}, {"index": 1, "embedding": 2}]}'), "rows of numbers"),
        (embeds(lambda _: [0.0, 0.0]), "zero or not finite"),
        (embeds(lambda _: [float("nan"), 1.0]), "zero or not finite"),
        (status(500, "exploded"), "HTTP 500: exploded"),
    ],
)
def test_embeddings_that_are_none(answer: Answer, words: str) -> None:
    with serving(answer) as server, pytest.raises(ModelFailed, match=words):
        embedder(server.url).embed(["a", "b"], Cancel())


def test_an_endpoint_that_changes_its_dimension() -> None:
    with serving(embeds(lambda _: [1.0, 2.0]), embeds(lambda _: [1.0, 2.0, 3.0])) as server:
        model = embedder(server.url)
        model.embed(["a"], Cancel())
        with pytest.raises(ModelFailed, match="2 numbers before, and have 3 now"):
            model.embed(["a"], Cancel())


def test_a_login_in_the_url_is_sent_as_the_header_and_never_shown(caplog: pytest.LogCaptureFixture) -> None:
    """Nor in what the server says back, in any form, and not at the lowest log level either."""
    code = base64.b64encode(f"me:{PASSWORD}".encode()).decode()
    with serving(says("yes"), status(500, f"no {PASSWORD} of me:{PASSWORD}, Basic {code}")) as server:
        model = chat(server.url.replace("http://", f"http://me:{PASSWORD}@"), key="")
        with caplog.at_level(logging.DEBUG):
            assert model.generate(CHAT, max_tokens=1, cancel=Cancel()).text == "yes"
            with pytest.raises(ModelFailed) as caught:
                model.generate(CHAT, max_tokens=1, cancel=Cancel())
    assert server.requests[0][1]["Authorization"] == f"Basic {code}"
    for text in (str(caught.value), model.model, caplog.text):
        assert not planted.found(text)
    assert not [record for record in caplog.records if record.name.startswith(("httpx", "httpcore"))]
