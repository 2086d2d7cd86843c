"""`.eval`: `run`, or a JSON request, runs the ring's eval set; with nothing asked it gives the last stored result."""

from collections.abc import Iterator

from libraryfs import paths
from libraryfs.errors import InvalidRequest, LibraryError
from libraryfs.evals.last_result import last_result
from libraryfs.mount.control import Call, wants_json
from libraryfs.nodes import RINGS_INO, Entry, Kind
from libraryfs.paths import RingPath


class EvalControl:
    """One run at a time: runs of one set would only wait for each other at the end."""

    name = b".eval"
    number = 4
    parallel = 1
    silent = False
    elsewhere = True

    def __init__(self, mountpoint: str) -> None:
        """`mountpoint` goes before the paths of citations in plain text, so that they can be opened."""
        self._mountpoint = mountpoint.rstrip("/")

    def answers_in(self, folder: Entry) -> bool:
        """In every folder; outside of a ring there is nothing to run, which the answer says."""
        return True

    def listed_in(self, folder: Entry) -> bool:
        """In each ring."""
        return folder.kind == Kind.NAMESPACE and folder.parent == RINGS_INO

    def patience(self, request: bytes) -> float | None:
        """As long as it takes."""
        return None

    def idle(self, call: Call) -> bytes:
        """The last stored result of the ring's eval set in two lines, or nothing. Starts nothing."""
        ring = _ring(call)
        if ring is None:
            return b""
        return last_result(call.library, ring)

    def answer(self, call: Call) -> Iterator[bytes]:
        """The run's report: text for `run`, JSON for a JSON request. Blank is nothing asked."""
        if not call.request.strip():
            yield self.idle(call)
            return
        from libraryfs.evals import load, render, request, session  # here: they load much that a mount does not need

        asked = request.parse(call.request)
        ring = _ring(call)
        if ring is None:
            raise InvalidRequest(f"{call.path}: not in a ring; an eval set is a ring's: write to /ring/NAME/.eval")
        library = call.library
        library.visible()  # the run may come to any namespace, and opens Libraries of its own that do not tell
        report = session.run_until(
            call.stop.on_stop, library.snapshot.path, library.principal, load.ring_path(ring), asked
        )
        yield render.json(report) if wants_json(call.request) else render.text(report, self._mountpoint)


def _ring(call: Call) -> str | None:
    """`/ring/dev` where the control file is in it."""
    try:
        found = paths.parse(call.path)
    except LibraryError:
        return None
    return paths.format_path(RingPath(found.name)) if isinstance(found, RingPath) else None
