"""`.ask`: a question, as plain text or as a JSON object with options, is answered from what is below its folder."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from libraryfs.errors import Cancelled, LibraryError
from libraryfs.mount.control import Call, wants_json
from libraryfs.nodes import AGENTS_INO, RINGS_INO, ROOT_INO, Entry

if TYPE_CHECKING:
    from libraryfs.ask.result import Event

LONGEST_MS: Final = 3_600_000
"""A latency budget beyond this is no valid one."""


class AskControl:
    """Several questions at once: the evidence of one is found while the language model is at another."""

    name = b".ask"
    number = 3
    parallel = 8
    silent = True
    elsewhere = True

    def __init__(self, mountpoint: str) -> None:
        """`mountpoint` goes before the paths of citations in plain text, so that they can be opened."""
        self._mountpoint = mountpoint.rstrip("/")

    def answers_in(self, folder: Entry) -> bool:
        """In every folder."""
        return True

    def listed_in(self, folder: Entry) -> bool:
        """At the root, in each ring and in each agent."""
        return folder.ino == ROOT_INO or folder.parent in (RINGS_INO, AGENTS_INO)

    def idle(self, call: Call) -> bytes:
        """Nothing."""
        return b""

    def patience(self, request: bytes) -> float | None:
        """The latency budget of a JSON request. What is wrong with it, its answer says."""
        if not wants_json(request) or b"latency_budget_ms" not in request:
            return None
        try:
            budget = json.loads(request)["latency_budget_ms"]
        except (ValueError, TypeError, KeyError, RecursionError):
            return None
        return budget / 1000 if isinstance(budget, int) and 0 < budget < LONGEST_MS else None

    def answer(self, call: Call) -> Iterator[bytes]:
        """Text to text, JSON to JSON; as a stream, the evidence first."""
        from libraryfs.ask import render, request, shared  # here: they load much that a mount does not need

        asked = request.parse(call.request, call.path)
        as_json = wants_json(call.request)
        if not call.streaming:
            result = shared.ask_until(call.stop.on_stop, call.library, asked, None, call.since)
            yield render.json(result) if as_json else render.text(result, self._mountpoint)
            return
        stream = render.Stream(as_json=as_json, prefix=self._mountpoint)

        def tell(event: "Event") -> None:
            call.emit(stream.feed(event))

        try:
            result = shared.ask_until(call.stop.on_stop, call.library, asked, tell, call.since)
        except Cancelled:
            raise
        except LibraryError as error:
            yield stream.fail(error)
        else:
            yield stream.finish(result)
