"""Workers that are killed, run out of memory, get broken files, idle or lose their parent: one answer, never more."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from libraryfs import scheduling
from libraryfs.errors import Cancelled, ModelCrashed, ModelError, ModelUnavailable
from libraryfs.models import defaults, factory
from libraryfs.models.cancel import Cancel
from libraryfs.models.local import LocalEmbedder, LocalLanguageModel
from libraryfs.models.protocols import Message
from libraryfs.settings import Settings
from tests.conftest import workers
from tests.models.conftest import eventually

pytestmark = pytest.mark.models

CHAT: list[Message] = [{"role": "user", "content": "Write a very long story about a cat."}]
LONG = ["a long text to embed " * 40] * 64


@contextmanager
def language_model_with(**settings: Any) -> Iterator[LocalLanguageModel]:
    """A language model of its own, ended afterwards."""
    model = factory.language_model(Settings(**settings))
    assert isinstance(model, LocalLanguageModel)
    try:
        yield model
    finally:
        model.close()


def pid(model: LocalEmbedder | LocalLanguageModel) -> int:
    found = model._worker.pid
    assert found is not None
    return found


def end(model: LocalLanguageModel) -> None:
    """Ends its worker, if there is one."""
    tell(model)
    process = pid(model)
    model._worker.end()
    assert eventually(lambda: gone(process))


def gone(process: int) -> bool:
    return not Path(f"/proc/{process}").exists()


def in_thread(work: Callable[[], Any]) -> Future[Any]:
    pool = ThreadPoolExecutor(1)
    future = pool.submit(work)
    pool.shutdown(wait=False)
    return future


def tell(model: LocalLanguageModel) -> str:
    return model.generate(CHAT, max_tokens=4, cancel=Cancel()).text


def test_killed_while_loading_is_not_even_noticed(language_model: LocalLanguageModel) -> None:
    end(language_model)
    answer = in_thread(lambda: tell(language_model))
    assert eventually(lambda: language_model._worker.pid is not None)
    first = pid(language_model)
    os.kill(first, signal.SIGKILL)
    assert len(answer.result(60)) > 3
    assert pid(language_model) != first


def test_killed_whenever_it_loads_is_an_error(language_model: LocalLanguageModel) -> None:
    """And the model is left alone then, until it may be tried again."""
    end(language_model)
    answer = in_thread(lambda: tell(language_model))
    killed: set[int] = set()
    while not answer.done():
        process = language_model._worker.pid
        if process is not None and process not in killed:
            os.kill(process, signal.SIGKILL)
            killed.add(process)
        time.sleep(0.001)
    with pytest.raises(ModelCrashed, match="was killed"):
        answer.result()
    assert len(killed) == 2
    with pytest.raises(ModelUnavailable, match=r"failed 2 times in a row and is left alone.*libraryfs doctor"):
        tell(language_model)
    assert not workers() & killed
    assert language_model._worker.pid is None
    language_model._worker.forgive()
    assert len(tell(language_model)) > 3


def test_killed_while_generating_costs_one_answer(language_model: LocalLanguageModel) -> None:
    """The one at work is lost and says so; those that wait go to the next process."""
    began = threading.Event()
    at_work = in_thread(
        lambda: language_model.generate(CHAT, max_tokens=4000, cancel=Cancel(), on_text=lambda _: began.set())
    )
    assert began.wait(60)
    waiting = [in_thread(lambda: tell(language_model)) for _ in range(3)]
    assert eventually(lambda: len(language_model._worker._life.tickets) == 4)  # type: ignore[union-attr]
    os.kill(pid(language_model), signal.SIGKILL)
    with pytest.raises(ModelCrashed, match=r"language model's process was killed.*next use starts it again"):
        at_work.result(60)
    assert len({answer.result(60) for answer in waiting}) == 1


def test_killed_while_embedding_costs_one_answer(embedder: LocalEmbedder) -> None:
    embedder.embed(["warm"], Cancel())
    first = pid(embedder)
    job = in_thread(lambda: embedder.embed(LONG, Cancel()))
    assert eventually(lambda: any(ticket.started for ticket in list(embedder._worker._life.tickets.values())), 60)  # type: ignore[union-attr]
    os.kill(first, signal.SIGKILL)
    with pytest.raises(ModelCrashed, match="embedder's process was killed"):
        job.result(60)
    assert embedder.embed(["again"], Cancel()).shape == (1, 384)
    assert gone(first)


def test_out_of_memory_while_embedding(embedder: LocalEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    embedder.embed(["warm"], Cancel())
    for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA):  # no more than it has; address space is reserved ahead
        resource.prlimit(pid(embedder), kind, (1 << 20, 1 << 20))
    with monkeypatch.context() as at_once:  # in one batch, which is more than what it has left over from its start
        at_once.setattr("libraryfs.models.local.BATCH_TEXTS", 1000)
        at_once.setattr("libraryfs.models.local.BATCH_TOKENS", 1_000_000)
        with pytest.raises(ModelCrashed, match="embedder's process ran out of memory"):
            embedder.embed(["a long text to embed " * 60] * 128, Cancel())
    assert embedder.embed(["again"], Cancel()).shape == (1, 384)


@pytest.mark.parametrize(
    ("megabytes", "error", "words"),
    [
        (150, ModelCrashed, "language model.* ran out of memory"),
        (380, ModelUnavailable, r"memory.*: free some, or lower LIBRARYFS_LLM_CONTEXT"),
    ],
)
def test_out_of_memory_while_loading(megabytes: int, error: type[ModelError], words: str) -> None:
    with language_model_with(model_memory_mb=megabytes) as model:
        with pytest.raises(error, match=words):
            tell(model)
        assert eventually(lambda: model._worker.pid is None)


@pytest.mark.parametrize(
    ("cut", "words"),
    [(100, "failed to read key-value pairs"), (2_000_000, "not within the file bounds, model is corrupted")],
)
def test_a_truncated_model_file(tmp_path: Path, cut: int, words: str) -> None:
    path = tmp_path / "cut.gguf"
    with defaults.LANGUAGE_MODEL.find().open("rb") as whole:
        path.write_bytes(whole.read(cut))
    with language_model_with(llm=str(path)) as model, pytest.raises(ModelUnavailable, match=words):
        tell(model)


def test_weights_of_an_embedder_that_are_truncated(tmp_path: Path) -> None:
    source = defaults.RELEASED_EMBEDDER.find()
    for path in source.rglob("*"):
        target = tmp_path / path.relative_to(source)
        if path.is_dir():
            target.mkdir()
        elif path.name == "model.safetensors":
            target.write_bytes(path.read_bytes()[:1000])
        else:
            target.symlink_to(path)
    model = factory.embedder(Settings(embedder=str(tmp_path)))
    assert model is not None
    with pytest.raises(ModelUnavailable, match=r"embedder: .*sentence-transformers cannot load it"):
        model.embed(["a"], Cancel())
    model.close()


def test_an_idle_worker_ends_and_comes_back() -> None:
    with language_model_with(model_idle_seconds=1) as model:
        first = tell(model)
        process = pid(model)
        time.sleep(0.5)
        assert not gone(process)
        assert eventually(lambda: model._worker.pid is None and gone(process), 3)
        assert tell(model) == first


def test_work_is_not_idleness() -> None:
    with language_model_with(model_idle_seconds=1) as model:
        start = time.monotonic()
        pieces: list[str] = []

        def listen(piece: str) -> None:
            pieces.append(piece)
            if time.monotonic() - start > 3 and len(pieces) > 1:
                raise Cancelled

        with pytest.raises(Cancelled):
            model.generate(CHAT, max_tokens=4000, cancel=Cancel(), on_text=listen)
        assert len(pieces) > 1


def test_what_a_dead_client_asked_for_is_stopped() -> None:
    """And the worker ends when it is idle."""
    script = """
