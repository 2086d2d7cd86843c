"""`.eval` over a real mount, through the real pipeline, with no model: keyword search, quoted sentences."""

import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from libraryfs.store import keywords
from tests.mount.live import Live, until
from tests.store.build import Builder

RING = "/ring/dev"
FACTS = {
    "zebra": "The zebra gate opens at seven in the morning.",
    "walrus": "The walrus pump moves ninety litres a minute.",
    "lemur": "The lemur lamp was replaced in March by Petra Novak.",
}
SET = """## When does the zebra gate open?
- seven

## How much does the walrus pump move a minute?
- ninety litres

## Who replaced the lemur lamp in March?
- Petra Novak
"""


@pytest.fixture
def live(tmp_path: Path) -> Iterator[tuple[Live, Builder]]:
    """A mount of a ring with an eval set, and a hand on its snapshot."""
    build = Builder(tmp_path / "library.db")
    build.namespace(RING, "me")
    build.namespace("/ring/secret")
    build.namespace("/agent/alice", "me")
    for name, text in FACTS.items():
        build.memory(RING, name, content=text)
    build.item(RING, "set", name="eval-set.md", content=SET)
    build.item("/ring/secret", "other", name="eval-set.md", content=SET)
    _index(build)
    quiet = {"LIBRARYFS_LLM": "none", "LIBRARYFS_EMBEDDER": "none", "LIBRARYFS_CACHE": str(tmp_path / "cache")}
    with Live(build.path, tmp_path / "mount", environment=quiet) as mount:
        yield mount, build
    build.snapshot.close()


def _index(build: Builder) -> None:
    """What an import does at its end."""
    with build.snapshot.transaction():
        keywords.index_queued(build.db)


def _shell(folder: Path, command: str) -> str:
    """The command's output, in a session of its own."""
    done = subprocess.run(["setsid", "sh", "-c", command], cwd=folder, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


def test_run_and_read(live: tuple[Live, Builder]) -> None:
    mount, build = live
    ring = mount.point / "ring/dev"
    item = ring / "workspace/eval-set.md"
    before, content = item.stat(), item.read_bytes()
    assert _shell(ring, "cat .eval") == ""  # nothing stored, nothing asked: nothing, and nothing started
    shown = _shell(ring, "echo run > .eval; cat .eval")
    assert shown.startswith(f"{RING}/workspace/eval-set.md: 3/3 passed (1.00, 95 % interval 0.44 to 1.00), run 1, ")
    assert "\nno drift: first run, nothing to compare with\n" in shown
    assert "no language model is set, so no judge" in shown
    assert os.getxattr(item, "user.library.last_eval_pass_rate") == b"1.0"
    assert os.getxattr(item, "user.library.last_eval_total") == b"3"
    after = item.stat()
    assert (after.st_size, after.st_mtime_ns, after.st_ino) == (before.st_size, before.st_mtime_ns, before.st_ino)
    assert item.read_bytes() == content
    stored = _shell(ring / "workspace", "cat .eval")
    assert stored.splitlines() == shown.splitlines()[:2]
    build.memory(RING, "lemur", content="The lemur lamp was replaced in March by somebody else.")
    _index(build)
    time.sleep(0.5)
    again = _shell(ring, "echo run > .eval; cat .eval")
    assert "\ndrift: down 0.33 from 3/3 of run 1; McNemar p = 1, not significant; no change shown by" in again
    assert "passed → failed  Who replaced the lemur lamp in March?" in again


def test_json_requests(live: tuple[Live, Builder]) -> None:
    mount, build = live
    ring = mount.point / "ring/dev"
    build.item(RING, "small", name="small.md", content="## When does the zebra gate open?\n- seven\n")
    until((ring / "workspace/small.md").exists)
    asked = '{"workspace_item_id": "small", "llm_judge": false}'
    found = json.loads(_shell(ring, f"echo '{asked}' > .eval; cat .eval"))
    assert (found["passed"], found["total"], found["path"]) == (1, 1, f"{RING}/workspace/small.md")
    assert found["trace"]["judge"] == "none"
    assert found["questions"][0]["citations"][0]["path"] == f"{RING}/skills/zebra.md"
    for bad, message in (
        ('{"default": true, "workspace_item_id": "small"}', "exactly one of default and workspace_item_id"),
        ('{"default": false}', "neither given"),
        ('{"workspace_item_id": "other"}', "workspace item other of /ring/dev: no such path in the library, or not"),
        ('{"workspace_item_id": "absent"}', "workspace item absent of /ring/dev: no such path in the library, or not"),
        ('{"llm_judge": "no"}', "llm_judge: "),
    ):
        error = json.loads(_shell(ring, f"echo '{bad}' > .eval; cat .eval"))["error"]
        assert message in error["message"], bad
    assert _shell(ring, "echo walk > .eval; cat .eval").startswith(
        "error: LIBRARY_INVALID_REQUEST: request: write 'run'"
    )


def test_a_set_that_is_malformed(live: tuple[Live, Builder]) -> None:
    mount, build = live
    build.item(RING, "set", name="eval-set.md", content="## A question\n\n## Another\n- x\n")
    time.sleep(0.5)
    shown = _shell(mount.point / "ring/dev", "echo run > .eval; cat .eval")
    assert shown.startswith("error: LIBRARY_EVAL_SET: /ring/dev/workspace/eval-set.md: line 1: no expected fragment")


def test_where_it_is_listed_and_what_a_walk_reads(live: tuple[Live, Builder]) -> None:
    mount, build = live
    point = mount.point
    assert ".eval" in os.listdir(point / "ring/dev")
    assert all(".eval" not in os.listdir(point / folder) for folder in ("agent/alice", "ring/dev/skills", "ring"))
    _shell(point / "ring/dev", "echo run > .eval; cat .eval > /dev/null")
    runs = build.db.execute("SELECT count(*) FROM eval_runs").get
    listed = _shell(point, "find . -name .eval -exec cat {} +; tar cf - . | wc -c; grep -rl zebra . | sort")
    assert "no drift: first run" in listed
    assert build.db.execute("SELECT count(*) FROM eval_runs").get == runs == 1
    error = _shell(point / "agent/alice", "echo run > .eval; cat .eval")
    assert error.startswith("error: LIBRARY_INVALID_REQUEST: /agent/alice: not in a ring")


def test_one_handle(live: tuple[Live, Builder]) -> None:
    mount, _ = live
    shown = _shell(mount.point / "ring/dev", "exec 3<>.eval; echo run >&3; cat <&3")
    assert "3/3 passed" in shown


def test_a_reader_that_goes_away_cancels_the_run(live: tuple[Live, Builder]) -> None:
    mount, build = live
    text = "\n".join(f"## When does the zebra gate open, for the time {n}?\n- seven\n" for n in range(2000))
    build.item(RING, "set", name="eval-set.md", content=text)
    time.sleep(0.5)
    command = "echo run > .eval; exec cat .eval"
    reader = subprocess.Popen(["setsid", "sh", "-c", command], cwd=mount.point / "ring/dev", stdout=subprocess.PIPE)
    time.sleep(2)
    assert reader.poll() is None
    began = time.monotonic()
    reader.send_signal(2)
    reader.wait(10)
    assert time.monotonic() - began < 5
    assert reader.stdout is not None
    reader.stdout.close()
    time.sleep(1)
    assert build.db.execute("SELECT count(*) FROM eval_runs").get == 0
