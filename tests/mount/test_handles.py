"""Control files in any order of open, write, dup, read, stat and close, by several sessions at once; and by a crowd."""

import errno
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from libraryfs.errors import LibraryError
from libraryfs.library.resolver import Library
from libraryfs.mount.control import MAX_REQUEST, Call, ControlKind, render_error, wants_json
from libraryfs.mount.walk_controls import TreeControl
from libraryfs.store import keywords
from tests.mount.live import Live
from tests.mount.slow import SlowControl
from tests.store.build import Builder

CROWD = 200
FOLDERS = ("", "ring", "ring/dev", "ring/dev/decisions")


@pytest.fixture(scope="module")
def live(module_build: Builder, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A mount that asks by keywords, of a ring with a fact for each of the crowd; with `.slow`."""
    module_build.namespace("/ring/dev", "me")
    for n in range(CROWD):
        text = f"The gauge zebra{n} is read on floor {n * 7}.\n"
        module_build.memory("/ring/dev", f"z{n}", "decision", title=f"Gauge {n}", content=text)
    with module_build.snapshot.transaction() as db:
        keywords.index_queued(db)
    folder = tmp_path_factory.mktemp("handles")
    environment = {"LIBRARYFS_EMBEDDER": "none", "LIBRARYFS_LLM": "none", "SLOW_LOG": str(folder / "noted")}
    with Live(module_build.path, folder / "mount", environment=environment) as live:
        yield live


# A process in a session of its own that does what it is told, one system call a line.
WORKER = """
import json, os, sys

def copy(descriptor, size):  # as busybox cat does, by the kernel's pages
    out = os.memfd_create("copy")
    while os.sendfile(out, descriptor, None, size):
        pass
    os.lseek(out, 0, os.SEEK_SET)
    said = os.read(out, 1000000)
    os.close(out)
    return said

os.copy = copy
for line in sys.stdin:
    name, *arguments = json.loads(line)
    arguments = [a.encode("latin-1") if name == "write" and isinstance(a, str) else a for a in arguments]
    try:
        said = getattr(os, name)(*arguments)
        said = said.decode("latin-1") if isinstance(said, bytes) else said
        said = said.st_size if name in ("stat", "fstat") else said
    except OSError as error:
        said = {"errno": error.errno}
    print(json.dumps(said), flush=True)
"""


class Worker:
    """One process session."""

    def __init__(self) -> None:
        command = [sys.executable, "-IS", "-c", WORKER]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )

    def do(self, name: str, *arguments: object) -> Any:
        """The result of `os.name(…)`; of a failure, {"errno": …}."""
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps([name, *arguments]) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def end(self) -> None:
        """The process's end, whatever it is at."""
        self.process.kill()
        self.process.communicate()


@dataclass(eq=False)
class Asked:
    """A request, and whether it is complete."""

    text: bytes = b""
    complete: bool = False


@dataclass(eq=False)
class Open:
    """An open control file."""

    worker: int
    folder: str
    descriptor: int
    private: bool
    asked: Asked | None = None
    refused: bool = False
    cursor: int = 0


WORKERS = st.integers(0, 2)
FOLDER = st.sampled_from(FOLDERS)
PIECES: dict[bytes, st.SearchStrategy[bytes]] = {
    b".tree": st.sampled_from(
        [b'{"depth": 1}', b'{"depth": 2}', b'{"depth": 99}', b'{"dep', b'th": 3}', b"\n", b"{", b"\xff"]
    )
    | st.integers(0, 10**9).map(lambda n: b'{"m%d": 1}' % n),
    b".slow": st.sampled_from([b"0 a\n", b"0.02 b\n", b"0 a longer text\n"])
    | st.integers(0, 10**9).map(lambda n: b"0.01 %d\n" % n),
}
LONG = st.sampled_from([MAX_REQUEST, MAX_REQUEST + 1, MAX_REQUEST - 12]).map(b"0 long".ljust)


class Handles(RuleBasedStateMachine):
    """By path, a session reads the answer of its last request; on a handle, one reads the handle's, and in order."""

    point: ClassVar[str]
    kind: ClassVar[ControlKind]
    library: ClassVar[Library]
    workers: ClassVar[list[Worker]]
    known: ClassVar[dict[tuple[str, bytes], bytes]]
    opened = Bundle("opened")

    @initialize()
    def start(self) -> None:
        self.newest: dict[tuple[int, str], Asked | None] = {}
        self.open: list[Open] = []
        for number, worker in enumerate(self.workers):
            for folder in FOLDERS:  # forgets what the last run asked
                worker.do("close", worker.do("open", self.path(folder), os.O_WRONLY | os.O_TRUNC))
                self.newest[number, folder] = None

    def path(self, folder: str) -> str:
        return f"{self.point}/{folder}/{self.kind.name.decode()}"

    def expected(self, folder: str, asked: Asked | None) -> bytes:
        """What the kind says to it, without a mount."""
        if asked is None and self.kind.silent:
            return b""
        request = b"" if asked is None else asked.text
        if (folder, request) not in self.known:
            call = Call(request, self.library.resolve(f"/{folder}"), self.library)
            try:
                said = b"".join(self.kind.answer(call))
            except LibraryError as error:
                said = render_error(error, request)
                assert said.count(b"\n") == 1
                assert said.startswith(b'{"error": ' if wants_json(request) else b"error: LIBRARY_")
            self.known[folder, request] = said
        return self.known[folder, request]

    @rule(target=opened, worker=WORKERS, folder=FOLDER, how=st.sampled_from(["private", "new", "append"]))
    def open_it(self, worker: int, folder: str, how: str) -> Open:
        flags = {
            "private": os.O_RDWR | os.O_CREAT,
            "new": os.O_WRONLY | os.O_TRUNC,
            "append": os.O_WRONLY | os.O_APPEND,
        }
        descriptor = self.workers[worker].do("open", self.path(folder), flags[how])
        if how == "new":
            self.newest[worker, folder] = None
        self.open.append(Open(worker, folder, descriptor, how == "private"))
        return self.open[-1]

    @rule(handle=opened, data=st.data())
    def write(self, handle: Open, data: st.DataObject) -> None:
        piece = data.draw(PIECES[self.kind.name] | LONG, "piece")
        said = self.workers[handle.worker].do("write", handle.descriptor, piece.decode("latin-1"))
        if handle.refused:
            assert said == {"errno": errno.EFBIG}
            return
        place = handle.worker, handle.folder
        if handle.asked is None or handle.asked.complete:
            handle.asked, handle.cursor = Asked(), 0
            if not handle.private:
                self.newest[place] = handle.asked
        if len(handle.asked.text) + len(piece) > MAX_REQUEST:
            assert said == {"errno": errno.EFBIG}
            if self.newest[place] is handle.asked:
                self.newest[place] = None
            handle.asked, handle.refused = None, not handle.private
            return
        assert said == len(piece)
        handle.asked.text += piece

    @rule(handle=opened, size=st.sampled_from([1, 40, 4096, 100_000]))
    def read_handle(self, handle: Open, size: int) -> None:
        said = self.workers[handle.worker].do("read", handle.descriptor, size)
        if not handle.private:
            assert said == {"errno": errno.EBADF}
            return
        if handle.asked is not None:
            handle.asked.complete = True
        whole = self.expected(handle.folder, handle.asked)
        got, left = said.encode("latin-1"), whole[handle.cursor :]
        assert bool(got) == bool(left)  # part of it, as it is made
        assert left[:size].startswith(got)
        handle.cursor += len(got)

    @rule(handle=opened)
    def copy_handle(self, handle: Open) -> None:
        """It finds nothing, and leaves nothing where others would find it."""
        if handle.private:
            assert self.workers[handle.worker].do("copy", handle.descriptor, 100_000) == ""

    @rule(worker=WORKERS, folder=FOLDER, size=st.sampled_from([40, 100_000]), way=st.sampled_from(["read", "copy"]))
    def read_path(self, worker: int, folder: str, size: int, way: str) -> None:
        asked, do = self.newest[worker, folder], self.workers[worker].do
        if asked is not None:
            asked.complete = True
        descriptor = do("open", self.path(folder), os.O_RDONLY)
        parts = list(iter(lambda: do(way, descriptor, size), ""))
        whole = self.expected(folder, asked)
        assert "".join(parts).encode("latin-1") == whole
        assert do("fstat", descriptor) == do("stat", self.path(folder)) == len(whole)
        do("close", descriptor)

    @rule(handle=opened)
    def close_a_copy(self, handle: Open) -> None:
        do = self.workers[handle.worker].do
        do("close", do("dup", handle.descriptor))

    @rule(handle=consumes(opened))
    def close(self, handle: Open) -> None:
        assert self.workers[handle.worker].do("close", handle.descriptor) is None
        if handle.asked is not None:
            handle.asked.complete = True
        self.open.remove(handle)

    @rule(target=opened)
    def nothing(self) -> Any:
        return multiple()

    @invariant()
    def it_lives(self) -> None:
        assert set(os.listdir(self.point)) == {".ask", ".slow", "AGENTS.md", "README.md", "agent", "ring"}

    def teardown(self) -> None:
        for handle in self.open:
            self.workers[handle.worker].do("close", handle.descriptor)


def run(live: Live, build: Builder, kind: ControlKind, examples: int) -> None:
    """So many sequences, from a fixed seed."""
    with ExitStack() as stack:
        Handles.point, Handles.library = str(live.point), Library(build.snapshot, "me")
        Handles.kind, Handles.known = kind, {}
        Handles.workers = [Worker() for _ in range(3)]
        for worker in Handles.workers:
            stack.callback(worker.end)
        chosen = settings(
            max_examples=examples,
            stateful_step_count=30,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        run_state_machine_as_test(Handles, settings=chosen)


def test_any_order(live: Live, module_build: Builder, tmp_path: Path) -> None:
    """A few sequences, of a file whose answer is there at once, and of one that takes its time."""
    run(live, module_build, TreeControl(), 7)
    run(live, module_build, SlowControl(tmp_path / "noted"), 7)


@pytest.mark.slow
def test_any_order_at_length(live: Live, module_build: Builder, tmp_path: Path) -> None:
    """Many."""
    run(live, module_build, TreeControl(), 150)
    run(live, module_build, SlowControl(tmp_path / "noted"), 150)


def test_a_crowd_asks(live: Live) -> None:
    """Half by path, each in its own session, half on handles: each gets its own answer, or EAGAIN; `ls` goes on."""
    folder = live.point / "ring/dev"

    def by_path(n: int) -> str:
        script = f"echo 'Where is zebra{n} read?' > .ask && exec cat .ask"
        done = subprocess.run(["sh", "-c", script], cwd=folder, capture_output=True, text=True, start_new_session=True)
        return done.stdout + done.stderr

    def by_handle(n: int) -> str:
        with (folder / ".ask").open("r+b", buffering=0) as handle:
            try:
                handle.write(f"Where is zebra{n} read?".encode())
                return b"".join(iter(lambda: handle.read(65_536), b"")).decode()
            except OSError as error:
                return str(error)

    longest = 0.0
    with ThreadPoolExecutor(CROWD) as pool:
        asking = [pool.submit(by_handle if n % 2 else by_path, n) for n in range(CROWD)]
        while not all(one.done() for one in asking):
            started = time.monotonic()
            assert "decisions" in os.listdir(folder)
            assert (folder / "decisions/gauge-7.md").stat().st_size == len("The gauge zebra7 is read on floor 49.\n")
            longest = max(longest, time.monotonic() - started)
            time.sleep(0.01)
    answers = [one.result() for one in asking]
    refused = [answer for answer in answers if "Resource temporarily unavailable" in answer]
    assert len(refused) < CROWD / 2
    for n, answer in enumerate(answers):
        if answer not in refused:
            assert f"The gauge zebra{n} is read on floor {n * 7}." in answer
            assert answer.count("The gauge zebra") == 1
            assert answer.count(f"[1] {folder}/decisions/gauge-{n}.md:1\n") == 1
    assert longest < 20  # it hangs, or it does not: how long it takes is for the benchmarks