import time
from libraryfs.models import factory
from libraryfs.models.cancel import Cancel
from libraryfs.settings import Settings
model = factory.language_model(Settings(model_idle_seconds=1))
chat = [{"role": "user", "content": "Write a very long story about a cat."}]
model.generate(chat, max_tokens=4000, cancel=Cancel(), on_text=lambda _: print(model._worker.pid, flush=True))
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        worker = int(parent.stdout.readline())
        assert worker in workers()
        parent.kill()
        parent.stdout.read()
    assert eventually(lambda: gone(worker), 20)  # the story would take minutes


def test_the_worker_is_modest(language_model: LocalLanguageModel) -> None:
    tell(language_model)
    process = pid(language_model)
    for task in map(int, os.listdir(f"/proc/{process}/task")):
        assert os.getpriority(os.PRIO_PROCESS, task) == scheduling.NICENESS
        assert os.sched_getscheduler(task) == os.SCHED_BATCH
    autogroup = Path(f"/proc/{process}/autogroup")
    share = autogroup.read_text().strip() if autogroup.exists() else ""
    assert not share or share.endswith(f"nice {scheduling.NICENESS}")
    assert Path(f"/proc/{process}/oom_score_adj").read_text().strip() == "500"
    assert b"LIBRARYFS_LLM_KEY" not in Path(f"/proc/{process}/environ").read_bytes()
    assert os.getsid(process) == process


def test_closing_ends_what_waits(language_model: LocalLanguageModel) -> None:
    began = threading.Event()
    answer = in_thread(
        lambda: language_model.generate(CHAT, max_tokens=4000, cancel=Cancel(), on_text=lambda _: began.set())
    )
    assert began.wait(60)
    process = pid(language_model)
    language_model.close()
    with pytest.raises(Cancelled, match="language model was closed"):
        answer.result(5)
    assert not gone(process)  # it is there for others
    assert len(tell(language_model)) > 3
    assert pid(language_model) == process
