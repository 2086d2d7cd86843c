"""SIGKILL at random points, 25 times each: an importer, the daemon, the process that answers. Nothing is lost or half.

The worker of a model is killed in tests/models/test_kills.py.
"""

import hashlib
import json
import multiprocessing
import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from libraryfs.ingest.importer import import_source
from libraryfs.library.resolver import Library
from libraryfs.store.check import check
from libraryfs.store.snapshot import Snapshot
from tests.mount.live import Live, sh, until
from tests.mount.test_ask import FACTS, NO_MODELS, fill
from tests.store.build import Builder

pytestmark = pytest.mark.slow

KILLS = 25
FILES = 60
CHANCE = random.Random()
_FORKS = multiprocessing.get_context("forkserver")


def write(source: Path, version: int) -> None:
    """Files whose first line is the digest of the rest; each version also has one that no other has."""
    folder = source / "skills"
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("only-*"):
        old.unlink()
    for number in range(FILES):
        rest = f"Version {version} of {number}. " + "word " * (number * (version % 7 + 1))
        (folder / f"note-{number:03}.md").write_text(f"{hashlib.sha256(rest.encode()).hexdigest()}\n{rest}")
    (folder / f"only-{version}.md").write_text(f"Version {version} of all.")


def _import(snapshot: Path, source: Path) -> None:
    opened = Snapshot.open(snapshot, create=True)
    import_source(opened, source, "/ring/dev", "me", lambda *_: None)
    opened.close()


def imported(snapshot: Path) -> int:
    """The version that a reader finds, whole; 0 for none."""
    if not snapshot.exists():
        return 0
    with Snapshot.open(snapshot, write=True) as opened:
        assert opened.db.pragma("integrity_check") == "ok"
        assert list(check(opened.db)) == []
        library = Library(opened, "me")
        if not opened.db.execute("SELECT count(*) FROM memories").get:
            return 0
        entries = library.children_by_name(library.resolve("/ring/dev/skills"))
        texts = {entry.name: library.content(entry) for entry in entries}
    assert len(texts) == FILES + 1
    versions = set()
    for name, data in texts.items():
        if name.startswith(b"only-"):
            versions.add(int(name[5:-3]))
            continue
        digest, _, rest = data.partition(b"\n")
        assert hashlib.sha256(rest).hexdigest().encode() == digest
        versions.add(int(rest.split()[1]))
    assert len(versions) == 1
    return versions.pop()


def test_importer(tmp_path: Path) -> None:
    """Each time the snapshot holds one version whole: the one before, or the one that was being imported."""
    source, snapshot = tmp_path / "notes", tmp_path / "library.db"
    write(source, 1)
    began = time.monotonic()
    first = _FORKS.Process(target=_import, args=(snapshot, source))
    first.start()
    first.join(60)
    took, held = time.monotonic() - began, imported(snapshot)
    assert held == 1
    for version in range(2, KILLS + 2):
        write(source, version)
        child = _FORKS.Process(target=_import, args=(snapshot, source))
        child.start()
        time.sleep(CHANCE.uniform(0, took))
        child.kill()
        child.join(60)
        found = imported(snapshot)
        assert found in (held, version)
        held = found
    _import(snapshot, source)
    assert imported(snapshot) == KILLS + 1


@pytest.fixture
def reading(tmp_path: Path) -> Iterator[list[str]]:
    """Somebody who reads, asks and walks in `tmp_path/mount` all the time; what he got that is wrong."""
    wrong: list[str] = []
    stop = threading.Event()
    point = tmp_path / "mount"

    def read() -> None:
        while not stop.is_set():
            with suppress(OSError):  # there is no mount at this moment
                data = (point / "ring/dev/decisions/deploys.md").read_text()
                if data != FACTS["Deploys"]:
                    wrong.append(data)
                if "decisions" not in os.listdir(point / "ring/dev"):
                    wrong.append("no decisions")
            time.sleep(0.002)

    reader = threading.Thread(target=read)
    reader.start()
    yield wrong
    stop.set()
    reader.join(30)


def test_daemon(build: Builder, tmp_path: Path, reading: list[str]) -> None:
    """It is mounted again on the same point, with what was there; who reads meanwhile gets an error or the file."""
    fill(build)
    live = Live(build.path, tmp_path / "mount", environment=NO_MODELS)
    live.expected.append("recover|was dead|stale")
    for _ in range(KILLS):
        live.start()
        time.sleep(CHANCE.uniform(0, 0.4))
        live.stop(signal.SIGKILL)
    with live:
        assert (live.point / "ring/dev/decisions/deploys.md").read_text() == FACTS["Deploys"]
        said = sh('echo "When do we deploy?" > .ask; cat .ask', live.point / "ring/dev", session=True)
        assert "We deploy on Tuesdays" in said
    assert reading == []


def children(live: Live) -> list[int]:
    """The daemon's processes that answer."""
    found = []
    for task in Path(f"/proc/{live.pid}/task").iterdir():
        with suppress(OSError):
            for pid in (task / "children").read_text().split():
                if b"libraryfs.mount.answering" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    found.append(int(pid))
    return found


def test_answering_process(build: Builder, tmp_path: Path, reading: list[str]) -> None:
    """Who waits is told to ask again; every answer that comes is right; the mount serves on."""
    fill(build)
    with Live(build.path, tmp_path / "mount", environment=NO_MODELS) as live:
        live.expected.append("the answering process|Traceback")
        stop, answers = threading.Event(), list[str]()

        def ask() -> None:
            while not stop.is_set():
                request = json.dumps({"question": "When do we deploy?"})
                answers.append(sh(f"echo '{request}' > .ask; cat .ask", live.point / "ring/dev", session=True))

        askers = [threading.Thread(target=ask) for _ in range(3)]
        for asker in askers:
            asker.start()
        killed = 0
        while killed < KILLS:
            until(lambda: children(live), 60)
            time.sleep(CHANCE.uniform(0, 0.6))
            for pid in children(live):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    killed += 1
        stop.set()
        for asker in askers:
            asker.join(60)
        for answer in answers:
            result = json.loads(answer)
            assert "error" in result or "Tuesdays" in result["answer"], answer
            assert "error" not in result or "ask again" in result["error"]["message"], answer
        said = sh('echo "When do we deploy?" > .ask; cat .ask', live.point / "ring/dev", session=True)
        assert "We deploy on Tuesdays" in said
    assert reading == []
