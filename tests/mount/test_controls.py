"""Control files: by path and by handle, waiting and leaving, walks that pass by. With `.slow` for the mechanism."""

import errno
import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from libraryfs.mount.waiting import MAX_WAITING
from tests.mount.live import sh, until
from tests.mount.slow_mount import Slow, session, waits
from tests.store.build import Builder

TOOLS = [
    "cat .slow",
    "busybox cat .slow",
    'echo "$(<.slow)"',
    "cp .slow {out} && cat {out}",
    "busybox cp .slow {out} && cat {out}",
    "cp -a .slow {out} && cat {out}",
    "tar cf - .slow | tar xOf -",
    "rsync -a .slow {out} && cat {out}",
    "python3 -c 'import shutil, sys; shutil.copyfile(\".slow\", sys.argv[1])' {out} && cat {out}",
    "dd if=.slow bs=1M status=none",
    "dd if=.slow bs=5 status=none",
    "tail -c 1000 .slow",
    "tail -n 5 .slow",
    "head -n 5 .slow",
    "sed '' .slow",
    "grep '' .slow",
    "cat < .slow",
    'while read -r line; do echo "$line"; done < .slow',
    "base64 .slow | base64 -d",
    "vim.tiny -u NONE -R -es -c '%print' -c 'qa!' .slow",
]


@pytest.fixture(scope="module")
def live(module_build: Builder, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slow]:
    """A mount with `.slow`, of a ring with some files."""
    module_build.namespace("/ring/dev", "me")
    for number in range(20):
        module_build.memory("/ring/dev", f"s{number}", title=f"Skill {number}", content=f"{number}\n" * 100)
    with Slow(module_build.path, tmp_path_factory.mktemp("controls") / "mount") as live:
        live.expected += ["a bug", "ZeroDivisionError", "Traceback"]
        yield live


@pytest.mark.parametrize("tool", TOOLS)
def test_each_tool_reads_the_answer_whole(live: Slow, tool: str, tmp_path: Path) -> None:
    """As the first to come after the question, while there is no answer yet; and each time after."""
    script = (
        f"echo '0.1 of a longer text than before' > .slow; {tool}; echo ==; {tool}; stat -c %s .slow; cat .slow | wc -c"
    )
    said = sh(script.format(out=tmp_path / "out"), live.point, session=True)
    whole = "first of a longer text than before\nsecond of a longer text than before\n"
    assert said == f"{whole}==\n{whole}{len(whole)}\n{len(whole)}\n"


def test_nothing_asked_is_empty_and_starts_nothing(live: Slow, tmp_path: Path) -> None:
    """Reading it, in whatever way, where no session has asked."""
    before = live.notes
    for tool in TOOLS:
        said = sh(tool.format(out=tmp_path / "out"), live.point / "ring/dev/skills", session=True, check=False)
        assert said.strip() == ""
    stat = "stat -c '%s %F' skills/.slow policies/.slow charter/.slow"
    assert sh(stat, live.point / "ring/dev", session=True) == "0 regular empty file\n" * 3
    assert live.notes == before


def test_where_it_is_listed(live: Slow) -> None:
    """Where its kind says; it answers everywhere, and the walk's files are nowhere."""
    assert sorted(os.listdir(live.point)) == [".ask", ".slow", "AGENTS.md", "README.md", "agent", "ring"]
    assert {".ask", ".eval"} <= set(os.listdir(live.point / "ring/dev"))
    assert ".slow" in os.listdir(live.point / "ring/dev")
    assert ".slow" not in os.listdir(live.point / "ring/dev/skills")
    assert ".tree" not in os.listdir(live.point / "ring/dev")
    for folder in ("", "ring", "agent", "ring/dev", "ring/dev/skills", "ring/dev/workspace"):
        for name in (".slow", ".tree", ".drilldown"):
            assert (live.point / folder / name).is_file()
    with pytest.raises(FileNotFoundError):
        os.stat(live.point / "ring/nobody/.tree")


