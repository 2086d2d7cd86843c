"""The latency budget on a real mount: it counts from the request, whatever it has to wait for."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.mount.live import Live, sh
from tests.mount.test_ask import fill
from tests.planted import PASSWORD
from tests.store.build import Builder

QUESTION = "When do we deploy?"


@pytest.fixture
def silent() -> Iterator[tuple[str, list[socket.socket]]]:
    """An endpoint that takes connections and never says a word, with a login in its URL that no log may show; the
    connections that it took."""
    with socket.create_server(("127.0.0.1", 0)) as server, ExitStack() as stack:
        taken: list[socket.socket] = []

        def take() -> None:
            try:
                while True:
                    taken.append(stack.enter_context(server.accept()[0]))
            except OSError:
                return

        thread = threading.Thread(target=take, daemon=True)
        thread.start()
        yield f"http://me:{PASSWORD}@127.0.0.1:{server.getsockname()[1]}/v1", taken
        server.shutdown(socket.SHUT_RDWR)
        thread.join(5)


def test_behind_questions_that_never_end(
    build: Builder, tmp_path: Path, silent: tuple[str, list[socket.socket]]
) -> None:
    """As many as may be at work wait for a model that never answers; who has half a second gets the evidence."""
    fill(build)
    url, taken = silent
    environment = {"LIBRARYFS_EMBEDDER": "none", "LIBRARYFS_LLM": url, "LIBRARYFS_LLM_KEY": ""}
    with Live(build.path, tmp_path / "mount", environment=environment) as live, ThreadPoolExecutor(8) as pool:
        folder = live.point / "ring/dev"
        asking = [folder / ".ask" for _ in range(8)]
        for path in asking:
            pool.submit(sh, f"echo '{QUESTION}' > {path}; timeout 90 cat {path}", folder, session=True, check=False)
        end = time.monotonic() + 60
        while len(taken) < 8:
            assert time.monotonic() < end, "the eight are not at work"
            time.sleep(0.02)
        request = json.dumps({"question": QUESTION, "latency_budget_ms": 500})
        result = json.loads(sh(f"echo '{request}' > .ask; cat .ask", folder, session=True))
        assert result["truncated"]
        assert result["answer"] is None
        assert result["evidence"][0]["path"] == "/ring/dev/decisions/deploys.md"
        for connection in taken:
            connection.close()


def test_a_budget_that_is_none(build: Builder, tmp_path: Path) -> None:
    """Is answered as one, with the reason; null is no budget."""
    fill(build)
    environment = {"LIBRARYFS_EMBEDDER": "none", "LIBRARYFS_LLM": "none"}
    with Live(build.path, tmp_path / "mount", environment=environment) as live:

        def asked(budget: object) -> Any:
            request = json.dumps({"question": QUESTION, "latency_budget_ms": budget})
            return json.loads(sh(f"echo '{request}' > .ask; cat .ask", live.point, session=True))

        assert asked(None)["answer"]
        for budget in (0, -5, 10**400, "500", True):
            error = asked(budget)["error"]
            assert error["code"] == "LIBRARY_INVALID_REQUEST"
            assert "latency_budget_ms" in error["message"]
