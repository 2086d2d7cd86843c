"""A small HTTP server on the loopback that answers as it is told to: every way in which an endpoint can fail."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[["Handler"], None]


class Handler(BaseHTTPRequestHandler):
    """Gives each request the server's next answer; the last one again and again."""

    server: FakeServer
    protocol_version = "HTTP/1.1"
    body: dict[str, Any]

    def do_POST(self) -> None:
        self.body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        server = self.server
        with server.lock:
            server.requests.append((self.path, dict(self.headers), self.body))
            answer = server.answers.pop(0) if len(server.answers) > 1 else server.answers[0]
        try:
            answer(self)
        except OSError:  # the client went away
            server.hung_up.set()

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""

    def give(self, status: int, data: bytes, content_type: str = "application/json", **headers: str) -> None:
        """A whole response."""
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(data)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)

    def stream(self, *events: str, end: bool = True, pause: float = 0) -> None:
        """Server-sent events, then the end of the connection."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for event in [*events, *(["[DONE]"] if end else [])]:
            self.wfile.write(f"data: {event}\n\n".encode())
            self.wfile.flush()
            time.sleep(pause)
        self.close_connection = True


class FakeServer(ThreadingHTTPServer):
    """The server with its list of answers and what was asked of it."""

    daemon_threads = True

    def __init__(self, answers: list[Answer]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers = answers
        self.requests: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        self.lock = threading.Lock()
        self.hung_up = threading.Event()

    @property
    def url(self) -> str:
        """Its address, with the /v1 of the protocol."""
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


@contextmanager
def serving(*answers: Answer) -> Iterator[FakeServer]:
    """A running server."""
    server = FakeServer(list(answers))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def status(code: int, message: str = "no", **headers: str) -> Answer:
    """An error status with a message in the protocol's form."""
    return lambda handler: handler.give(code, json.dumps({"error": {"message": message}}).encode(), **headers)


def raw(data: bytes, content_type: str = "application/json") -> Answer:
    """Any bytes with status 200."""
    return lambda handler: handler.give(200, data, content_type)


def silent(seconds: float) -> Answer:
    """Nothing at all for that time."""
    return lambda _: time.sleep(seconds)


def says(*pieces: str, finish: str | None = "stop", end: bool = True, pause: float = 0) -> Answer:
    """A streamed chat completion."""
    events = [json.dumps({"choices": [{"delta": {"content": piece}, "finish_reason": None}]}) for piece in pieces]
    if finish:
        events.append(json.dumps({"choices": [{"delta": {}, "finish_reason": finish}]}))
        events.append(json.dumps({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}))
    return lambda handler: handler.stream(*events, end=end, pause=pause)


def embeds(row: Callable[[str], list[float]]) -> Answer:
    """Embeddings, the last text's first: the protocol's order is in `index`."""

    def answer(handler: Handler) -> None:
        rows = [{"index": index, "embedding": row(text)} for index, text in enumerate(handler.body["input"])]
        handler.give(200, json.dumps({"data": rows[::-1]}).encode())

    return answer
