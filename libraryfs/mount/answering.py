"""The process that answers questions: `python -m libraryfs.mount.answering`, started by answerer.py.

It is apart from the daemon so that Python at work on an answer does not hold up the mount, and so that the daemon stays
small. Both talk over a socket, in lines of JSON; bytes are carried as Latin-1 text.

    in:   {"id": 1, "kind": 3, "folder": 123, "request": "…", "streaming": false, "since": 12.3}     {"stop": 1}
    out:  {"id": 1, "touched": [4, …]}: something of these namespaces may be in what follows;   {"id": 1, "part": "…"};
          any number of both, then {"id": 1, "end": null}, or a code and a message as `end`

The first line in says what to open: {"snapshot": "…", "principal": "…", "mountpoint": "…", "log_file": …, …}.
"""

import importlib
import json
import logging
import os
import socket
import sys
import threading
from pathlib import Path
from typing import Any, Final

from libraryfs import scheduling
from libraryfs.errors import LibraryError
from libraryfs.mount.control import Call, Stop
from libraryfs.mount.exchange import telling
from libraryfs.mount.kinds import control_kinds
from libraryfs.mount.logs import start_logging
from libraryfs.mount.view import View

log = logging.getLogger(__name__)

SWITCH_SECONDS: Final = 0.0005
"""How long one question's Python runs before another's may: with the usual 5 ms, nine at work wait 40 ms for each turn,
and whoever has half a second needs a dozen turns."""
_AHEAD: Final = ("libraryfs.ask.shared", "libraryfs.ask.request", "libraryfs.ask.render")
"""What the first question needs, loaded before it comes."""


class Answering:
    """Requests at work, each in a thread of its own; the daemon says how many at most."""

    def __init__(self, channel: socket.socket, opening: dict[str, Any]) -> None:
        self._channel = channel
        self._view = View(Path(opening["snapshot"]), opening["principal"])
        self._kinds = {kind.number: kind for kind in control_kinds(opening["mountpoint"])}
        self._sending = threading.Lock()
        self._stops: dict[int, Stop] = {}

    def take(self, message: dict[str, Any]) -> None:
        """One line of the daemon's."""
        if "stop" in message:
            stop = self._stops.get(message["stop"])
            if stop is not None:
                stop.stop()
            return
        self._stops[message["id"]] = Stop()
        threading.Thread(target=self._answer, args=(message,), daemon=True).start()

    def _answer(self, message: dict[str, Any]) -> None:
        number = message["id"]
        stop = self._stops[number]
        end: tuple[str, str] | None = None
        try:
            self._parts(message, stop)
        except LibraryError as error:
            end = error.code, error.message
        except Exception:
            log.exception("%s: a bug", self._kinds[message["kind"]].name.decode())
            end = LibraryError.code, "a bug in libraryfs; the mount's log has it"
        finally:
            del self._stops[number]
            self._send({"id": number, "end": end})

    def _parts(self, message: dict[str, Any], stop: Stop) -> None:
        def emit(part: bytes) -> None:
            if part:
                self._send({"id": message["id"], "part": part.decode("latin-1")})

        def touched(namespaces: frozenset[int]) -> None:
            self._send({"id": message["id"], "touched": sorted(namespaces)})

        with self._view.borrow() as library, telling(library, touched):
            folder = library.entry(message["folder"])
            request = message["request"].encode("latin-1")
            call = Call(request, folder, library, message["streaming"], stop, emit, message["since"])
            for part in self._kinds[message["kind"]].answer(call):
                if stop.stopped():
                    return
                emit(part)

    def _send(self, message: dict[str, Any]) -> None:
        line = json.dumps(message).encode() + b"\n"
        with self._sending:
            self._channel.sendall(line)


def main(descriptor: int) -> None:
    """Answers until the daemon closes its end of the socket."""
    scheduling.give_way()
    sys.setswitchinterval(SWITCH_SECONDS)
    channel = socket.socket(fileno=descriptor)
    with channel, channel.makefile("rb") as lines:
        opening = json.loads(lines.readline())
        log_file = opening["log_file"]
        start_logging(None if log_file is None else Path(log_file), opening["log_level"])
        answering = Answering(channel, opening)
        for name in _AHEAD:
            importlib.import_module(name)
        for line in lines:
            answering.take(json.loads(line))
    os._exit(0)  # threads still at work have nobody to answer


if __name__ == "__main__":
    main(int(sys.argv[1]))
