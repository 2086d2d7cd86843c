"""What every command has in common: help, one-line errors, exit codes, logs, colours."""

import fcntl
import json
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest
from click import Option

from libraryfs.cli.main import COMMANDS, main
from tests.cli.conftest import Run

NAMES = sorted(COMMANDS)


def on_a_terminal(arguments: list[str], environment: dict[str, str], folder: Path) -> str:
    """All that the command writes when its three streams are a terminal."""
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "libraryfs.cli.main", *arguments]
    with subprocess.Popen(
        command, stdin=follower, stdout=follower, stderr=follower, env=environment, cwd=folder
    ) as child:
        os.close(follower)
        seen = b""
        while select.select([leader], [], [], 60)[0]:
            try:
                piece = os.read(leader, 65536)
            except OSError:  # Linux's end of file on a terminal whose other side is closed
                break
            if not piece:
                break
            seen += piece
        child.wait(timeout=60)
    os.close(leader)
    return seen.decode()


@pytest.mark.parametrize("name", NAMES)
def test_help_has_an_example(name: str) -> None:
    """`--help` of each command, rendered as click does it."""
    group = main.make_context("libraryfs", [], resilient_parsing=True)
    command = main.get_command(group, name)
    assert command is not None
    with command.make_context(name, [], parent=group, resilient_parsing=True) as context:
        text = command.get_help(context)
    assert "Example" in text
    assert f"libraryfs {name}" in text.split("Example", 1)[1]
    assert all(option.help for option in command.params if isinstance(option, Option))


def test_help_lists_every_command_and_the_exit_codes(cli: Run) -> None:
    """The first page that a user sees."""
    done = cli("--help")
    assert done.returncode == 0
    assert all(name in done.stdout for name in NAMES)
    assert "Exit codes" in done.stdout
    assert cli("doctor", "-h").returncode == 0


