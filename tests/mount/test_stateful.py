"""Imports, renames, deletions, grants and revokes under a live mount, against plain folders as the model.

With rows that have no file (edges, orphans) and charters, of which only the newest stands in a folder.
"""

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

import apsw
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from libraryfs.ingest.importer import import_source
from libraryfs.paths import SECTIONS
from libraryfs.rows import MemoryRow, WorkspaceRow
from libraryfs.store import access, bodies, edges, memory, namespaces, workspace
from libraryfs.store.namespaces import Namespace
from libraryfs.store.snapshot import Snapshot
from tests.mount.live import Live

RINGS = ("one", "two")
NAMES = st.sampled_from(["a", "b", "c.md", "d e", "ü", "日本.txt", "-x"])
TREES = st.sampled_from(["workspace", "artifacts"])
SECTION = st.sampled_from(["workspace", "artifacts", "decisions"])
CHARTERS = st.sampled_from(["c1", "c2", "c3"])
CONTENT = st.binary(max_size=300) | st.integers(0, 3).map(lambda size: b"z" * (size * 100_000))
WITHIN_SECONDS = 3  # the promise is 1 s; a machine that does other things may be late, never wrong

Tree = dict[str, bytes | None]


def tree_of(root: Path) -> Tree:
    """Path below the root → content, None for a folder."""
    found: Tree = {}
    for folder, folders, names in os.walk(root):
        for name in folders:
            found[os.path.relpath(os.path.join(folder, name), root)] = None
        for name in names:
            if name not in (".ask", ".eval"):
                path = os.path.join(folder, name)
                found[os.path.relpath(path, root)] = Path(path).read_bytes()
    return found


