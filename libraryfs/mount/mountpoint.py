"""Mount points: what is mounted where, whether a folder can be one, and unmounting."""

import errno
import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from libraryfs.errors import MountError

SUBTYPE: Final = "libraryfs"
FILESYSTEM: Final = f"fuse.{SUBTYPE}"
CONTAINER: Final = "in a container, start it with --device /dev/fuse --cap-add SYS_ADMIN"


class Mounted(NamedTuple):
    """What is mounted on a point: the file system's type and its device number as `major:minor`."""

    filesystem: str
    device: str


def mounted_on(point: Path) -> Mounted | None:
    """The topmost mount on exactly this folder; never touches the folder, so a dead mount is no obstacle."""
    wanted, found = os.fsencode(point), None
    for where, mounted in every_mount():
        if where == wanted:
            found = mounted
    return found


def every_mount() -> Iterator[tuple[bytes, Mounted]]:
    """All that is mounted on this machine, as this process sees it, in the order of mounting."""
    with open("/proc/self/mountinfo", "rb") as table:
        for line in table:
            fields = line.split()
            separator = fields.index(b"-", 6)
            yield _unescape(fields[4]), Mounted(os.fsdecode(fields[separator + 1]), os.fsdecode(fields[2]))


def _unescape(field: bytes) -> bytes:
    for code in (b"040", b"011", b"012", b"134"):  # space, tab, new line, backslash: all that the kernel escapes
        field = field.replace(b"\\" + code, bytes([int(code, 8)]))
    return field


def library_path(path: str) -> str | None:
    """The library path of a path in a mounted library, whether it exists there or not; None for any other."""
    with open("/proc/self/mountinfo", "rb") as table:
        lines = [line.split() for line in table]
    points = [_unescape(one[4]) for one in lines if one[one.index(b"-", 6) + 1] == os.fsencode(FILESYSTEM)]
    for absolute in (os.fsencode(os.path.abspath(path)), os.fsencode(os.path.realpath(path))):
        for point in sorted(points, key=len, reverse=True):
            if absolute == point or absolute.startswith(point + b"/"):
                return os.fsdecode(absolute[len(point) :]) or "/"
    return None


def resolve(point: Path) -> Path:
    """The absolute path without links. A dead mount is not resolved itself: only its folder is."""
    absolute = Path(os.path.abspath(point))
    try:
        return absolute.resolve(strict=True)
    except OSError as error:
        if error.errno not in (errno.ENOTCONN, errno.ENOENT):
            raise MountError(f"{point}: {error.strerror}") from None
        return Path(os.path.realpath(absolute.parent)) / absolute.name


def check(point: Path, snapshot: Path) -> None:
    """Recovers a dead mount on `point`; raises MountError, with how to fix it, when it cannot be a mount point."""
    mounted = mounted_on(point)
    if mounted is not None and mounted.filesystem == FILESYSTEM:
        if not _is_dead(point):
            raise MountError(f"{point}: a library is mounted here already; 'libraryfs umount {point}' ends it")
        _fusermount(point, lazy=True)
    try:
        kind = os.stat(point).st_mode
    except FileNotFoundError:
        raise MountError(f"{point}: no such folder; make it with 'mkdir -p {point}'") from None
    except OSError as error:
        raise MountError(f"{point}: cannot be used as a mount point: {error.strerror}") from None
    if not stat.S_ISDIR(kind):
        raise MountError(f"{point}: is a file; a mount point is an empty folder")
    if snapshot.is_relative_to(point):
        raise MountError(f"{point}: the snapshot {snapshot} lies in it, and the mount would hide it; mount elsewhere")
    try:
        names = os.listdir(point)
    except OSError as error:
        raise MountError(f"{point}: cannot be listed: {error.strerror}") from None
    if names:
        raise MountError(f"{point}: not empty, and the mount would hide what is in it; mount on an empty folder")
    _check_device()


def _check_device() -> None:
    if not os.path.exists("/dev/fuse"):
        raise MountError(f"/dev/fuse is missing: 'sudo modprobe fuse' brings it; {CONTAINER}")
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR))
    except OSError as error:
        raise MountError(
            f"/dev/fuse cannot be opened: {error.strerror}; 'sudo chmod 666 /dev/fuse', or {CONTAINER}"
        ) from None
    if os.geteuid() and shutil.which("fusermount3") is None:
        raise MountError("fusermount3 is missing: 'sudo apt-get install fuse3' brings it")


def _is_dead(point: Path) -> bool:
    try:
        os.statvfs(point)  # not stat: the kernel may still know the attributes of a dead mount's root
    except OSError as error:
        return error.errno in (errno.ENOTCONN, errno.ECONNABORTED)
    return False


def unmount(point: Path) -> str:
    """Unmounts `point` and returns one line that says what was done. Raises MountError."""
    if mounted_on(point) is None:
        point = resolve(point)
    mounted = mounted_on(point)
    if mounted is None:
        return f"{point}: not mounted"
    if mounted.filesystem != FILESYSTEM:
        raise MountError(f"{point}: holds a {mounted.filesystem} mount, which is not libraryfs's to end")
    failure = _fusermount(point, lazy=False)
    if failure is None:
        return f"{point}: unmounted"
    if mounted_on(point) is None:  # somebody else was quicker
        return f"{point}: not mounted"
    users = _users(point, mounted.device)
    failure = _fusermount(point, lazy=True)
    if failure is not None:
        raise MountError(f"{point}: {failure}")
    who = f" by {', '.join(users)}" if users else ""
    return f"{point}: in use{who}; detached, and the mount ends with its last open file"


def _fusermount(point: Path, *, lazy: bool) -> str | None:
    """None when it was done, else why not."""
    helper = shutil.which("fusermount3")
    if helper is None:
        raise MountError("fusermount3 is missing: 'sudo apt-get install fuse3' brings it")
    command = [helper, "-u", *(["-z"] if lazy else []), "--", str(point)]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    return None if done.returncode == 0 else (done.stderr.strip().splitlines() or ["fusermount3 failed"])[-1]


def _users(point: Path, device: str) -> list[str]:
    """Processes with an open file or their working folder on the mount, as "name (pid)"; those that we may look at."""
    major, minor = (int(part) for part in device.split(":"))
    number, found = os.makedev(major, minor), []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            held = [os.stat(process / "cwd"), *(os.stat(link) for link in (process / "fd").iterdir())]
            if any(status.st_dev == number for status in held):
                found.append(f"{(process / 'comm').read_text().strip()} ({process.name})")
        except OSError:
            continue
    return found