def test_every_command_starts_by_itself(environment: dict[str, str], tmp_path: Path) -> None:
    """A new interpreter for each, all at once: nothing depends on what another command has imported."""
    program = [sys.executable, "-m", "libraryfs.cli.main"]
    started = [
        subprocess.Popen([*program, name, "--help"], env=environment, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
        for name in NAMES
    ]
    for name, process in zip(NAMES, started, strict=True):
        text, _ = process.communicate(timeout=60)
        assert process.returncode == 0, name
        assert f"Usage: libraryfs {name} " in text


def test_no_arguments_show_the_help(cli: Run) -> None:
    """On stderr, as a usage error."""
    done = cli()
    assert done.returncode == 2
    assert "Commands:" in done.stderr
    assert not done.stdout


def test_version(cli: Run) -> None:
    """One line with the package's version."""
    import libraryfs

    assert libraryfs.__version__ in cli("--version").stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nonsense"], "No such command 'nonsense'"),
        (["tree", "/ring/dev", "--nonsense"], "--nonsense"),
        (["tree", "/ring/dev"], "no such snapshot"),
        (["grants", "--snapshot", "."], "is a folder"),
        (["grants", "--snapshot", ""], "is empty; name a path"),
        (["mount", ""], "is empty; name a path"),
        (["import", ".", "--ring", "dev", "--as", ""], "a principal is a name"),
        (["mount", "m", "--as", "a\nb"], "a principal is a name"),
        (["grant", "x" * 256, "/ring/dev"], "a principal is a name"),
        (["import", "absent", "--ring", "dev"], "absent"),
        (["grant", "alice", "ring/dev"], "starts with /"),
        (["--log-level", "loud", "doctor"], "loud"),
        (["doctor", "--log-file", "no/such/folder/log"], "--log-file"),
    ],
)
def test_a_mistake_is_one_line(cli: Run, arguments: list[str], says: str) -> None:
    """What, where, what to do, on stderr, with exit code 2 and no traceback."""
    done = cli(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert says in done.stderr
    assert done.stderr.startswith("libraryfs: ")


def test_a_mistake_as_json(cli: Run) -> None:
    """With --json the error is a document too."""
    done = cli("grants", "--json")
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"]["code"] == "LIBRARY_SNAPSHOT_MISSING"


def test_a_setting_out_of_range_names_its_variable(cli: Run) -> None:
    """The variable, its value and what is wrong."""
    done = cli("grants", env={"LIBRARYFS_BUSY_TIMEOUT_MS": "soon"})
    assert done.returncode == 2
    assert "LIBRARYFS_BUSY_TIMEOUT_MS" in done.stderr


def test_a_bug_is_one_line_and_its_traceback_goes_to_the_log(spawn: Run, tmp_path: Path) -> None:
    """The bug is a module that raises at import."""
    broken = tmp_path / "broken"
    (broken / "sqlite_vec").mkdir(parents=True)
    (broken / "sqlite_vec" / "__init__.py").write_text("raise RuntimeError('made by a test\\nsecond line')")
    environment = {"PYTHONPATH": str(broken)}
    done = spawn("doctor", env=environment)
    assert done.returncode == 3
    assert done.stderr.startswith("libraryfs: a bug: RuntimeError: made by a test")
    assert done.stderr.count("\n") == 1
    assert "--debug" in done.stderr
    assert "Traceback" in spawn("doctor", "--debug", env=environment).stderr
    done = spawn("doctor", "--log-file", "log", env=environment)
    assert "log" in done.stderr
    assert "Traceback" in (tmp_path / "log").read_text()


def test_options_may_stand_before_or_after_the_command(cli: Run, tmp_path: Path, notes: Path) -> None:
    """--snapshot of the group and of the command are one; the nearer one wins; the environment comes after both."""
    assert cli("--snapshot", "a.db", "import", notes, "--ring", "dev", "--no-embed").returncode == 0
    assert (tmp_path / "a.db").exists()
    assert cli("grants", "--snapshot", "a.db").stdout
    assert cli("--snapshot", "absent.db", "grants", "--snapshot", "a.db").returncode == 0
    assert cli("grants", env={"LIBRARYFS_SNAPSHOT": "a.db"}).returncode == 0
    assert cli("--snapshot", "absent.db", "grants", env={"LIBRARYFS_SNAPSHOT": "a.db"}).returncode == 2


def test_colours_on_a_terminal_only(cli: Run, environment: dict[str, str], tmp_path: Path) -> None:
    """Escape sequences on a terminal, none in a pipe, none with NO_COLOR."""
    environment |= {"LIBRARYFS_EMBEDDER": "none", "LIBRARYFS_LLM": "none"}
    assert "\x1b[" in on_a_terminal(["doctor"], environment, tmp_path)
    assert "\x1b[" not in cli("doctor", env=environment).stdout
    assert "\x1b[" not in on_a_terminal(["doctor"], environment | {"NO_COLOR": "1"}, tmp_path)


def test_progress_on_a_terminal_only(cli: Run, environment: dict[str, str], tmp_path: Path, notes: Path) -> None:
    """Bars are drawn on a terminal; in a pipe stderr stays empty."""
    arguments = ["import", str(notes), "--ring", "dev", "--no-embed"]
    assert "\x1b[" in on_a_terminal(arguments, environment, tmp_path)
    assert cli(*arguments).stderr == ""


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path, environment: dict[str, str]) -> None:
    """`libraryfs … | head -c 1` ends quietly."""
    command = f"{sys.executable} -m libraryfs.cli.main --help | head -c 1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", command], env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.endswith("0\n")
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("command", "status", "says"),
    [
        ("export >/dev/full", 2, "No space left"),
        ("tree / --json >/dev/full", 2, "No space left"),
        ("export >&-", 0, ""),
        ("export | head -c 1 >/dev/null; exit ${PIPESTATUS[0]}", 0, ""),
    ],
)
def test_a_stdout_that_fails(
    cli: Run, environment: dict[str, str], notes: Path, tmp_path: Path, command: str, status: int, says: str
) -> None:
    """Full, closed, gone: at most one line, and the documented exit code."""
    assert cli("import", notes, "--ring", "dev", "--no-embed").returncode == 0
    script = f"set -m; {sys.executable} -m libraryfs.cli.main {command}"
    done = subprocess.run(
        ["bash", "-c", script], env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == status, done.stderr
    assert says in done.stderr
    assert all(line.startswith("libraryfs: ") for line in done.stderr.splitlines() if line)


def test_ctrl_c(cli: Run, environment: dict[str, str], notes: Path, tmp_path: Path) -> None:
    """One line and exit code 130, sent while the command reads its input."""
    assert cli("import", notes, "--ring", "dev", "--no-embed").returncode == 0
    reading, writing = os.pipe()
    os.write(writing, b"How do")
    command = [sys.executable, "-m", "libraryfs.cli.main", "ask", "-"]
    with subprocess.Popen(
        command, env=environment, cwd=tmp_path, stdin=reading, stderr=subprocess.PIPE, text=True
    ) as child:
        deadline = time.monotonic() + 30
        while _waiting(reading) and time.monotonic() < deadline:
            time.sleep(0.02)
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=20)
    os.close(reading)
    os.close(writing)
    assert child.returncode == 130
    assert errors.strip() == "libraryfs: interrupted"