def test_sessions_do_not_read_each_other(live: Slow) -> None:
    """Sixteen scripts at once in one folder, by path, with tools that go by the kernel's pages and sizes."""
    script = "echo '0.2 number {n} {pad}' > .slow; {tool} .slow; {tool} .slow; busybox cp .slow {out}; cat {out}"
    tools = ["cat", "busybox cat", "cat", "busybox cat"] * 4

    def ask(n: int) -> str:
        out = live.point.with_name(f"out-{n}")
        return sh(script.format(n=n, pad="x" * n * 13, tool=tools[n], out=out), live.point, session=True)

    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(ask, range(16)))
    for n, answer in enumerate(answers):
        text = f"number {n} {'x' * n * 13}".rstrip()
        assert answer == f"first {text}\nsecond {text}\n" * 3


def test_an_answer_stays_until_the_next_question(live: Slow) -> None:
    """In its own folder; an empty write takes it away."""
    script = """
        echo '0 one' > .slow; cat .slow; cat .slow
        echo '0 two' > .slow; cat .slow
        echo '0 elsewhere' > ring/.slow; cat .slow ring/.slow
        : > .slow; cat .slow
        cat ring/.slow
    """
    one, two, there = (f"first {word}\nsecond {word}\n" for word in ("one", "two", "elsewhere"))
    assert sh(script, live.point, session=True) == one + one + two + two + there + there


def test_a_question_replaced_by_whatever_tool(live: Slow, tmp_path: Path) -> None:
    """What has the file open goes on when the session asks again: its inode number leads somewhere still."""
    question = tmp_path / "question"
    for n, tool in enumerate(["cp", "busybox cp", "rsync --inplace", "cp", "cat", "cp"]):
        question.write_text(f"0 number {n}")
        ask = f"cat {question} > .slow" if tool == "cat" else f"{tool} {question} .slow"
        script = f"echo '0 before' > .slow; cat .slow; {ask}; cat .slow"
        said = sh(script, live.point, session=True)
        assert said == f"first before\nsecond before\nfirst number {n}\nsecond number {n}\n", tool


def test_a_waiting_reader_whose_session_asks_again(live: Slow) -> None:
    """It gets what it waited for."""
    script = "echo '1 one' > .slow; cat .slow & sleep 0.4; echo '0 two' > .slow; wait $!; echo $?; cat .slow"
    assert sh(script, live.point, session=True) == "first one\nsecond one\n0\nfirst two\nsecond two\n"


def test_a_session_that_asks_side_by_side(live: Slow) -> None:
    """Who reads what is a race; that a read fails is not part of it."""
    script = """
        for k in 1 2 3; do
            (for i in 1 2 3 4 5 6 7 8; do echo "0 $k$i" > .slow; cat .slow > /dev/null; done) 2>&1 &
        done
        wait
    """
    assert sh(script, live.point, session=True) == ""


def test_appending_and_pieces(live: Slow) -> None:
    """`>>`, several writes, a shell's group, dd: one question, complete at the last close."""
    for script in (
        "echo '0 abc' >> .slow; cat .slow",
        "(printf '0 '; printf 'a'; /bin/printf 'b'; sleep 0.1; printf 'c\\n') > .slow; cat .slow",
        "echo '0 abc' | dd of=.slow bs=2 status=none; cat .slow",
        "echo '0 abc' | tee .slow > /dev/null; cat .slow",
        "echo '0 abc' > $TMPDIR/q; cp $TMPDIR/q .slow; cat .slow",
        "exec 4>.slow; echo '0 abc' >&4; cat .slow; exec 4>&-",
    ):
        folder = live.point.with_name("tmp")
        folder.mkdir(exist_ok=True)
        assert sh(f"export TMPDIR={folder}; {script}", live.point, session=True) == "first abc\nsecond abc\n", script


def test_one_handle_streams(live: Slow) -> None:
    """The first part comes at once, the second when it is there; by path there is nothing of it."""
    with (live.point / ".slow").open("r+b", buffering=0) as handle:
        handle.write(b"0.5 private")
        started = time.monotonic()
        assert handle.read(1000) == b"first private\n"
        assert time.monotonic() - started < 0.4
        assert (live.point / ".slow").read_bytes() == b""
        assert handle.read(6) == b"second"
        assert time.monotonic() - started >= 0.5
        assert handle.read(1000) == b" private\n"
        assert handle.read(1000) == b""
        handle.write(b"0 again")
        assert handle.read(1000) + handle.read(1000) + handle.read(1000) == b"first again\nsecond again\n"
    assert "'0.5 private' streaming=True" in live.notes


