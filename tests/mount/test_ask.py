""".ask on a real mount: questions of shells, scripts and many at once; the process that answers dies, and is back."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from libraryfs.cli.models import Cancel, models
from libraryfs.ingest.embed import embed_missing
from libraryfs.store import keywords
from tests.mount.live import Live, sh, until
from tests.store.build import Builder

FACTS = {
    "Deploys": "We deploy on Tuesdays, after the stand-up. Nobody deploys on Fridays.\n",
    "Backups": "Backups are copied by rsync each night at two.\n",
    "Access": "A ring is seen by those who were granted it, and by nobody else.\n",
    "Coffee": "The coffee machine is cleaned by whoever finds it dirty.\n",
}
NO_MODELS = {"LIBRARYFS_EMBEDDER": "none", "LIBRARYFS_LLM": "none"}


def fill(build: Builder) -> None:
    """A ring and an agent with some facts, and a ring that is hidden."""
    build.namespace("/ring/dev", "me")
    build.namespace("/agent/alice", "me")
    build.namespace("/ring/secret", "other")
    for title, text in FACTS.items():
        build.memory("/ring/dev", title, "decision", title=title, content=text)
    build.item("/ring/dev", "w1", name="rota.md", content="The rota for deploys is in the calendar.\n")
    build.memory("/agent/alice", "a1", "episodic", title="Lunch", content="Alice had soup for lunch on Monday.\n")
    build.memory("/ring/secret", "s1", "decision", title="Secret", content="The secret deploys happen on Sundays.\n")
    with build.snapshot.transaction() as db:
        keywords.index_queued(db)


@pytest.fixture(scope="module")
def live(module_build: Builder, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A mount that asks without models: keywords and quotes."""
    fill(module_build)
    with Live(module_build.path, tmp_path_factory.mktemp("ask") / "mount", environment=NO_MODELS) as live:
        live.expected.append("the answering process|Traceback")
        yield live


def answering(live: Live) -> int:
    """The process that answers."""
    children = Path(f"/proc/{live.pid}/task/{live.pid}/children").read_text().split()
    threads = [
        pid
        for task in Path(f"/proc/{live.pid}/task").iterdir()
        for pid in (task / "children").read_text().split()
        if b"libraryfs.mount.answering" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]
    assert len(threads) == 1, children
    return int(threads[0])


def test_text(live: Live) -> None:
    """The answer, and citations that can be opened and hold what was said."""
    said = sh('echo "When do we deploy?" > .ask; cat .ask', live.point / "ring/dev", session=True)
    answer, cited = said.splitlines()[0], [line for line in said.splitlines() if line.startswith("[1] ")]
    assert answer.startswith("We deploy on Tuesdays, after the stand-up.")
    assert cited == [f"[1] {live.point}/ring/dev/decisions/deploys.md:1"]
    assert answer in Path(cited[0].removeprefix("[1] ").removesuffix(":1")).read_text()
    assert "note: no language model is set" in said
    assert said.endswith("\nquestion: When do we deploy?\n")


@pytest.mark.parametrize(
    "folder", ["", "ring", "ring/dev", "ring/dev/decisions", "ring/dev/workspace", "agent/alice/memory"]
)
def test_each_folder_answers_from_what_is_below_it(live: Live, folder: str) -> None:
    """By default its own; what is hidden is in no answer and in no evidence."""
    result = json.loads(
        sh('echo \'{"question": "deploys rota lunch secret"}\' > .ask; cat .ask', live.point / folder, session=True)
    )
    assert result["question"] == "deploys rota lunch secret"
    paths = [item["path"] for item in result["evidence"]]
    assert paths
    assert all(path.startswith(f"/{folder}") for path in paths)
    assert "ecret" not in json.dumps(result).replace("deploys rota lunch secret", "")
    for citation in result["citations"]:
        assert citation["quote"] in (live.point / citation["path"][1:]).read_text()


def test_paths_that_are_hidden_or_absent(live: Live) -> None:
    """The same words for both."""
    said = []
    for name in ("secret", "absent"):
        request = json.dumps({"question": "When are deploys?", "paths": [f"/ring/{name}"]})
        said.append(sh(f"echo '{request}' > .ask; cat .ask", live.point, session=True).replace(name, "NAME"))
    assert said[0] == said[1]
    assert json.loads(said[0])["error"]["code"] == "LIBRARY_PATH_NOT_FOUND"


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"\n",
        b"   ",
        b"\0\0\0",
        b"\xff\xfe\xfd",
        "🦊🦊".encode(),
        b"{",
        b'{"question": 1}',
        b'{"question": "a", "no": 1}',
        b"[" * 60_000,
    ],
)
def test_requests_that_are_none(live: Live, request_bytes: bytes) -> None:
    """Answered with an error that says why; as JSON when it began as JSON. The mount lives."""
    path = live.point / "ring/dev/.ask"
    path.write_bytes(request_bytes)
    said = path.read_bytes()
    if request_bytes.startswith(b"{"):
        assert json.loads(said)["error"]["code"] == "LIBRARY_INVALID_REQUEST"
    else:
        assert said.startswith(b"error: LIBRARY_")
    assert said.count(b"\n") == 1
    path.write_bytes(b"")


