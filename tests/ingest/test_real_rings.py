"""Real documents, imported: every file byte for byte, and supersession seen from both ends.

The rings of `shared/data` beside the repository where it is there, and the sample ring always.
"""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from libraryfs import sample
from libraryfs.ingest.importer import import_source
from libraryfs.library.resolver import Library
from libraryfs.paths import TYPE_OF_SECTION
from libraryfs.store.snapshot import Snapshot
from tests.ingest.shown import files, walk

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "rings"
RINGS = [*sorted(path for path in SHARED.glob("*") if path.is_dir()), sample.ring()]
MEMORY_SECTIONS = (*TYPE_OF_SECTION, "memories")
PAIRS = {"python": (42, 47), "opentelemetry": (0, 0)}
"""Supersessions that the documents declare, and all of them with the chains that they make."""


@pytest.fixture(scope="module", params=RINGS, ids=lambda path: path.name)
def ring(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Snapshot]]:
    source: Path = request.param
    with Snapshot.open(tmp_path_factory.mktemp("real") / "library.db", create=True) as snapshot:
        report = import_source(snapshot, source, "/ring/real", "alice")
        assert report.skipped == {}
        assert report.warnings == []
        yield source, snapshot


def plain(source: Path, *sections: str) -> dict[str, bytes]:
    """The files of some sections, by their path in the source."""
    found = [path for path in source.rglob("*") if path.is_file()]
    paths = {path.relative_to(source).as_posix(): path for path in found}
    return {name: path.read_bytes() for name, path in paths.items() if name.split("/")[0] in sections}


def test_workspace_and_artifacts_are_the_same_tree(ring: tuple[Path, Snapshot]) -> None:
    source, snapshot = ring
    for section in ("workspace", "artifacts"):
        shown = files(snapshot, f"/ring/real/{section}")
        assert shown == {f"/ring/real/{name}": data for name, data in plain(source, section).items()}


def test_memories_come_out_byte_for_byte(ring: tuple[Path, Snapshot]) -> None:
    source, snapshot = ring
    for section in MEMORY_SECTIONS:
        names = (section, "charter.md") if section == "charter" else (section,)
        shown = files(snapshot, f"/ring/real/{section}")
        assert Counter(shown.values()) == Counter(plain(source, *names).values())


def test_supersession_is_seen_from_both_ends(ring: tuple[Path, Snapshot]) -> None:
    source, snapshot = ring
    declared = set()
    for data in plain(source, *MEMORY_SECTIONS).values():
        head = re.match(rb"---\n(.*?)\n---\n", data, re.DOTALL)
        row_id = re.search(rb"^id: (.+)$", head[1], re.MULTILINE) if head else None
        older = re.search(rb"^supersedes: \[?([^\]\n]+)\]?$", head[1], re.MULTILINE) if head else None
        if row_id and older:
            declared |= {(row_id[1].decode().strip(), one.strip()) for one in older[1].decode().split(",")}
    library = Library(snapshot, "alice")
    forward, backward = set(), set()
    for entry in walk(library, library.resolve("/ring/real")):
        shown = {name: value.decode() for name, value in library.attributes(entry).items()}
        forward |= {(shown["id"], older) for older in shown.get("supersedes", "").split()}
        backward |= {(newer, shown["id"]) for newer in shown.get("superseded_by", "").split()}
    assert forward == backward == declared
    chains = set(declared)
    while more := {(a, d) for a, b in chains for c, d in chains if b == c} - chains:
        chains |= more
    if source.name in PAIRS:
        assert (len(declared), len(chains)) == PAIRS[source.name]
    else:
        assert declared


def test_importing_again_changes_nothing(ring: tuple[Path, Snapshot]) -> None:
    source, snapshot = ring
    before = files(snapshot)
    report = import_source(snapshot, source, "/ring/real", "alice")
    assert (report.added, report.changed, report.removed) == (0, 0, 0)
    assert report.unchanged > 0
    assert files(snapshot) == before
