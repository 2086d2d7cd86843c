"""An answer belongs to the question: jobs side by side in one session, and sessions one after the other."""

import os
import pwd
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.mount.live import sh, until
from tests.mount.slow_mount import Slow, session
from tests.store.build import Builder

FILES = 20


@pytest.fixture(scope="module")
def live(module_build: Builder, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slow]:
    """A mount with `.slow`, of a ring with some files."""
    module_build.namespace("/ring/dev", "me")
    for number in range(FILES):
        module_build.memory("/ring/dev", f"s{number}", title=f"Skill {number}", content=f"{number}\n" * 100)
    with Slow(module_build.path, tmp_path_factory.mktemp("jobs") / "mount") as live:
        yield live


# Each job asks `0 KEY`, whose answer begins with `first KEY`, and prints both. {rounds} rounds of eight jobs at once.
JOB = 'echo "0 $0" > .slow; echo "$0: $(head -n 1 .slow)"'
POOL = """
import sys
from concurrent.futures import ThreadPoolExecutor

def ask(key):
    with open(".slow", "w") as file:
        file.write(f"0 {key}")
    with open(".slow") as file:
        return f"{key}: {file.readline().strip()}"

with ThreadPoolExecutor(8) as pool:
    print(*pool.map(ask, range(8 * int(sys.argv[1]))), sep="\\n")
"""
COMMANDS = POOL.replace(
    POOL[POOL.index("    with open") : POOL.index("with Thread")],
    """    subprocess.run(["sh", "-c", f"echo 0 {key} > .slow"])
    return f"{key}: " + subprocess.run(["head", "-n", "1", ".slow"], stdout=-1, text=True).stdout.strip()

""",
).replace("import sys", "import subprocess, sys")
MAKEFILE = """
all: $(patsubst %,job-%,$(shell seq {jobs}))
job-%:
\t@echo "0 $@" > .slow; echo "$@: $$(head -n 1 .slow)"
"""
WAYS = {
    "subshells": """for r in $(seq {rounds}); do for k in 1 2 3 4 5 6 7 8; do
        (echo "0 $r.$k" > .slow; echo "$r.$k: $(head -n 1 .slow)") & done; wait; done""",
    "commands in subshells": """for r in $(seq {rounds}); do for k in 1 2 3 4 5 6 7 8; do
        (/bin/echo "0 before" > .slow; echo "0 $r.$k" | tee .slow > /dev/null; echo "$r.$k: $(head -n 1 .slow)") &
        done; wait; done""",
    "xargs": "seq {jobs} | xargs -P 8 -n 1 sh -c '" + JOB + "'",
    "xargs and commands": "seq {jobs} | xargs -P 8 -n 1 bash -c '" + JOB.replace("echo", "/bin/echo", 1) + "; true'",
    "threads": f"{sys.executable} -IS pool.py {{rounds}}",
    "threads that run commands": f"{sys.executable} -IS commands.py {{rounds}}",
    "find": """for r in $(seq {rounds}); do for k in 1 2 3 4 5 6 7 8; do
        find ring/dev/skills -name skill-$k.md -exec sh -c '"""
    + JOB
    + "' $r.$k \\; & done; wait; done",
    "parallel": "seq {jobs} | parallel --will-cite -j 8 '" + JOB.replace("$0", "{{}}") + "'",
    "make": "make -s -j 8 -f {folder}/Makefile all",
}


def run(live: Slow, way: str, rounds: int) -> None:
    """So many rounds; none of their answers is another's, and none is empty."""
    folder = live.point.parent
    (folder / "Makefile").write_text(MAKEFILE.format(jobs=8 * rounds))
    script = WAYS[way].format(rounds=rounds, jobs=8 * rounds, folder=folder)
    for name, program in {"pool.py": POOL, "commands.py": COMMANDS}.items():
        (folder / name).write_text(program)
        script = script.replace(name, f"{folder}/{name}")
    lines = sh(script, live.point, session=True, seconds=600).splitlines()
    wrong = [line for line in lines if line != "{0}: first {0}".format(line.partition(":")[0])]
    assert not wrong, f"{len(wrong)} of {len(lines)}: {wrong[:5]}"
    assert len(set(lines)) == 8 * rounds


@pytest.mark.parametrize("way", WAYS)
def test_jobs_side_by_side(live: Slow, way: str) -> None:
    """Eight at once, a few times."""
    run(live, way, 3)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_jobs_side_by_side_at_length(live: Slow, way: str) -> None:
    """A thousand rounds in all."""
    run(live, way, 112)


def test_what_a_job_asked_is_not_what_its_shell_asked(live: Slow) -> None:
    """The shell reads its own again, though a job has asked since, and is done; and a command's, which replaces it."""
    script = """
        echo "0 shell" > .slow; (echo "0 job" > .slow; head -n 1 .slow); head -n 1 .slow
        /bin/echo "0 command" > .slow; head -n 1 .slow
        sh -c 'echo "0 script" > .slow; head -n 1 .slow; true'; head -n 1 .slow
        echo "0 again" > .slow; head -n 1 .slow; /bin/echo "0 read" > .slow; read -r line < .slow; echo "$line"
    """
    told = ["job", "shell", "command", "script", "command", "again", "read"]
    assert sh(script, live.point, session=True).split() == [word for one in told for word in ("first", one)]