class LiveMount(RuleBasedStateMachine):
    """What the mount shows is what the folders hold, of the rings that are granted."""

    mount_point: ClassVar[Path]
    snapshot_path: ClassVar[Path]
    work: ClassVar[Path]
    runs: ClassVar[int] = 0

    @initialize()
    def start(self) -> None:
        type(self).runs += 1
        self.root = self.work / f"run-{self.runs}"
        self.prefix = f"r{self.runs}-"
        self.granted: set[str] = set()
        self.moment = 1_600_000_000
        self.charters: dict[str, dict[str, tuple[int, bytes]]] = {ring: {} for ring in RINGS}
        for ring in RINGS:
            for section in ("workspace", "artifacts", "decisions"):
                (self.root / ring / section).mkdir(parents=True)
            self.bring(ring)

    def bring(self, ring: str) -> None:
        with Snapshot.open(self.snapshot_path, write=True) as snapshot:
            import_source(snapshot, self.root / ring, f"/ring/{self.prefix}{ring}", "owner")

    @rule(ring=st.sampled_from(RINGS), section=SECTION, name=NAMES, below=st.none() | NAMES, content=CONTENT)
    def write(self, ring: str, section: str, name: str, below: str | None, content: bytes) -> None:
        folder = self.root / ring / section
        if section == "decisions":
            name, below = f"{NAMES_OF_MEMORIES[name]}.md", None
        elif below is not None:
            folder /= below
            if folder.is_file():
                folder.unlink()
            folder.mkdir(exist_ok=True)
        if (folder / name).is_dir():
            shutil.rmtree(folder / name)
        (folder / name).write_bytes(content)
        self.bring(ring)

    @rule(ring=st.sampled_from(RINGS), section=SECTION, pick=st.integers(0, 50))
    def delete(self, ring: str, section: str, pick: int) -> None:
        for path in self.choose(ring, section, pick):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
            self.bring(ring)

    @rule(
        ring=st.sampled_from(RINGS),
        section=st.sampled_from(["workspace", "artifacts"]),
        pick=st.integers(0, 50),
        name=NAMES,
    )
    def rename(self, ring: str, section: str, pick: int, name: str) -> None:
        for path in self.choose(ring, section, pick):
            target = path.with_name(name)
            if not target.exists():
                path.rename(target)
                self.bring(ring)

    @rule(ring=st.sampled_from(RINGS))
    def grant(self, ring: str) -> None:
        self.change_access(access.grant, ring)
        self.granted.add(ring)

    @precondition(lambda self: self.granted)
    @rule(ring=st.sampled_from(RINGS))
    def revoke(self, ring: str) -> None:
        self.change_access(access.revoke, ring)
        self.granted.discard(ring)

    @rule(ring=st.sampled_from(RINGS), charter=CHARTERS, content=CONTENT, older=st.booleans())
    def write_charter(self, ring: str, charter: str, content: bytes, older: bool) -> None:
        self.moment += 1
        at = self.moment - 1_000_000 if older else self.moment
        self.charters[ring][charter] = at, content
        with self.writing(ring) as (db, namespace):
            row = MemoryRow(
                namespace=namespace.path, id=charter, memory_type="charter", title=charter, content="", updated_at=at
            )
            memory.upsert(db, namespace, row, bodies.of_bytes(content), None, at)

    @rule(ring=st.sampled_from(RINGS), charter=CHARTERS)
    def delete_charter(self, ring: str, charter: str) -> None:
        if self.charters[ring].pop(charter, None):
            with self.writing(ring) as (db, namespace):
                found = memory.find(db, namespace.id, charter)
                assert found is not None
                memory.delete(db, namespace, found.ino)

    @rule(ring=st.sampled_from(RINGS), content=CONTENT)
    def write_an_orphan(self, ring: str, content: bytes) -> None:
        with self.writing(ring) as (db, namespace):
            row = WorkspaceRow(
                namespace=namespace.path, id="orphan", parent_id="no such row", name="orphan", content=""
            )
            workspace.upsert(db, namespace, row, bodies.of_bytes(content), None, 1)

    @rule(ring=st.sampled_from(RINGS), charter=CHARTERS)
    def write_an_edge(self, ring: str, charter: str) -> None:
        with self.writing(ring) as (db, namespace):
            edges.put(db, edges.Edge(namespace.id, charter, "supersedes", namespace.id, "no such row"), None)

    @contextmanager
    def writing(self, ring: str) -> Iterator[tuple[apsw.Connection, Namespace]]:
        with Snapshot.open(self.snapshot_path, write=True) as snapshot, snapshot.transaction() as db:
            namespace = namespaces.find(db, "ring", self.prefix + ring)
            assert namespace is not None
            yield db, namespace

    def change_access(self, change: Callable[..., bool], ring: str) -> None:
        with self.writing(ring) as (db, namespace):
            change(db, "me", namespace)

    def choose(self, ring: str, section: str, pick: int) -> list[Path]:
        found = sorted((self.root / ring / section).rglob("*"))
        return [found[pick % len(found)]] if found else []

    @invariant()
    def mount_shows_the_folders(self) -> None:
        if not hasattr(self, "root"):
            return
        expected: Tree = {}
        for ring in sorted(self.granted):
            expected[self.prefix + ring] = None
            for section in SECTIONS:
                expected[f"{self.prefix}{ring}/{section}"] = None
            for path, content in tree_of(self.root / ring).items():
                if content is not None or not path.startswith("artifacts/") or self.holds_a_file(ring, path):
                    expected[f"{self.prefix}{ring}/{path}"] = content
            if charters := self.charters[ring]:
                newest = max(charters, key=lambda charter, known=charters: (known[charter][0], charter))  # type: ignore[misc]
                expected[f"{self.prefix}{ring}/charter/{newest}.md"] = charters[newest][1]
        deadline = time.monotonic() + WITHIN_SECONDS
        while True:
            try:
                seen = self.seen()
            except FileNotFoundError:  # a file that went while it was walked
                seen = {}
            hidden = {ring for ring in RINGS if not (self.mount_point / "ring" / (self.prefix + ring)).exists()}
            if (seen, hidden) == (expected, set(RINGS) - self.granted) or time.monotonic() > deadline:
                break
            time.sleep(0.03)
        assert seen == expected
        assert hidden == set(RINGS) - self.granted

    def seen(self) -> Tree:
        rings = [name for name in os.listdir(self.mount_point / "ring") if name.startswith(self.prefix)]
        found: Tree = dict.fromkeys(rings)
        for ring in rings:
            found |= {f"{ring}/{path}": content for path, content in tree_of(self.mount_point / "ring" / ring).items()}
        return found

    def holds_a_file(self, ring: str, path: str) -> bool:
        return any(below.is_file() for below in (self.root / ring / path).rglob("*"))


NAMES_OF_MEMORIES = {"a": "a", "b": "b", "c.md": "c", "d e": "d-e", "ü": "ü", "日本.txt": "日本", "-x": "x"}
"""Stems that are their own slugs, so that a memory's file has the name of its source."""


@pytest.mark.slow
def test_a_live_mount_is_its_folders(tmp_path_factory: pytest.TempPathFactory) -> None:
    work = tmp_path_factory.mktemp("stateful")
    snapshot = work / "library.db"
    Snapshot.open(snapshot, create=True).close()
    with Live(snapshot, work / "mount") as live:

        class Machine(LiveMount):
            mount_point = live.point
            snapshot_path = snapshot

        Machine.work = work
        run_state_machine_as_test(
            Machine,
            settings=settings(
                max_examples=15,
                stateful_step_count=15,
                deadline=None,
                suppress_health_check=list(HealthCheck),
                print_blob=False,
            ),
        )
