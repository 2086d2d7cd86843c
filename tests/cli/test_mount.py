"""`mount`, `umount`, `mount.libraryfs` and the systemd unit, on real mounts."""

import configparser
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from libraryfs.cli.mount_helper import is_mount_call
from libraryfs.settings import login_name
from tests.cli.conftest import Run

BIN = Path(sys.executable).parent


def is_mounted(point: Path) -> bool:
    """Whether something is mounted on the folder, asked of the kernel's table."""
    escaped = str(point).replace(" ", "\\040")
    return any(line.split()[4] == escaped for line in Path("/proc/self/mountinfo").read_text().splitlines())


@pytest.fixture
def point(tmp_path: Path) -> Iterator[Path]:
    """An empty folder, unmounted at the end whatever the test did."""
    folder = tmp_path / "mount point"
    folder.mkdir()
    yield folder
    subprocess.run(["fusermount3", "-u", "-z", str(folder)], capture_output=True, check=False)


@pytest.fixture
def snapshot(cli: Run, notes: Path, tmp_path: Path) -> Path:
    """A snapshot with the notes in ring dev."""
    assert cli("import", notes, "--ring", "dev", "--no-embed").returncode == 0
    return tmp_path / "data" / "libraryfs" / "library.db"


@pytest.mark.usefixtures("snapshot")
def test_mount_and_umount(spawn: Run, cli: Run, point: Path, tmp_path: Path) -> None:
    """The command returns when files can be read; a second umount is harmless; the background mount logs to a file."""
    done = spawn("mount", point, env={"XDG_STATE_HOME": str(tmp_path / "state")})
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (point / "ring/dev/decisions/use-rsync.md").read_text().endswith("We copy by rsync.\n")
    assert (tmp_path / "state" / "libraryfs" / "mount.log").exists()
    assert "already" in cli("mount", point).stderr
    assert cli("umount", point).stdout == f"{point}: unmounted\n"
    assert not is_mounted(point)
    done = cli("umount", point)
    assert done.returncode == 0
    assert "not mounted" in done.stdout


def test_mount_shows_one_principal(cli: Run, snapshot: Path, point: Path) -> None:
    """--as decides what is there; a grant in another process shows in the live mount."""
    assert cli("mount", point, "--as", "alice", "--snapshot", snapshot, "--log-file", "log").returncode == 0
    assert os.listdir(point / "ring") == []
    cli("grant", "alice", "/ring/dev")
    deadline = time.monotonic() + 5
    while os.listdir(point / "ring") == [] and time.monotonic() < deadline:
        time.sleep(0.05)
    assert os.listdir(point / "ring") == ["dev"]


@pytest.mark.usefixtures("snapshot")
def test_foreground_ends_on_ctrl_c(environment: dict[str, str], point: Path, tmp_path: Path) -> None:
    """It serves until SIGINT, then it is unmounted and gives 0."""
    command = [sys.executable, "-m", "libraryfs.cli.main", "mount", str(point), "--foreground"]
    with subprocess.Popen(command, env=environment, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as child:
        deadline = time.monotonic() + 20
        while not is_mounted(point) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert (point / "ring/dev").is_dir()
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=10)
    assert child.returncode == 0
    assert errors == ""
    assert not is_mounted(point)


@pytest.mark.parametrize(
    ("target", "says"),
    [("absent", "no such folder"), ("file", "is a file"), ("full", "not empty")],
)
@pytest.mark.usefixtures("snapshot")
def test_a_mount_point_that_cannot_be(cli: Run, tmp_path: Path, target: str, says: str) -> None:
    """One line that says what to do, exit code 2, nothing mounted."""
    (tmp_path / "file").touch()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    done = cli("mount", target, "--log-file", "log")
    assert done.returncode == 2
    assert says in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.usefixtures("snapshot")
def test_a_dead_mount_is_recovered(environment: dict[str, str], cli: Run, point: Path, tmp_path: Path) -> None:
    """After kill -9 of the daemon, mount mounts again; after another, umount takes the dead point away."""
    command = [sys.executable, "-m", "libraryfs.cli.main", "mount", str(point), "--foreground"]
    for recover in ("mount", "umount"):
        with subprocess.Popen(command, env=environment, cwd=tmp_path) as child:
            while not is_mounted(point):
                time.sleep(0.02)
            os.listdir(point)
            child.kill()
        done = cli(recover, point, *(["--log-file", "log"] if recover == "mount" else []))
        assert (done.returncode, done.stderr) == (0, "")
        assert recover == "umount" or (point / "ring/dev").is_dir()
        cli("umount", point)
    assert not is_mounted(point)


def test_umount_leaves_other_file_systems_alone(cli: Run) -> None:
    """/proc is not ours to end."""
    done = cli("umount", "/proc")
    assert done.returncode == 2
    assert "not libraryfs's" in done.stderr