def _waiting(pipe: int) -> int:
    """Bytes that nobody has read yet."""
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


def test_start_imports_only_what_a_command_uses(environment: dict[str, str]) -> None:
    """`libraryfs grants` loads no models, no progress bars, no FUSE, no HTTP."""
    program = (
        "import sys; from libraryfs.cli.main import run; run(['grants']); "
        "print([name for name in sys.argv[1:] if name in sys.modules])"
    )
    heavy = [
        "rich",
        "httpx",
        "torch",
        "numpy",
        "pyfuse3",
        "trio",
        "jsonschema",
        "markdown_it",
        "sqlite_vec",
        "yaml",
    ]
    done = subprocess.run(
        [sys.executable, "-c", program, *heavy], env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script(cli: Run, shell: str) -> None:
    """A script for each shell; bash can read its own."""
    done = cli("completion", shell)
    assert done.returncode == 0
    assert "_LIBRARYFS_COMPLETE" in done.stdout
    if shell == "bash":
        subprocess.run(["bash", "-n"], input=done.stdout, text=True, check=True)


def test_completion_of_commands(cli: Run) -> None:
    """What the script asks for: the commands that start with `gr`."""
    variables = {"_LIBRARYFS_COMPLETE": "bash_complete", "COMP_WORDS": "libraryfs gr", "COMP_CWORD": "1"}
    words = [line.split(",")[1] for line in cli(env=variables).stdout.splitlines()]
    assert words == ["grant", "grants"]


def test_completion_of_library_paths(cli: Run, notes: Path) -> None:
    """Folders and files as the principal sees them; nothing, and no error, where there is no snapshot."""

    def complete(words: str) -> list[str]:
        variables = {"_LIBRARYFS_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
        done = cli(env=variables)
        assert done.stderr == ""
        return [line.split(",", 1)[1] for line in done.stdout.splitlines() if line]

    assert complete("libraryfs tree /ring/") == []
    assert cli("import", notes, "--ring", "dev", "--no-embed").returncode == 0
    assert complete("libraryfs tree /") == ["/agent/", "/ring/"]
    assert complete("libraryfs tree /ring/dev/de") == ["/ring/dev/decisions/"]
    assert complete("libraryfs tree /ring/dev/decisions/use-r") == ["/ring/dev/decisions/use-rsync.md"]
    assert complete("libraryfs tree --as eve /ring/") == []
    assert complete("libraryfs tree not/a/path") == []
