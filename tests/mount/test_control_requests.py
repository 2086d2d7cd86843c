"""What is written into a control file: too much, wrong, and what `.tree` and `.drilldown` take."""

import errno
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from libraryfs.mount.control import MAX_REQUEST
from libraryfs.mount.exchange import Exchange
from tests.mount.live import sh
from tests.mount.slow import SlowControl
from tests.mount.slow_mount import Slow
from tests.store.build import Builder


@pytest.fixture(scope="module")
def live(module_build: Builder, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slow]:
    """A mount with `.slow`, of a ring with some files."""
    module_build.namespace("/ring/dev", "me")
    for number in range(20):
        module_build.memory("/ring/dev", f"s{number}", title=f"Skill {number}", content=f"{number}\n" * 100)
    with Slow(module_build.path, tmp_path_factory.mktemp("controls") / "mount") as live:
        live.expected += ["a bug", "ZeroDivisionError", "Traceback"]
        yield live


def write(path: Path, mode: str, pieces: list[bytes]) -> None:
    """Writes each piece with a write(2) of its own."""
    with path.open(mode, buffering=0) as handle:
        for piece in pieces:
            handle.write(piece)


def test_too_long_a_request(live: Slow) -> None:
    """64 KiB are taken; a byte more gets EFBIG, in one write or in many, and nothing is asked."""
    before = live.notes.count("started")
    path = live.point / ".slow"
    for pieces in ([b"x" * (MAX_REQUEST + 1)], [b"y" * 1000] * 66, [b"z" * MAX_REQUEST, b"z"]):
        with pytest.raises(OSError) as caught:
            write(path, "wb", pieces)
        assert caught.value.errno == errno.EFBIG
        assert path.read_bytes() == b""
        with pytest.raises(OSError) as caught:
            write(path, "r+b", pieces)
        assert caught.value.errno == errno.EFBIG
    assert live.notes.count("started") == before
    text = b"0 " + b"t" * (MAX_REQUEST - 2)
    path.write_bytes(text)
    assert path.read_bytes() == b"first " + text[2:] + b"\nsecond " + text[2:] + b"\n"
    path.write_bytes(b"")


def test_errors_are_read(live: Slow) -> None:
    """A request that is refused, and a bug: as text to text, as an object to JSON; the log has the bug."""
    path = live.point / ".slow"
    path.write_text("refuse the reason")
    assert path.read_text() == "error: LIBRARY_INVALID_REQUEST: the reason\n"
    path.write_text('{"text": "refuse the reason"}')
    assert json.loads(path.read_text()) == {"error": {"code": "LIBRARY_INVALID_REQUEST", "message": "the reason"}}
    path.write_text("crash on purpose")
    assert path.read_text().startswith("error: LIBRARY_ERROR: a bug in libraryfs")
    assert "ZeroDivisionError: on purpose" in live.log_file.read_text()
    path.write_bytes(b"\xff\xfe\x00")
    assert path.read_text().startswith("error: LIBRARY_ERROR: a bug in libraryfs")
    path.write_bytes(b"")


@pytest.mark.parametrize("request_", [b"text", b'{"text": 1}'])
def test_a_cancelled_request_is_answered_in_kind(request_: bytes) -> None:
    """Text to text, an object to JSON."""
    exchange = Exchange(SlowControl(Path("unused")), 1)
    exchange.request += request_
    exchange.cancel()
    assert exchange.done
    shown = bytes(exchange.data).decode()
    if request_.startswith(b"{"):
        assert json.loads(shown)["error"]["code"] == "LIBRARY_CANCELLED"
    else:
        assert shown.startswith("error: LIBRARY_CANCELLED: the reader went away")


def test_tree_and_drilldown(live: Slow) -> None:
    """Read, they give the defaults; a JSON request sets the caps, by path and on one handle; errors name the field."""
    ring = live.point / "ring/dev"
    text = (ring / ".tree").read_text()
    assert text.startswith("/ring/dev\n├── charter/\n├── skills/  … 20 more\n")
    assert (ring / ".tree").stat().st_size == len(text.encode())
    (ring / ".tree").write_text('{"depth": 2}')
    shown = json.loads((ring / ".tree").read_text())
    assert [child["name"] for child in shown["children"]][:2] == ["charter", "skills"]
    assert len(shown["children"][1]["children"]) == 20
    assert sh("cat .tree", ring, session=True) == text
    with (ring / ".drilldown").open("r+b", buffering=0) as handle:
        handle.write(b'{"max_items_per_level": 3}')
        cut = json.loads(b"".join(iter(lambda: handle.read(100_000), b"")))
    assert cut["stopped"] == "max_items_per_level"
    assert sh("cat .drilldown", ring, session=True).rstrip().splitlines()[-1].startswith("stopped: ")
    (ring / ".drilldown").write_text('{"max_depth": "deep"}')
    assert "max_depth" in json.loads((ring / ".drilldown").read_text())["error"]["message"]
    (ring / ".tree").write_text('{"depth": 99}')
    assert json.loads((ring / ".tree").read_text())["error"]["code"] == "LIBRARY_LIMIT_EXCEEDED"
    (ring / ".tree").write_text("\n")
    assert (ring / ".tree").read_text() == text
    assert shutil.which("busybox")
    assert sh("busybox cat .tree | busybox cat", ring, session=True) == text
