"""A control file that takes its time, to test the mechanism with: `.slow`.

A request is `SECONDS TEXT`; the answer is `first TEXT`, then, that much later, `second TEXT`. `refuse …` is answered
with an error, `crash …` has a bug. What it does is written to a log: started, finished, stopped.
"""

import json
import time
from collections.abc import Iterator
from pathlib import Path

from libraryfs.errors import InvalidRequest
from libraryfs.mount.control import Call, wants_json
from libraryfs.nodes import ROOT_INO, Entry


class SlowControl:
    """See above."""

    name = b".slow"
    number = 6
    parallel = 16
    silent = True
    elsewhere = False

    def __init__(self, log: Path) -> None:
        self._log = log

    def answers_in(self, folder: Entry) -> bool:
        """Everywhere."""
        return True

    def listed_in(self, folder: Entry) -> bool:
        """At the root and in each ring."""
        return folder.ino == ROOT_INO or folder.parent == 2

    def patience(self, request: bytes) -> float | None:
        """As long as it takes."""
        return None

    def idle(self, call: Call) -> bytes:
        """Never called: there is nothing to read when nothing was asked."""
        raise AssertionError

    def answer(self, call: Call) -> Iterator[bytes]:
        """Two parts."""
        text = call.request.decode()
        if wants_json(call.request):
            text = json.loads(call.request)["text"]
        self._note(f"started {text!r} streaming={call.streaming}")
        word, _, rest = text.strip().partition(" ")
        if word == "refuse":
            raise InvalidRequest(rest)
        if word == "crash":
            raise ZeroDivisionError(rest)
        yield f"first {rest}\n".encode()
        end = time.monotonic() + float(word or 0)
        while time.monotonic() < end:
            if call.stop.stopped():
                self._note(f"stopped {text!r}")
                return
            time.sleep(0.01)
        self._note(f"finished {text!r}")
        yield f"second {rest}\n".encode()

    def _note(self, line: str) -> None:
        with self._log.open("a") as log:
            log.write(line + "\n")