def test_one_handle_in_the_shell(live: Slow) -> None:
    """`exec 3<>`, and eight at once by xargs."""
    assert sh("exec 3<>.slow; echo '0.1 q' >&3; cat <&3", live.point) == "first q\nsecond q\n"
    script = """seq 8 | xargs -P 8 -I{} sh -c 'exec 3<>.slow; echo "0.1 number {}" >&3; cat <&3 > "$0.{}"' """
    out = live.point.with_name("xargs")
    sh(script + str(out), live.point)
    for n in range(1, 9):
        assert Path(f"{out}.{n}").read_text() == f"first number {n}\nsecond number {n}\n"


def test_close_ends_a_private_exchange(live: Slow) -> None:
    """Whoever closes does not want the rest: the work is ended."""
    with (live.point / ".slow").open("r+b", buffering=0) as handle:
        handle.write(b"30 abandoned")
        assert handle.read(100) == b"first abandoned\n"
    until(lambda: "stopped '30 abandoned'" in live.notes, 2)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_a_waiting_reader_can_leave(live: Slow, number: signal.Signals) -> None:
    """By Ctrl-C or a kill, within a second; the work is ended, as nobody else waits for it."""
    process = session(live, f"echo '30 {number.name}' > .slow; exec cat .slow")
    until(lambda: waits(process))
    started = time.monotonic()
    process.send_signal(number)
    process.communicate(timeout=5)
    assert time.monotonic() - started < 1.5
    assert process.returncode == -number
    until(lambda: f"stopped '30 {number.name}" in live.notes, 2)


def test_a_reader_on_a_shared_handle_can_leave(live: Slow) -> None:
    """The one who reads is not the one who opened; the handle goes on to serve."""
    script = "exec 3<>.slow; echo '3 shared' >&3; timeout -s INT 1 cat <&3; echo $?; cat <&3"
    started = time.monotonic()
    assert sh(script, live.point, session=True) == "first shared\n124\nsecond shared\n"
    assert time.monotonic() - started < 5


def test_a_reader_can_leave_after_others_have_asked(live: Slow) -> None:
    """The handle's name leads to another session's answer by then."""
    others = "setsid sh -c 'echo 0 other > .slow; cat .slow'"
    script = f"exec 3<>.slow; echo '8 own' >&3; {others}; timeout -s INT 1 cat <&3; echo $?"
    started = time.monotonic()
    assert sh(script, live.point, session=True) == "first other\nsecond other\nfirst own\n124\n"
    assert time.monotonic() - started < 5


def test_two_wait_and_one_leaves(live: Slow) -> None:
    """The other one gets the answer."""
    script = "echo '1.5 both' > .slow; timeout -s INT 0.5 cat .slow & cat .slow; wait"
    assert sh(script, live.point, session=True) == "first both\nsecond both\n"


def test_other_signals_do_not_disturb(live: Slow) -> None:
    """A runtime's own signals (SIGCHLD, SIGALRM, SIGURG, SIGWINCH) are no wish to leave."""
    script = """
import os, signal, threading, time
for number in (signal.SIGALRM, signal.SIGURG, signal.SIGWINCH, signal.SIGCHLD, signal.SIGUSR1):
    signal.signal(number, lambda *_: None)
def disturb():
    for number in (signal.SIGALRM, signal.SIGURG, signal.SIGWINCH, signal.SIGCHLD, signal.SIGUSR1) * 2:
        time.sleep(0.05)
        os.kill(os.getpid(), number)
open(".slow", "w").write("0.8 undisturbed")
threading.Thread(target=disturb).start()
print(open(".slow").read(), end="")
"""
    assert sh(f"python3 -c '{script}'", live.point, session=True) == "first undisturbed\nsecond undisturbed\n"


