"""Mutated requests to control files, and mutated paths to every call, on a real mount; from a corpus that is kept.

A fault is an answer or an errno that no input may get, a line in the daemon's log, or the end of the daemon. The input
that did it is written to the corpus, and so tried first from then on. `scripts/fuzz SECONDS` runs it.
"""

import errno
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from tests.mount.live import Live
from tests.mount.test_ask import NO_MODELS, fill
from tests.store.build import Builder

CORPUS: Final = Path(__file__).with_name("corpus")
CONTROLS: Final = (b".ask", b".eval", b".tree", b".drilldown")
FOLDERS: Final = (b"", b"ring", b"ring/dev", b"ring/dev/decisions", b"ring/dev/workspace", b"agent/alice/memory")
NEVER: Final = {errno.EIO, errno.ENOSYS, errno.ENOTCONN, errno.ECONNABORTED, errno.ETIMEDOUT, errno.EINTR}
TOKENS: Final = (
    b'{"question": "', b'"shape": ', b'"paths": ["/', b'"latency_budget_ms": ', b'"depth": ', b'"retrieval": "',
    b'"$ref": "#"', b'"pattern": "(a+)+$"', b"..", b"/", b"~", b"%2F", b"\x1b[2J", b"\xff", b"\xed\xa0\x80",
    b"\xe2\x80\xae", b"{" * 70, b"[" * 70, b"9" * 400, b"-1", b"null", b"true", b"1e999", b"\\ud800", b"a" * 300,
    b"run", b"user.library.",
)  # fmt: skip


class Fault(Exception):
    """What went wrong, in words."""


class Input(NamedTuple):
    """`kind` is request or name; `data` is what is sent."""

    kind: str
    data: bytes


def corpus() -> list[Input]:
    """The inputs that are kept, in the order of their lines: JSON texts, bytes as Latin-1."""
    return [
        Input(kind, json.loads(line).encode("latin-1"))
        for kind in ("request", "name")
        for line in (CORPUS / f"{kind}s.jsonl").read_text().splitlines()
    ]


def keep(found: Input) -> None:
    """Adds an input to the corpus."""
    with (CORPUS / f"{found.kind}s.jsonl").open("a") as file:
        file.write(json.dumps(found.data.decode("latin-1")) + "\n")


def mutated(inputs: list[Input], chance: random.Random) -> Input:
    """One of them, changed in one to four places."""
    kind, data = chance.choice(inputs)
    for _ in range(chance.randint(1, 4)):
        at = chance.randint(0, len(data))
        match chance.randrange(5):
            case 0:
                data = data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :]
            case 1:
                data = data[:at] + data[min(len(data), at + chance.randint(1, 20)) :]
            case 2:
                data = data[:at] + chance.choice(TOKENS) + data[at:]
            case 3:
                data = data[:at] + chance.choice(inputs).data + data[at:]
            case _:
                data = data[:at] + data[at:] * chance.randint(1, 3)
    return Input(kind, data[:70_000])


def calls(point: bytes, name: bytes, folder: bytes) -> Iterator[Callable[[], object]]:
    """Every call that takes a path, or the name of an attribute."""
    path = b"/".join(filter(None, (point, folder, name)))
    text = name.decode("utf-8", "surrogateescape")
    yield lambda: os.stat(path)
    yield lambda: os.listdir(path)
    yield lambda: os.readlink(path)
    yield lambda: os.listxattr(path)
    yield lambda: os.getxattr(point, "user." + text)
    yield lambda: os.setxattr(path, "user." + text, b"x")
    yield lambda: os.mkdir(path)
    yield lambda: os.rmdir(path)
    yield lambda: os.unlink(path)
    yield lambda: os.rename(path, path + b"x")
    yield lambda: os.chmod(path, 0o700)
    yield lambda: os.symlink(b"x", path)
    yield lambda: os.truncate(path, 5)
    yield lambda: os.close(os.open(path, os.O_WRONLY | os.O_CREAT))
    yield lambda: _read(path)


def _read(path: bytes) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        os.pread(handle, 1 << 16, 0)
    finally:
        os.close(handle)


def by_name(point: bytes, name: bytes, folder: bytes) -> None:
    """Every call with this name. Raises Fault."""
    if b"\0" in name or name.split(b"/")[-1] in CONTROLS or b".." in name.split(b"/"):
        return  # Python refuses the first, the second is for `by_request`, the third leaves the mount
    for call in calls(point, name, folder):
        try:
            call()
        except OSError as error:
            if error.errno in NEVER:
                raise Fault(f"{errno.errorcode[error.errno]} for the name {name!r} in {folder!r}") from None
        except ValueError:  # a name that Python does not send
            continue


def by_request(point: bytes, request: bytes, folder: bytes, control: bytes) -> None:
    """The request on a handle of its own, and what it is answered. Raises Fault."""
    path = b"/".join(filter(None, (point, folder, control)))
    try:
        handle = os.open(path, os.O_RDWR)
        try:
            os.write(handle, request)
            answer = b"".join(iter(lambda: os.read(handle, 1 << 16), b""))
        finally:
            os.close(handle)
    except OSError as error:
        if error.errno not in (errno.EFBIG, errno.EAGAIN):
            raise Fault(f"{errno.errorcode[error.errno or 0]} for {request!r} to {path!r}") from None
        return
    if b"a bug in libraryfs" in answer:
        raise Fault(f"a bug, for {request!r} to {path!r}")
    if request.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{":
        try:
            json.loads(answer)
        except ValueError:
            raise Fault(f"an answer that is no JSON, for {request!r} to {path!r}: {answer[:80]!r}") from None


def one(live: Live, given: Input, chance: random.Random) -> None:
    """Sends one input somewhere. Raises Fault."""
    point, folder = os.fsencode(live.point), chance.choice(FOLDERS)
    if given.kind == "name":
        by_name(point, given.data, folder)
    elif given.data:
        by_request(point, given.data, folder, chance.choice(CONTROLS))
    if not live.process.is_alive():
        raise Fault(f"the daemon ended, after {given}")


def run(live: Live, seconds: float, chance: random.Random) -> tuple[int, Input | None, str]:
    """(inputs sent, the one that did harm, the harm). The whole corpus first, however long it takes."""
    inputs, sent, end = corpus(), 0, time.monotonic() + seconds
    given = inputs[0]
    try:
        for given in inputs:
            one(live, given, chance)
            sent += 1
        while time.monotonic() < end:
            given = mutated(inputs, chance)
            one(live, given, chance)
            sent += 1
            if sent % 200 == 0 and (lines := live.surprises()):
                raise Fault(f"a line in the log: {lines[0]}")
    except Fault as fault:
        return sent, given, str(fault)
    lines = live.surprises()
    return sent, None, f"a line in the log: {lines[0]}" if lines else ""


def main(seconds: float) -> int:
    """Runs for so long; prints how many inputs were sent, and the fault, if one was found. Exit code 1 for one."""
    seed = int.from_bytes(os.urandom(4))
    with tempfile.TemporaryDirectory(prefix="libraryfs-fuzz-") as name:
        builder = Builder(Path(name) / "library.db")
        fill(builder)
        builder.snapshot.close()
        with suppress(AssertionError), Live(builder.path, Path(name) / "mount", environment=NO_MODELS) as live:
            sent, found, harm = run(live, seconds, random.Random(seed))
    sys.stdout.write(f"fuzz: {sent:,} inputs in {seconds:.0f} s from {len(corpus())} that are kept, seed {seed}\n")
    if found is not None:
        keep(found)
    if harm:
        sys.stdout.write(f"fuzz: {harm}\n")
    return 1 if harm else 0


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1])))
