"""The Python API: a snapshot as one principal sees it, with the requests and results of the other surfaces.

    with libraryfs.open("library.db", principal="alice") as library:
        for entry in library.list("/ring/dev/decisions"):
            print(entry.path, library.read(entry.path)[:80])
        print(library.ask("When do we deploy?", paths=["/ring/dev"]).answer)

What `libraryfs.__all__` names is the API, and nothing else is.
"""

from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from libraryfs.ask import request as asking
from libraryfs.ask import shared
from libraryfs.ask.pipeline import ask
from libraryfs.ask.request import AskRequest
from libraryfs.ask.result import AskResult, Event
from libraryfs.errors import InvalidRequest
from libraryfs.library import drilldown as walking
from libraryfs.library import resolver
from libraryfs.library.drilldown import Drilldown, DrilldownRequest
from libraryfs.library.stat import Listed, Stat, list_folder, stat
from libraryfs.library.tree import TreeNode, tree
from libraryfs.paths import check_principal
from libraryfs.settings import login_name, settings
from libraryfs.store.snapshot import Snapshot

if TYPE_CHECKING:  # an eval loads much that the rest has no use for
    from libraryfs.evals.report import EvalReport
    from libraryfs.evals.request import EvalRequest


class Library:
    """One principal's view of a snapshot, opened for reading. Not for several threads: open one in each.

    Paths are library paths, `/ring/NAME/…` or `/agent/NAME/memory/…`. What is hidden and what does not exist raise the
    same PathNotFound; a path that is none raises InvalidPath. All errors are LibraryError.
    """

    def __init__(self, snapshot: Path, principal: str) -> None:
        self._snapshot = Snapshot.open(snapshot)
        self._library = resolver.Library(self._snapshot, principal)
        self.principal = principal

    def close(self) -> None:
        """Ends the connection; any number of times."""
        self._snapshot.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def resolve(self, path: str) -> Stat:
        """What a path is: kind, size, times and attributes."""
        return stat(self._library, path)

    def list(self, path: str = "/") -> tuple[Listed, ...]:
        """The entries of a folder, sections in their order, others by name; of a file, itself."""
        return tuple(list_folder(self._library, path))

    def read(self, path: str, offset: int = 0, size: int | None = None) -> bytes:
        """A file's bytes, up to `size` from `offset`. Raises InvalidRequest for a folder, SnapshotDamaged."""
        entry = self._library.resolve(path)
        if entry.is_folder:
            raise InvalidRequest(f"{path}: is a folder; list it, or read a file in it")
        if offset < 0 or (size is not None and size < 0):
            raise InvalidRequest(f"offset {offset}, size {size}: neither can be less than 0")
        return self._library.read(entry, offset, entry.size if size is None else size)

    def tree(self, path: str = "/", depth: int = 1) -> TreeNode:
        """What is below a path, to a depth. Raises LimitExceeded over LIBRARYFS_MAX_DEPTH."""
        return tree(self._library, path, depth)

    def drilldown(self, path: str = "/", request: DrilldownRequest | None = None, **caps: int) -> Drilldown:
        """What is below a path, with excerpts, under four caps: a request, or its fields. Raises InvalidRequest."""
        return walking.drilldown(self._library, path, request or walking.build(caps))

    def ask(
        self, question: str | AskRequest, *, on_event: Callable[[Event], None] | None = None, **options: Any
    ) -> AskResult:
        """The answer to a question, checked against its evidence: a request, or a text and the request's other fields.

        `paths` (default: all that is seen), `shape`, `ground`, `latency_budget_ms`, `retrieval`. `on_event` is called
        with the evidence once it is found, then with each piece of the answer. Models are those of the settings, loaded
        on first use in processes that stay; without them it answers by keywords and quotes, and the result says so.
        Raises InvalidRequest naming the field.
        """
        if isinstance(question, AskRequest):
            request = question
        else:
            request = asking.build({"question": question, **options})
        return ask(self._library, shared.models(), request, None, on_event)

    def eval(self, ring: str, request: "EvalRequest | None" = None, **options: Any) -> "EvalReport":
        """Runs a ring's eval set ("/ring/dev" or "dev"): a request, or its fields. Stores the run, as every surface.

        Raises EvalSetError, InvalidRequest, ModelError, SnapshotError.
        """
        from libraryfs.evals import load, session
        from libraryfs.evals import request as evals

        chosen = request or evals.build(options)
        return session.run(self._snapshot.path, self.principal, load.ring_path(ring), chosen, shared.models())


def open_library(snapshot: str | Path | None = None, *, principal: str | None = None) -> Library:
    """A Library of the snapshot (default: LIBRARYFS_SNAPSHOT, else the user's) as a principal (the login name) sees it.

    Raises SnapshotMissing, SnapshotError, InvalidRequest.
    """
    path = settings().snapshot_path if snapshot is None else Path(snapshot)
    return Library(path, login_name() if principal is None else check_principal(principal))