def test_start_of_a_mount_imports_what_it_uses(
    environment: dict[str, str], snapshot: Path, point: Path, tmp_path: Path
) -> None:
    """No models, HTTP, progress bars, Markdown or validation of schemas in the process that serves."""
    heavy = [
        "torch",
        "numpy",
        "httpx",
        "rich",
        "jsonschema",
        "markdown_it",
        "yaml",
        "sqlite_vec",
        "llama_cpp",
    ]
    program = (
        "import sys, pathlib; from libraryfs.mount import serving; from libraryfs.cli.main import run\n"
        "def report(*_, **__): print([name for name in sys.argv[2:] if name in sys.modules], flush=True)\n"
        "serving.run = report; run(['mount', sys.argv[1], '--foreground'])"
    )
    command = [sys.executable, "-c", program, str(point), *heavy]
    variables = environment | {"LIBRARYFS_SNAPSHOT": str(snapshot)}
    done = subprocess.run(command, env=variables, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"


def test_systemd_unit(cli: Run, snapshot: Path, tmp_path: Path) -> None:
    """Its commands are words that the CLI takes, with every path absolute; special characters are escaped."""
    done = cli("mount", "my $mount%h", "--as", "alice", "--allow-other", "--systemd-unit", "--log-level", "info")
    assert done.returncode == 0
    unit = configparser.RawConfigParser(strict=False)
    unit.optionxform = str  # type: ignore[method-assign, assignment]
    unit.read_string(done.stdout)
    started = unit["Service"]["ExecStart"].replace("$$", "$").replace("%%", "%")
    words = shlex.split(started)
    assert Path(words[0]).is_absolute()
    assert words[words.index("mount") + 1] == str(tmp_path / "my $mount%h")
    assert {f"--snapshot={snapshot}", "--as=alice", "--foreground", "--allow-other", "--log-level=info"} <= set(words)
    assert unit["Service"]["ExecStartPre"].startswith("-mkdir -p ")  # fails on a dead mount, which ExecStart recovers
    assert unit["Install"]["WantedBy"] == "default.target"
    assert not (tmp_path / "my $mount%h").exists()


def test_the_systemd_unit_has_the_settings_in_force(cli: Run, snapshot: Path, tmp_path: Path) -> None:
    """As assignments, paths absolute; what is the default is left out, and keys are named only."""
    (tmp_path / "model.gguf").touch()
    settings = {
        "LIBRARYFS_LLM": "model.gguf",
        "LIBRARYFS_EMBEDDER": 'http://127.0.0.1:1/v1?a=%20$b"c',
        "LIBRARYFS_LLM_KEY": "sk-1",
        "LIBRARYFS_REFRESH_MS": "500",
        "LIBRARYFS_MAX_DEPTH": "5",
        "LIBRARYFS_SNAPSHOT": str(snapshot),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }
    said = cli("mount", "m", "--systemd-unit", env=settings).stdout
    assert [line for line in said.splitlines() if line.startswith("Environment=")] == [
        'Environment="LIBRARYFS_REFRESH_MS=500"',
        f'Environment="LIBRARYFS_LLM={tmp_path / "model.gguf"}"',
        'Environment="LIBRARYFS_EMBEDDER=http://127.0.0.1:1/v1?a=%%20$b\\"c"',
        f'Environment="LIBRARYFS_CACHE={tmp_path / "cache" / "libraryfs"}"',
    ]
    assert "# LIBRARYFS_LLM_KEY is set here" in said
    assert "sk-1" not in said
    assert f"--snapshot={snapshot}" in said


def test_a_call_of_mount_is_told_from_a_command() -> None:
    """`libraryfs SOURCE FOLDER -o …` comes from mount(8)."""
    assert is_mount_call(["/srv/a.db", "/mnt", "-o", "rw,as=alice"])
    assert not is_mount_call(["tree", "/ring/dev"])
    assert not is_mount_call(["--snapshot", "x", "-o", "y"])


def helper(*arguments: object, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Runs mount.libraryfs as installed."""
    command = [str(BIN / "mount.libraryfs"), *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


def test_mount_helper(environment: dict[str, str], snapshot: Path, point: Path, tmp_path: Path) -> None:
    """Called as mount(8) calls /sbin/mount.libraryfs, with what it adds by itself."""
    options = f"rw,noexec,x-systemd.automount,nofail,as={login_name()},log_level=info,log_file={tmp_path / 'log'}"
    done = helper(snapshot, point, "-n", "-v", "-o", options, environment=environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert (point / "ring/dev/skills/deploy.md").exists()
    assert "noexec" in next(
        line for line in Path("/proc/self/mounts").read_text().splitlines() if tmp_path.name in line
    )
    assert (tmp_path / "log").exists()


@pytest.mark.parametrize(
    ("options", "says"),
    [("as=alice,colour=red", "colour=red"), ("as=", "as="), ("log_level=loud", "loud")],
)
def test_mount_helper_refuses(
    environment: dict[str, str], snapshot: Path, point: Path, options: str, says: str
) -> None:
    """An option that nobody knows is named; -s passes over it; -f mounts nothing."""
    done = helper(snapshot, point, "-o", options, environment=environment)
    assert done.returncode == 2
    assert says in done.stderr
    assert helper(snapshot, point, "-s", "-f", "-o", "as=alice,colour=red", environment=environment).returncode == 0
    assert not is_mounted(point)


def test_mount_8_itself(environment: dict[str, str], snapshot: Path, point: Path, tmp_path: Path) -> None:
    """`mount -t fuse.libraryfs` finds `libraryfs` on root's path: in a mount namespace of the test's own."""
    script = (
        'set -e; mount --bind "$1" /usr/local/bin; mount -t fuse.libraryfs "$2" "$3" -o "as=$4,log_file=$5"; '
        'cat "$3/ring/dev/artifacts/logo.svg"; umount "$3"; ! ls "$3" | grep .'
    )
    words = [str(BIN), str(snapshot), str(point), login_name(), str(tmp_path / "log")]
    space = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-r", "-m"]
    command = [*space, "sh", "-c", script, "sh", *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "<svg/>\n", "")