def test_who_has_not_asked_reads_the_sessions_newest(live: Slow) -> None:
    """A job that reads what the shell asked, and a shell that reads what its jobs asked."""
    script = """
        echo "0 shell" > .slow; (head -n 1 .slow); (sh -c 'head -n 1 .slow; true')
        : > .slow; cat .slow; (cat .slow)
    """
    assert sh(script, live.point, session=True) == "first shell\n" * 2
    script = '(echo "0 one" > .slow; head -n 1 .slow); (echo "0 two" > .slow; head -n 1 .slow); head -n 1 .slow'
    assert sh(script, live.point, session=True).split()[1::2] == ["one", "two", "two"]


def test_threads_that_share_their_questions(live: Slow) -> None:
    """One thread asks and another reads, in turns: what is read is the last question."""
    script = """
import threading
def put(text):
    open(".slow", "w").write(text)
def get():
    print(open(".slow").readline().strip())
def other(what, *arguments):
    thread = threading.Thread(target=what, args=arguments); thread.start(); thread.join()
put("0 one"); other(get); other(put, "0 two"); get(); put("0 three"); get()
"""
    assert sh(f"python3 -c '{script}'", live.point, session=True).split()[1::2] == ["one", "two", "three"]


def say(live: Slow, script: str, folder: str = "ring/dev/skills") -> str:
    """What a session of its own says, in a folder that the other tests leave alone."""
    return sh(f"cd {folder}; {script}", live.point, session=True)


def test_a_session_goes_on_where_one_has_ended(live: Slow) -> None:
    """Each command of a tool is a session; it reads what the last one asked, again and again, until it asks itself."""
    assert say(live, 'echo "0 one" > .slow') == ""
    assert say(live, "head -n 1 .slow; cat .slow") == "first one\nfirst one\nsecond one\n"
    assert say(live, "head -n 1 .slow; stat -c %s .slow") == "first one\n21\n"
    assert say(live, 'echo "0 two" > .slow; head -n 1 .slow') == "first two\n"
    assert say(live, "ls -la > /dev/null; cat .slow") == "first two\nsecond two\n"
    assert say(live, ": > .slow; cat .slow") == ""
    assert say(live, "cat .slow", "ring") == ""


def test_it_waits_for_what_the_ended_session_asked(live: Slow) -> None:
    """The work goes on when the asker has gone."""
    say(live, 'echo "1 long" > .slow', "agent")
    assert say(live, "cat .slow", "agent") == "first long\nsecond long\n"


def test_live_sessions_stay_apart(live: Slow) -> None:
    """As long as the leader lives, or what it ran to ask: nobody else reads it."""
    asker = session(live, 'cd ring/dev/workspace; echo "0 mine" > .slow; echo asked; exec sleep 60')
    assert asker.stdout
    assert asker.stdout.readline() == "asked\n"
    assert say(live, "cat .slow", "ring/dev/workspace") == ""
    asker.kill()
    asker.communicate()
    assert say(live, "head -n 1 .slow", "ring/dev/workspace") == "first mine\n"
    # the leader has gone, and the shell that it left has asked
    left = session(
        live, "cd ring/dev/policies; (echo '0 left' > .slow; echo $$ > /dev/stderr; exec sleep 60) & sleep 1"
    )
    left.wait(20)
    assert say(live, "cat .slow", "ring/dev/policies") == ""
    os.killpg(left.pid, signal.SIGKILL)
    left.communicate()
    until(lambda: say(live, "head -n 1 .slow", "ring/dev/policies") == "first left\n", 5)


WALKS = [
    "grep -rh . .",
    "find . -type f -exec cat {} +",
    "find . -type f -exec cat {} \\;",
    "find . -type f | xargs cat",
    "find . -type f | xargs -n 1 cat",
    "cat $(find . -type f)",
    "tar cf - . | tar xOf -",
    "rg -uuu --no-filename .",
    "python3 -c 'import pathlib; [print(p.read_text()) for p in pathlib.Path().rglob(\"*\") if p.is_file()]'",
]


@pytest.mark.parametrize("walk", WALKS)
def test_a_walk_reads_nothing_of_an_ended_session(live: Slow, walk: str) -> None:
    """Though the answer is there and its session has ended."""
    say(live, 'echo "0 secret" > .slow; cat .slow', "ring/dev")
    said = say(live, walk, "ring/dev")
    assert "secret" not in said
    assert said.splitlines().count("19") == 100
    assert say(live, "head -n 1 .slow", "ring/dev") == "first secret\n"


def test_another_user_reads_nothing(module_build: Builder, tmp_path: Path) -> None:
    """With --allow-other: neither of a live session nor of one that has ended."""
    uid = pwd.getpwnam("nobody").pw_uid
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.getuid() and folder != Path("/tmp"):
            folder.chmod(folder.stat().st_mode | 0o555)
    with Slow(module_build.path, tmp_path / "mount", allow_other=True) as live:
        assert sh('echo "0 mine" > .slow; head -n 1 .slow', live.point, session=True) == "first mine\n"
        theirs = subprocess.run(
            ["cat", ".slow"], cwd=live.point, user=uid, start_new_session=True, capture_output=True, check=True
        )
        assert theirs.stdout == b""
        assert sh("head -n 1 .slow", live.point, session=True) == "first mine\n"


def test_old_questions_leave_with_time(live: Slow) -> None:
    """A shell that asks by a command, again and again, keeps the last one only."""
    began = time.monotonic()
    script = 'for n in $(seq 200); do /bin/echo "0 $n" > .slow; done; head -n 1 .slow'
    assert say(live, script, "ring/dev/protocols") == "first 200\n"
    assert time.monotonic() - began < 60