def test_many_wait_and_the_mount_serves(live: Slow) -> None:
    """As many waiting readers as may be, one more is told to come again, and `ls` answers meanwhile."""
    sessions = [session(live, f"echo '{1 + n % 2} n{n}' > ring/.slow; exec cat ring/.slow") for n in range(30)]
    until(lambda: live.notes.count(" n") >= 16, 10)
    started = time.monotonic()
    for _ in range(20):
        assert sh("ls ring/dev/skills | wc -l; cat ring/dev/skills/skill-3.md | wc -c", live.point) == "20\n200\n"
    assert time.monotonic() - started < 3
    for n, process in enumerate(sessions):
        said, complaint = process.communicate(timeout=30)
        assert (said, complaint) == (f"first n{n}\nsecond n{n}\n", "")


@pytest.mark.slow
def test_too_many_wait(live: Slow) -> None:
    """Over the limit, open says EAGAIN at once."""
    with (live.point / ".slow").open("wb", buffering=0) as writer:
        writer.write(b"4 many")
    outcomes: list[object] = []

    def read() -> None:
        try:
            outcomes.append((live.point / ".slow").read_bytes())
        except OSError as error:
            outcomes.append(error.errno)

    threads = [threading.Thread(target=read) for _ in range(MAX_WAITING + 20)]
    for thread in threads:
        thread.start()
    until(lambda: outcomes.count(errno.EAGAIN) >= 20, 4)
    assert os.listdir(live.point / "ring") == ["dev"]
    for thread in threads:
        thread.join()
    assert outcomes.count(errno.EAGAIN) == 20
    assert outcomes.count(b"first many\nsecond many\n") == MAX_WAITING


def test_open_waits_whatever_its_flags(live: Slow) -> None:
    """O_NONBLOCK says nothing about a regular file, and tar opens all files with it."""
    (live.point / ".slow").write_text("0.5 later")
    descriptor = os.open(live.point / ".slow", os.O_RDONLY | os.O_NONBLOCK)
    assert os.read(descriptor, 100) == b"first later\nsecond later\n"
    os.close(descriptor)
    (live.point / ".slow").write_bytes(b"")


WALKS = [
    "grep -r zzz . || true",
    "tar cf - . | cat > /dev/null",
    "cp -r . {out}",
    "rsync -a ./ {out}/",
    "rg -uuu zzz . || true",
    "busybox grep -r zzz . || true",
    "find . -type f -exec cat {{}} \\; > /dev/null",
    "find . -type f -exec cat {{}} + > /dev/null",
    "python3 -c 'import shutil, sys; shutil.copytree(\".\", sys.argv[1])' {out}",
    "du -a . > /dev/null; ls -laR > /dev/null; find . -empty > /dev/null",
]


@pytest.mark.parametrize("number", range(len(WALKS)))
def test_a_walk_waits_for_nothing(live: Slow, number: int, tmp_path: Path) -> None:
    """Though its own session, and another one, wait for answers: it passes by, starts nothing, and ends none of it."""
    other = session(live, f"echo '30 other{number}' > .slow; exec cat .slow")
    until(lambda: waits(other))
    walk = WALKS[number].format(out=tmp_path / "out")
    script = (
        f"echo '30 own{number}' > .slow; echo '30 ring{number}' > ring/dev/.slow; {walk}; echo walked; exec cat .slow"
    )
    own = session(live, script)
    assert own.stdout
    assert own.stdout.readline() == "walked\n"
    for one in ("other", "own", "ring"):
        assert live.notes.count(f"started '30 {one}{number}") == 1
        assert f"finished '30 {one}{number}" not in live.notes
        assert f"stopped '30 {one}{number}" not in live.notes
    until(lambda: waits(own))  # the same session's reader does wait
    for process in (own, other):
        process.kill()
        process.communicate()
    for one in ("other", "own"):
        until(lambda one=one: f"stopped '30 {one}{number}" in live.notes, 5)  # type: ignore[misc]


def test_unmount_with_waiting_readers(module_build: Builder, tmp_path: Path) -> None:
    """SIGTERM: gone within two seconds; the readers get an error."""
    live = Slow(module_build.path, tmp_path / "mount")
    with live:
        readers = [session(live, f"echo '30 q{n}' > .slow; exec cat .slow") for n in range(4)]
        until(lambda: live.notes.count("started") == 4)
        assert live.stop(signal.SIGTERM) < 2
        for reader in readers:
            said, _ = reader.communicate(timeout=5)
            assert said == ""
            assert reader.returncode == 1
