"""Starting and ending a mount: `serve` and `umount`, what the command line calls."""

import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from libraryfs.errors import LibraryError, MountError
from libraryfs.mount import mountpoint as points
from libraryfs.mount.options import MountOptions
from libraryfs.store.snapshot import Snapshot

if TYPE_CHECKING:
    from libraryfs.mount.requests import RequestLog

__all__ = ["MountOptions", "serve", "umount"]


def serve(options: MountOptions, *, requests: "RequestLog | None" = None) -> int:
    """Mounts, and returns 0 when the mount serves; with `foreground`, when it has ended.

    Raises MountError or SnapshotError, with one line that says what to do, when it cannot be mounted. `requests` counts
    what the kernel asks (see requests.py).
    """
    options = _absolute(options)
    points.check(options.mountpoint, options.snapshot)
    Snapshot.open(options.snapshot).close()
    from libraryfs.mount import serving  # here: it imports pyfuse3 and trio

    if options.foreground:
        serving.run(options, lambda: None, requests)
        return 0
    _in_background(options, requests)
    return 0


def umount(mountpoint: Path) -> str:
    """Unmounts, and returns one line that says what was done; a point that is not mounted is no fault.

    A mount in use is detached: gone at once for everybody else, and ended when its last file is closed. Raises
    MountError.
    """
    return points.unmount(Path(os.path.abspath(mountpoint)))


def _absolute(options: MountOptions) -> MountOptions:
    # without links: the daemon's working folder is /, and the snapshot may be reached through a link below the point
    log_file = None if options.log_file is None else Path(os.path.abspath(options.log_file))
    if log_file is None and not options.foreground:
        log_file = _default_log()
    return replace(
        options,
        snapshot=Path(os.path.realpath(options.snapshot)),
        mountpoint=points.resolve(options.mountpoint),
        log_file=log_file,
    )


def _default_log() -> Path:
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    folder = Path(state) / "libraryfs"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MountError(f"{folder}: cannot make the log's folder: {error.strerror}; name a --log-file") from None
    return folder / "mount.log"


def _in_background(options: MountOptions, requests: "RequestLog | None") -> None:
    """Forks twice, so that the daemon belongs to nobody, and waits until it serves or says why not."""
    sys.stdout.flush()
    sys.stderr.flush()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        os.setsid()
        if os.fork() == 0:
            _daemon(options, writing, requests)
        os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read()
    if said != b"serving":
        message = json.loads(said)["message"] if said else f"the daemon ended at its start; see {options.log_file}"
        raise MountError(message)


def _daemon(options: MountOptions, pipe: int, requests: "RequestLog | None") -> None:
    from libraryfs.mount import serving

    code = 1
    try:
        os.chdir("/")
        null = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(null, standard)

        def ready() -> None:
            os.write(pipe, b"serving")
            os.close(pipe)

        serving.run(options, ready, requests)
        code = 0
    except LibraryError as error:
        os.write(pipe, json.dumps({"message": error.message}).encode())
    except BaseException as error:
        serving.log.critical("the daemon ended", exc_info=error)
    finally:
        os._exit(code)  # not sys.exit: what the forking process registered for its own end is not ours to run
