"""One worker for all processes of a user: met through a socket of the user's own, never two, never left behind."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from libraryfs.errors import ModelUnavailable
from libraryfs.models import factory, home, wire
from libraryfs.models.cancel import Cancel
from libraryfs.models.client import Worker
from libraryfs.models.local import LocalEmbedder
from libraryfs.settings import Settings
from tests.conftest import RUNTIME, end_workers, workers
from tests.models.conftest import eventually

CLIENT = """
import sys
import time
from libraryfs.models import factory
from libraryfs.models.cancel import Cancel
from libraryfs.settings import settings
model = factory.embedder(settings())
model.embed(["When do we deploy?"], Cancel())
print(model._worker.pid)
"""


def client(**variables: str) -> subprocess.Popen[str]:
    """Another process of the user that embeds a question, and prints its worker's process id."""
    command = [sys.executable, "-W", "error", "-c", CLIENT]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=os.environ | variables)


def answer(process: subprocess.Popen[str]) -> int:
    out, error = process.communicate(timeout=120)
    assert process.returncode == 0, error
    assert not error
    return int(out)


@pytest.fixture
def alone() -> Iterator[None]:
    """No worker at the start and at the end."""
    factory.close()
    end_workers()
    assert eventually(lambda: not workers())
    yield
    factory.close()
    end_workers()


@pytest.mark.models
@pytest.mark.usefixtures("alone")
def test_processes_that_start_at_once_share_one_worker() -> None:
    started = [client() for _ in range(4)]
    pids = {answer(process) for process in started}
    assert len(pids) == 1
    assert workers() == pids
    assert answer(client()) in pids  # it outlives those that it came with


@pytest.mark.models
@pytest.mark.usefixtures("alone")
def test_other_settings_are_another_worker() -> None:
    assert answer(client()) != answer(client(LIBRARYFS_MODEL_THREADS="1"))
    assert answer(client(LIBRARYFS_MODEL_IDLE_SECONDS="77")) in workers()
    assert len(workers()) == 2


@pytest.mark.models
@pytest.mark.usefixtures("alone")
def test_a_killed_worker_leaves_no_one_waiting(embedder: LocalEmbedder) -> None:
    first = answer(client())
    embedder.embed(["a"], Cancel())
    assert embedder._worker.pid == first
    os.kill(first, signal.SIGKILL)
    assert eventually(lambda: first not in workers())
    second = answer(client())
    assert second != first
    embedder.embed(["a"], Cancel())
    assert embedder._worker.pid == second


@pytest.mark.models
@pytest.mark.usefixtures("alone")
def test_an_idle_worker_ends_and_leaves_no_socket() -> None:
    process = answer(client(LIBRARYFS_MODEL_IDLE_SECONDS="1"))
    assert eventually(lambda: process not in workers(), 20)
    assert not list((RUNTIME / "libraryfs").glob("*.sock"))


@pytest.mark.models
@pytest.mark.usefixtures("alone")
def test_a_worker_whose_socket_is_gone_ends() -> None:
    """As after a log-out: nobody could find it any more."""
    process = answer(client())
    for path in (RUNTIME / "libraryfs").glob("*.sock"):
        path.unlink()
    assert eventually(lambda: process not in workers(), 20)


@pytest.mark.models
@pytest.mark.usefixtures("alone")
def test_keys_reach_neither_name_nor_arguments_nor_environment() -> None:
    process = answer(client(LIBRARYFS_LLM_KEY="sk-12345", OPENAI_API_KEY="sk-12345", LIBRARYFS_EMBEDDER_KEY="sk-12345"))
    assert b"sk-12345" not in Path(f"/proc/{process}/cmdline").read_bytes()
    assert b"sk-12345" not in Path(f"/proc/{process}/environ").read_bytes()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> home.Place:
    """A place for a worker in a folder of its own, with a path longer than a socket's address can be."""
    folder = tmp_path / ("long" * 30)
    folder.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    weights = tmp_path / "weights"
    weights.write_bytes(b"w")
    return home.place(order(weights))


def order(weights: Path, **more: object) -> wire.Header:
    return {"kind": "embedder", "threads": 1, "context": 0, "memory_bytes": 0, "path": str(weights), **more}


def test_the_folder_is_the_users_alone(place: home.Place) -> None:
    assert stat.S_IMODE(place.folder.stat().st_mode) == 0o700
    place.folder.chmod(0o755)
    assert home.place(order(place.folder.parent.parent / "weights")) == place
    assert stat.S_IMODE(place.folder.stat().st_mode) == 0o700


