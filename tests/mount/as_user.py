"""`python -m tests.mount.as_user SNAPSHOT FUSE_CONF [--allow-other]`: a user who is not root mounts; who may read it?

Writes a JSON object: what the daemon refused with ("refused"), and what its user, root and a third user got from it:
the listing of /ring, and the answer of a `.tree` request; or the errno's name. Runs in a mount namespace of its own
(`unshare --mount`), where FUSE_CONF lies over /etc/fuse.conf and everybody may open /dev/fuse, as on a usual machine;
so nothing of this is seen outside or left behind.
"""

import errno
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from libraryfs.errors import LibraryError
from libraryfs.library import drilldown, tree
from libraryfs.mount import serving
from libraryfs.mount.daemon import serve
from libraryfs.mount.mountpoint import mounted_on
from libraryfs.mount.options import MountOptions

LOADED = (drilldown, tree, serving)  # now: the user may have no right to read the interpreter's folder
USER, THIRD = 65534, 65533


def become(uid: int) -> None:
    """This process is that user's from here on, with no groups but its own."""
    os.setgroups([])
    os.setgid(uid)
    os.setuid(uid)


def as_user(uid: int, point: Path) -> object:
    """What this user gets."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            become(uid)
            os.setsid()
            (point / "ring/.tree").write_text('{"depth": 1}')
            answer = json.loads((point / "ring/.tree").read_text())
            got: object = [os.listdir(point / "ring"), [node["name"] for node in answer["children"]]]
        except OSError as error:
            got = errno.errorcode[error.errno or 0]
        os.write(writing, json.dumps(got).encode())
        os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading) as pipe:
        return json.load(pipe)


def scene(folder: Path, snapshot: Path, *, allow_other: bool) -> dict[str, object]:
    """Mounts as USER on a point below the folder, which is USER's, and looks; unmounts."""
    point = folder / "point"
    point.mkdir()
    shutil.copy(snapshot, folder / "library.db")
    for path in (folder, point, folder / "library.db"):
        os.chown(path, USER, USER)
    folder.chmod(0o755)
    options = MountOptions(
        snapshot=folder / "library.db", mountpoint=point, principal="me", foreground=True, allow_other=allow_other
    )
    child = os.fork()
    if child == 0:
        become(USER)
        try:
            serve(options)
        except LibraryError as error:
            (folder / "refused").write_text(error.message)
        os._exit(0)
    while mounted_on(point) is None and os.waitpid(child, os.WNOHANG) == (0, 0):
        time.sleep(0.01)
    if (folder / "refused").exists():
        return {"refused": (folder / "refused").read_text()}
    got = {name: as_user(uid, point) for name, uid in (("user", USER), ("root", 0), ("third", THIRD))}
    subprocess.run(["fusermount3", "-u", str(point)], check=True)
    os.waitpid(child, 0)
    return got


def usual_machine(configuration: str) -> None:
    """fuse.conf, and /dev/fuse with the rights that udev gives it."""
    device = os.stat("/dev/fuse").st_rdev
    subprocess.run(["mount", "-t", "tmpfs", "none", "/mnt"], check=True)
    os.mknod("/mnt/fuse", stat.S_IFCHR, device)
    os.chmod("/mnt/fuse", 0o666)
    subprocess.run(["mount", "--bind", "/mnt/fuse", "/dev/fuse"], check=True)
    subprocess.run(["mount", "--bind", configuration, "/etc/fuse.conf"], check=True)


if __name__ == "__main__":
    usual_machine(sys.argv[2])
    with tempfile.TemporaryDirectory() as name:
        json.dump(scene(Path(name), Path(sys.argv[1]), allow_other="--allow-other" in sys.argv), sys.stdout)
