"""A revocation takes back what the revoked ring touched, and leaves all other questions and answers alone."""

import json
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from libraryfs.store import access, edges, keywords, namespaces
from tests.mount.live import Live, sh, until
from tests.mount.test_ask import NO_MODELS, answering
from tests.store.build import Builder


def fill(build: Builder) -> None:
    """Three rings; a decision of /ring/linked replaces one of /ring/secret."""
    for ring in ("dev", "secret", "linked"):
        build.namespace(f"/ring/{ring}", "me")
        build.memory(f"/ring/{ring}", "d", "decision", title="Deploys", content=f"In {ring} we deploy on Tuesdays.\n")
    linked, secret = (namespaces.ensure(build.db, f"/ring/{ring}").id for ring in ("linked", "secret"))
    with build.snapshot.transaction() as db:
        edges.put(db, edges.Edge(linked, "d", "supersedes", secret, "d"), None)
        keywords.index_queued(db)


def revoke(build: Builder, ring: str) -> None:
    """Takes a ring away from the mount's principal."""
    with build.snapshot.transaction():
        access.revoke(build.db, "me", namespaces.ensure(build.db, f"/ring/{ring}"))


def shell(live: Live, folder: str) -> "subprocess.Popen[str]":
    """A session that asks in a folder when it gets a line, and reads the answer again at each further one."""
    script = """
        echo 'When do we deploy?' > .ask; exec 4<.ask; cat .ask; echo ready
        read line; sed 's/^/held: /' <&4; cat .ask; echo done
    """
    return subprocess.Popen(
        ["bash", "-c", script],
        cwd=live.point / folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def lines_to(process: "subprocess.Popen[str]", end: str) -> str:
    """What it says before that line."""
    said: list[str] = []
    assert process.stdout is not None
    for line in process.stdout:
        if line == f"{end}\n":
            return "".join(said)
        said.append(line)
    raise AssertionError("".join(said))


def test_finished_answers(build: Builder, tmp_path: Path) -> None:
    """By path and on a held handle: gone where the ring was touched, also through an edge; the others stay."""
    fill(build)
    with Live(build.path, tmp_path / "mount", environment=NO_MODELS) as live, ExitStack() as stack:
        asked = {folder: stack.enter_context(shell(live, folder)) for folder in ("ring/dev", "ring/linked", ".")}
        first = {folder: lines_to(process, "ready") for folder, process in asked.items()}
        assert all("Tuesdays" in text for text in first.values())
        process = answering(live)
        assert (live.point / "ring/secret").exists()  # from here on until the refresh takes it away
        revoke(build, "secret")
        until(lambda: not (live.point / "ring/secret").exists(), 5)
        for folder, one in asked.items():
            assert one.stdin is not None
            one.stdin.write("go\n")
            one.stdin.flush()
            then = lines_to(one, "done")
            if folder == "ring/dev":
                assert f"held: {first[folder].splitlines()[0]}" in then
                assert then.count("Tuesdays") == 2 * first[folder].count("Tuesdays")
            else:
                assert "Tuesdays" not in then
        assert answering(live) == process


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """An endpoint that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def test_answers_in_the_making(build: Builder, tmp_path: Path, silent: socket.socket) -> None:
    """One that touched the ring ends at once and says why; one that did not goes on, in the same process."""
    fill(build)
    url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
    environment = {"LIBRARYFS_EMBEDDER": "none", "LIBRARYFS_LLM": url}
    ask = "echo 'When do we deploy?' > .ask; timeout 20 cat .ask"
    with Live(build.path, tmp_path / "mount", environment=environment) as live, ExitStack() as stack:
        silent.settimeout(20)
        dev, linked = (
            stack.enter_context(
                subprocess.Popen(
                    ["bash", "-c", ask],
                    cwd=live.point / "ring" / ring,
                    stdout=subprocess.PIPE,
                    text=True,
                    start_new_session=True,
                )
            )
            for ring in ("dev", "linked")
        )
        taken = [stack.enter_context(silent.accept()[0]) for _ in range(2)]
        process = answering(live)
        revoke(build, "secret")
        said, _ = linked.communicate(timeout=5)
        assert "ask again" in said
        assert "Tuesdays" not in said
        assert dev.poll() is None
        assert answering(live) == process
        silent.close()
        for connection in taken:
            connection.close()
        said, _ = dev.communicate(timeout=20)
        assert "Tuesdays" in said


def test_one_handle_over_many_questions(build: Builder, tmp_path: Path) -> None:
    """What a handle has open leads somewhere, however many questions its session asks after."""
    fill(build)
    script = """
        echo '{"depth": 1}' > .tree; exec 4<.tree
        for number in $(seq 2100); do echo '{"depth": 0}' > .tree; done
        stat -L -c %F /proc/self/fd/4; sed -n 1p <&4
    """
    with Live(build.path, tmp_path / "mount", environment=NO_MODELS) as live:
        assert sh(script, live.point / "ring") == "regular file\n{\n"


def test_an_answer_that_is_taken_back_while_it_is_read(build: Builder, tmp_path: Path) -> None:
    """On one handle: who has a part is told that the rest is gone, and does not take the part for the whole."""
    fill(build)
    with Live(build.path, tmp_path / "mount", environment=NO_MODELS) as live:
        path = live.point / "ring/secret/.ask"
        with path.open("r+b", buffering=0) as part, path.open("r+b", buffering=0) as whole:
            for handle in (part, whole):
                handle.write(b'{"question": "When do we deploy?"}')
            read = b"".join(iter(lambda: whole.read(1 << 16), b""))
            assert json.loads(read)["evidence"]
            assert part.read(20) == read[:20]
            revoke(build, "secret")
            until(lambda: not (live.point / "ring/secret").exists())
            with pytest.raises(OSError, match="Stale"):
                part.read(1 << 16)
