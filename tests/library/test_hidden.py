"""A hidden ring and one that does not exist cost the same steps of SQLite: nothing tells them apart, time neither."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from libraryfs.errors import PathNotFound
from libraryfs.library.resolver import Library
from libraryfs.nodes import AGENTS_INO, RINGS_INO
from libraryfs.store.snapshot import Snapshot
from tests.store.build import Builder


class Counted:
    """Counts the statements of a reader, their rows, and the steps that they take."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self.statements: list[str] = []
        self.steps = 0
        self.rows = 0
        self._db = library.snapshot.db

    def cost(self, act: Callable[[], object]) -> tuple[list[str], int, int]:
        """(statements, rows, steps) of a call."""
        self.statements, self.steps, self.rows = [], 0, 0
        self._db.exec_trace = self._statement
        self._db.row_trace = self._row
        self._db.set_progress_handler(self._step, 1)
        try:
            act()
        finally:
            self._db.exec_trace = self._db.row_trace = None
            self._db.set_progress_handler(None)
        return self.statements, self.rows, self.steps

    def _statement(self, _cursor: object, sql: str, _bindings: object) -> bool:
        self.statements.append(sql)
        return True

    def _row(self, _cursor: object, row: Any) -> Any:
        self.rows += 1
        return row

    def _step(self) -> bool:
        self.steps += 1
        return False


@pytest.fixture
def counted(build: Builder) -> Iterator[Counted]:
    """A principal who sees two rings and an agent of many."""
    for kind in ("ring", "agent"):
        for number in range(30):
            build.namespace(f"/{kind}/hidden-{number}", "other")
    for path in ("/ring/dev", "/ring/ops", "/agent/alice"):
        build.namespace(path, "me")
        build.memory(path, "m")
    with Snapshot.open(build.path) as snapshot:
        yield Counted(Library(snapshot, "me"))


def missing(act: Callable[[], object]) -> Callable[[], None]:
    """The call, which must find nothing."""

    def checked() -> None:
        with pytest.raises(PathNotFound):
            act()

    return checked


@pytest.mark.parametrize(("kind", "ino"), [("ring", RINGS_INO), ("agent", AGENTS_INO)])
def test_a_look_up(counted: Counted, kind: str, ino: int) -> None:
    library = counted.library
    folder = library.entry(ino)
    library.visible()
    missing(lambda: library.lookup(folder, b"never"))()  # the first time of a statement takes steps to prepare it
    costs = {
        name: counted.cost(missing(lambda name=name: library.lookup(folder, name.encode())))  # type: ignore[misc]
        for name in ("hidden-3", "absent-3", "hidden-29", "zzz", "a")
    }
    assert costs["hidden-3"][2] > 10
    assert all(cost == costs["hidden-3"] for cost in costs.values()), costs
    assert library.lookup(library.entry(RINGS_INO), b"dev").name == b"dev"


@pytest.mark.parametrize("below", ["", "/skills", "/skills/m.md", "/workspace/x"])
def test_a_path(counted: Counted, below: str) -> None:
    library = counted.library
    library.visible()
    missing(lambda: library.resolve(f"/ring/never{below}"))()  # the first time of a statement takes steps to prepare it
    hidden = counted.cost(missing(lambda: library.resolve(f"/ring/hidden-3{below}")))
    absent = counted.cost(missing(lambda: library.resolve(f"/ring/absent-3{below}")))
    assert hidden == absent


def test_listings_do_not_come_by_what_is_hidden(counted: Counted, build: Builder) -> None:
    library = counted.library
    folder = library.entry(RINGS_INO)
    library.visible()

    def look() -> list[object]:
        return [
            counted.cost(act)
            for act in (
                lambda: library.children(folder),
                lambda: library.children_by_name(folder),
                lambda: library.listing(folder, 0, 64),
                lambda: library.count(folder),
                library.namespaces,
            )
        ]

    look()  # the first time of a statement takes steps to prepare it
    before = look()
    for number in range(20):
        build.namespace(f"/ring/more-{number}", "other")
    library.visible()
    assert look() == before
    assert [entry.name for entry in library.children_by_name(folder)] == [b"dev", b"ops"]