def test_a_folder_that_cannot_be_is_an_error_with_the_cure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "libraryfs").write_text("in the way")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with pytest.raises(ModelUnavailable, match="XDG_RUNTIME_DIR"):
        home.place(order(tmp_path / "libraryfs"))


def test_without_a_runtime_folder_it_is_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    monkeypatch.setenv("LIBRARYFS_CACHE", str(tmp_path / "cache"))
    (tmp_path / "weights").write_bytes(b"w")
    assert home.place(order(tmp_path / "weights")).folder == tmp_path / "cache" / "run"


def test_the_lock_is_one_processs_and_ends_with_it(place: home.Place) -> None:
    assert place.connect() is None
    held = place.lock()
    assert held is not None
    assert place.lock() is None
    os.close(held)
    again = place.lock()
    assert again is not None
    with place.listen(), place.listen():  # the second takes the place of what a crash left
        connection = place.connect()
        assert connection is not None
        assert home.peer_uid(connection) == os.geteuid()
        connection.close()
    os.close(again)
    assert place.connect() is None


def test_another_user_at_the_socket_is_refused(place: home.Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(home, "peer_uid", lambda connection: os.geteuid() + 1)
    with place.listen(), pytest.raises(ModelUnavailable, match="another user"):
        place.connect()


@pytest.mark.parametrize("changed", ["weights", "threads", "memory_bytes", "path"])
def test_what_shapes_a_worker_names_its_place(place: home.Place, tmp_path: Path, changed: str) -> None:
    weights = tmp_path / "weights"
    if changed == "weights":
        weights.write_bytes(b"other weights")
        other = home.place(order(weights))
    elif changed == "path":
        (tmp_path / "else").write_bytes(b"w")
        other = home.place(order(tmp_path / "else"))
    else:
        other = home.place(order(weights, **{changed: 7}))
    assert other.name != place.name


def test_two_deaths_in_a_row_of_one_cause_are_remembered_until_it_works(place: home.Place) -> None:
    place.note_death("100", "died of SIGSEGV")
    place.note_death("100", "died of SIGSEGV")  # a second witness of the same death
    assert place.last_death() is None
    place.note_death("101", "was killed")
    assert place.last_death() is None
    place.note_death("102", "was killed")
    assert place.last_death() == "was killed"
    place.forget_deaths()
    assert place.last_death() is None
    place.file("deaths").write_text("no JSON")
    assert place.last_death() is None


def test_a_model_is_tried_again_after_a_while(place: home.Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.note_death("100", "was killed")
    place.note_death("101", "was killed")
    later = time.time() + home.REST_SECONDS + 1
    monkeypatch.setattr("time.time", lambda: later)
    assert place.last_death() is None


def test_a_model_that_is_left_alone_starts_no_process(place: home.Place, tmp_path: Path) -> None:
    place.note_death("100", "was killed")
    place.note_death("101", "was killed")
    worker = Worker(order(tmp_path / "weights"), idle_seconds=1, waiting=1)
    with pytest.raises(ModelUnavailable, match=r"left alone for now .*libraryfs doctor"):
        worker.describe(Cancel())
    assert not place.file("sock").exists()


def test_a_worker_that_leaves_is_no_death(place: home.Place, tmp_path: Path) -> None:
    """One that ends for idleness while a request comes: the request goes to the next one."""
    worker = Worker(order(tmp_path / "weights"), idle_seconds=1, waiting=1)
    lock = place.lock()
    assert lock is not None
    with place.listen() as listener:
        ticket = worker.submit({"do": "describe"})
        end, _ = listener.accept()
        wire.send(end, {"pid": 1})
        wire.send(end, {"leaving": True})
        end.close()
        end, _ = listener.accept()
        wire.send(end, {"pid": 2})
        assert "order" in wire.receive(end)[0]
        assert wire.receive(end)[0]["do"] == "describe"
        wire.send(end, {"id": ticket.number, "done": {"dimension": 3}})
        assert ticket.wait(Cancel.after(20))[0] == {"dimension": 3}
        assert not place.file("deaths").exists()
        end.shutdown(socket.SHUT_RDWR)
        end.close()
    os.close(lock)
    worker.close()
    assert json.dumps(worker.order)


def test_a_fork_opens_connections_of_its_own() -> None:
    mine = factory.embedder(Settings())
    child = os.fork()
    if child == 0:
        os._exit(0 if factory.embedder(Settings()) is not mine else 1)
    assert os.waitpid(child, 0)[1] == 0
