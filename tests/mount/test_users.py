"""A user who is not root mounts: who else may read it. Needs the setuid bit of fusermount3, as packages set it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.store.build import Builder


@pytest.fixture
def snapshot(build: Builder) -> Path:
    """A closed snapshot with a ring."""
    build.namespace("/ring/dev", "me")
    build.snapshot.close()
    return build.path


def look(snapshot: Path, configuration: str, *options: str) -> dict[str, Any]:
    """What as_user.py found, with this in fuse.conf. The daemon says nothing of its own."""
    conf = snapshot.with_name("fuse.conf")
    conf.write_text(configuration)
    alone = ["unshare", "--mount", "--propagation", "private"]
    command = [*alone, sys.executable, "-m", "tests.mount.as_user", str(snapshot), str(conf), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stderr == ""
    found: dict[str, Any] = json.loads(done.stdout)
    return found


SEEN = [["dev"], ["dev"]]


def test_for_its_user_only(snapshot: Path) -> None:
    """Nobody else gets in, root neither."""
    assert look(snapshot, "") == {"user": SEEN, "root": "EACCES", "third": "EACCES"}


def test_allow_other(snapshot: Path) -> None:
    """With leave in fuse.conf everybody reads, and asks; without it, one line says how to get it."""
    assert look(snapshot, "user_allow_other\n", "--allow-other") == {"user": SEEN, "root": SEEN, "third": SEEN}
    refused = look(snapshot, "# user_allow_other\n", "--allow-other")["refused"]
    assert "\n" not in refused
    assert refused.endswith("; 'echo user_allow_other | sudo tee -a /etc/fuse.conf' allows it")