def test_a_handle_streams_the_evidence_first(live: Live) -> None:
    """Then the text, then the citations; all of it one text. That parts come as they are made: test_controls."""
    with (live.point / "ring/dev/.ask").open("r+b", buffering=0) as handle:
        handle.write(b"When do we deploy?")
        whole = b"".join(iter(lambda: handle.read(65_536), b""))
    assert whole.startswith(b"evidence:\n")
    evidence, _, answer = whole.partition(b"We deploy on Tuesdays, after the stand-up.")
    assert b"/decisions/deploys.md" in evidence
    assert b"[1] " in answer


def test_many_at_once(live: Live) -> None:
    """Sixty scripts by path, and sixty private handles: each has its own answer, and `ls` answers meanwhile."""
    facts = list(FACTS.values())
    questions = [
        "When do we deploy?",
        "How are backups copied?",
        "Who was granted a ring that is seen?",
        "Who finds the coffee machine dirty?",
    ]

    def by_path(n: int) -> str:
        return sh(f"echo '{questions[n % 4]}' > .ask; cat .ask", live.point / "ring/dev", session=True).splitlines()[0]

    def by_handle(n: int) -> str:
        script = f"exec 3<>.ask; echo '{questions[n % 4]}' >&3; cat <&3"
        return sh(script, live.point / "ring/dev").split("\n\n", 1)[1].splitlines()[0]

    with ThreadPoolExecutor(24) as pool:
        paths, handles = pool.map(by_path, range(60)), pool.map(by_handle, range(60))
        for _ in range(10):
            assert "decisions" in os.listdir(live.point / "ring/dev")
        for n, answers in enumerate(zip(paths, handles, strict=True)):
            assert all(answer in facts[n % 4] for answer in answers)


def test_the_answering_process_is_killed(live: Live) -> None:
    """Whoever waits is told; the next question is answered."""
    sh('echo "When do we deploy?" > .ask; cat .ask', live.point / "ring/dev", session=True)
    pid = answering(live)
    os.kill(pid, signal.SIGSTOP)  # so that the question is still open when it dies
    with subprocess.Popen(
        ["sh", "-c", "echo 'Who was granted a ring that is seen?' > .ask; exec cat .ask"],
        cwd=live.point / "ring/dev",
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as asking:
        time.sleep(0.5)
        os.kill(pid, signal.SIGKILL)
        assert asking.stdout is not None
        assert asking.stdout.read() == "error: LIBRARY_ERROR: the process that answers has ended; ask again\n"
    said = sh('echo "Who was granted a ring that is seen?" > .ask; cat .ask', live.point / "ring/dev", session=True)
    assert said.startswith("A ring is seen by those who were granted it")
    assert answering(live) != pid


def test_it_ends_with_the_mount(build: Builder, tmp_path: Path) -> None:
    """No process is left behind, whether the daemon is told to end or is killed."""
    fill(build)
    for number in (signal.SIGTERM, signal.SIGKILL):
        with Live(build.path, tmp_path / f"mount-{number}", environment=NO_MODELS) as live:
            sh('echo "When do we deploy?" > .ask; cat .ask', live.point, session=True)
            pid = answering(live)
            live.stop(number)
            until(lambda pid=pid: not Path(f"/proc/{pid}").exists() or _is_zombie(pid), 5)  # type: ignore[misc]
            subprocess.run(["fusermount3", "-u", "-z", str(live.point)], check=False, capture_output=True)


def _is_zombie(pid: int) -> bool:
    return ") Z " in Path(f"/proc/{pid}/stat").read_text()


def test_walks_read_nothing_and_start_nothing(live: Live, tmp_path: Path) -> None:
    """`.ask` is listed, and every walk passes it by."""
    out = tmp_path / "out"
    for walk in ("grep -r zzz . || true", "tar cf - . | cat > /dev/null", f"cp -r . {out}", f"rsync -a . {out}/"):
        with live.counting():
            sh(walk, live.point / "ring/dev", session=True)
    assert (out / ".ask").read_bytes() == b""


@pytest.mark.models
def test_with_models(build: Builder, tmp_path: Path) -> None:
    """The default embedder and language model: the right file is cited, and its quote is in it.

    A question in other words than the file's finds it too, though it is not sure to be answered by it.
    """
    fill(build)
    with models() as (embedder, _):
        assert embedder is not None
        embed_missing(build.snapshot, embedder, Cancel())
    with Live(build.path, tmp_path / "mount") as live:

        def asked(question: str) -> Any:
            request = json.dumps({"question": question, "ground": True})
            script = f"echo '{request}' > .ask; cat .ask"
            return json.loads(sh(script, live.point / "ring/dev", session=True, seconds=300))

        result = asked("On which day do we deploy?")
        assert result["grounding"] == "grounded"
        assert result["citations"][0]["path"] == "/ring/dev/decisions/deploys.md"
        for citation in result["citations"]:
            assert citation["quote"] in (live.point / citation["path"][1:]).read_text()
        other = asked("On which day does the team ship?")
        assert (other["citations"] or other["nearest"])[0]["path"] == "/ring/dev/decisions/deploys.md"
