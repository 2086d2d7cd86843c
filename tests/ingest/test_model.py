"""Imports, grants, renames and deletions in any order, against a plain model of what each principal sees."""

import os
import shutil
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from libraryfs.ingest.importer import import_source
from libraryfs.library.resolver import Library
from libraryfs.nodes import ROOT_INO
from libraryfs.paths import SECTIONS
from libraryfs.store import access, check, namespaces
from libraryfs.store.snapshot import Snapshot
from tests.ingest.shown import walk

PRINCIPALS = ("alice", "bob")
SOURCES = ("one", "two")
RINGS = ("dev", "ops")
names = st.sampled_from(["a", "b", "ä", "c d", ".ask", "-x"])
places = st.sampled_from(["skills", "memories", "workspace", "workspace/deep", "artifacts", "artifacts/deep"])
contents = st.sampled_from([b"", b"text\n", b"\xff\x00", b"x" * 200_000])
sources = st.sampled_from(SOURCES)
rings = st.sampled_from(RINGS)
principals = st.sampled_from(PRINCIPALS)


class Life(RuleBasedStateMachine):
    """Two folders that change and are imported into two rings, one each at a time, by two principals."""

    def __init__(self) -> None:
        super().__init__()
        self.home = Path(tempfile.mkdtemp())
        self.snapshot = Snapshot.open(self.home / "library.db", create=True)
        self.disk: dict[str, dict[str, bytes]] = {source: {} for source in SOURCES}
        self.rings: dict[str, dict[str, bytes]] = {}  # ring → id of the row → content
        self.granted: set[tuple[str, str]] = set()
        self.inodes: dict[tuple[str, str], int] = {}  # of the rows that live
        for source in SOURCES:
            (self.home / source / "skills").mkdir(parents=True)

    def teardown(self) -> None:
        self.snapshot.close()
        shutil.rmtree(self.home)

    @rule(source=sources, place=places, name=names, content=contents)
    def write(self, source: str, place: str, name: str, content: bytes) -> None:
        path = f"{place}/{source}-{name}" + (".md" if place in ("skills", "memories") else "")
        (self.home / source / path).parent.mkdir(parents=True, exist_ok=True)
        (self.home / source / path).write_bytes(content)
        self.disk[source][path] = content

    @rule(source=sources, data=st.data(), name=names)
    def rename(self, source: str, data: st.DataObject, name: str) -> None:
        if not self.disk[source]:
            return
        old = data.draw(st.sampled_from(sorted(self.disk[source])))
        new = f"{os.path.dirname(old)}/{source}-{name}" + (".md" if old.endswith(".md") else "")
        os.rename(self.home / source / old, self.home / source / new)
        self.disk[source][new] = self.disk[source].pop(old)

    @rule(source=sources, data=st.data())
    def delete(self, source: str, data: st.DataObject) -> None:
        if not self.disk[source]:
            return
        path = data.draw(st.sampled_from(sorted(self.disk[source])))
        (self.home / source / path).unlink()
        del self.disk[source][path]

    @rule(source=sources, ring=rings, principal=principals)
    def bring(self, source: str, ring: str, principal: str) -> None:
        had = {row: data for row, data in self.rings.get(ring, {}).items() if f"/{source}-" in row}
        has = dict(self.disk[source])
        report = import_source(self.snapshot, self.home / source, f"/ring/{ring}", principal)
        folders = report.added + report.changed + report.unchanged - len(has)
        assert folders >= 0
        assert report.unchanged >= sum(had.get(row) == data for row, data in has.items())
        assert report.changed == sum(row in had and had[row] != data for row, data in has.items())
        kept = {row: data for row, data in self.rings.get(ring, {}).items() if row not in had}
        self.rings[ring] = kept | has
        self.granted.add((principal, ring))
        for row in had.keys() - has.keys():
            self.inodes.pop((ring, row), None)

    @rule(principal=principals, ring=rings, give=st.booleans())
    def grant(self, principal: str, ring: str, give: bool) -> None:
        namespace = namespaces.find(self.snapshot.db, "ring", ring)
        if namespace is None:
            return
        with self.snapshot.transaction() as db:
            (access.grant if give else access.revoke)(db, principal, namespace)
        (self.granted.add if give else self.granted.discard)((principal, ring))

    @invariant()
    def each_principal_sees_what_it_may(self) -> None:
        for principal in PRINCIPALS:
            library = Library(self.snapshot, principal)
            rings = {ring for ring in self.rings if (principal, ring) in self.granted}
            shown = [library.path_of(entry) for entry in library.children(library.resolve("/ring"))]
            assert sorted(shown) == sorted(f"/ring/{ring}" for ring in rings)
            found: dict[str, dict[str, bytes]] = {ring: {} for ring in rings}
            for entry in walk(library, library.entry(ROOT_INO)):
                if entry.is_folder:
                    continue
                _, _, ring, section, *rest = library.path_of(entry).split("/")
                row = library.attributes(entry)["id"].decode()
                found[ring][row] = library.content(entry)
                assert entry.size == len(found[ring][row])
                assert self.inodes.setdefault((ring, row), entry.ino) == entry.ino
                if section in ("workspace", "artifacts") and not row.endswith(".ask"):
                    assert "/".join((section, *rest)) == row
            assert found == {ring: self.rings[ring] for ring in rings}
            for ring in rings:
                sections = library.children(library.resolve(f"/ring/{ring}"))
                assert [section.name.decode() for section in sections] == list(SECTIONS)

    @invariant()
    def nothing_is_wrong(self) -> None:
        assert {problem.kind for problem in check.check(self.snapshot.db)} <= {"changed_name"}


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=15, stateful_step_count=25, deadline=None)
