import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from libraryfs.errors import InvalidPath, LibraryError, PathNotFound
from libraryfs.library import drilldown, tree
from libraryfs.library.resolver import Library
from libraryfs.nodes import Entry
from libraryfs.paths import SECTIONS
from libraryfs.store import access, edges, memory
from libraryfs.store.snapshot import Snapshot
from tests.store.build import Builder


def everything(library: Library) -> dict[str, bytes]:
    """Every path that a walk finds, with content and attributes as text."""
    found: dict[str, bytes] = {}

    def walk(folder: Entry) -> None:
        after = 0
        while page := library.children(folder, after, 3):
            after = page[-1].ino
            for entry in page:
                path = library.path_of(entry)
                found[path] = library.content(entry) + repr(library.attributes(entry)).encode()
                assert library.resolve(path) == entry
                assert library.lookup(folder, entry.name) == entry
                if entry.is_folder:
                    walk(entry)

    walk(library.resolve("/"))
    return found


def test_sections_are_listed_in_order_and_empty_ones_too(build: Builder) -> None:
    build.namespace("/ring/dev", "me")
    library = Library(build.snapshot, "me")
    ring = library.resolve("/ring/dev")
    assert [entry.name.decode() for entry in library.children(ring)] == list(SECTIONS)
    assert library.children(library.resolve("/ring/dev/skills")) == []


def test_hidden_and_absent_read_the_same(build: Builder) -> None:
    build.memory("/ring/dev", "m", content="secret")
    build.namespace("/ring/ops", "me")
    library = Library(build.snapshot, "me")
    for path in ("/ring/dev", "/ring/dev/skills/m.md"):
        with pytest.raises(PathNotFound) as hidden:
            library.resolve(path)
        with pytest.raises(PathNotFound) as absent:
            library.resolve(path.replace("dev", "not"))
        assert str(hidden.value).replace("dev", "not") == str(absent.value)


def test_a_path_below_a_file_is_absent(build: Builder) -> None:
    build.namespace("/ring/dev", "me")
    build.item("/ring/dev", "w", content="x")
    library = Library(build.snapshot, "me")
    with pytest.raises(PathNotFound):
        library.resolve("/ring/dev/workspace/w/x")
    with pytest.raises(InvalidPath):
        library.resolve("/ring/dev/workspace/../charter")


def test_a_grant_and_a_revoke_show_at_once(build: Builder) -> None:
    namespace = build.namespace("/ring/dev")
    with Snapshot.open(build.path) as reader:
        library = Library(reader, "me")
        assert library.visible() == frozenset()
        with build.snapshot.transaction():
            access.grant(build.db, "me", namespace)
        assert library.resolve("/ring/dev").name == b"dev"
        with build.snapshot.transaction():
            access.revoke(build.db, "me", namespace)
        with pytest.raises(PathNotFound):
            library.resolve("/ring/dev")


def test_supersession_shows_from_both_ends_and_hides_what_is_hidden(build: Builder) -> None:
    dev, ops = build.namespace("/ring/dev", "me"), build.namespace("/ring/ops")
    for ring in ("dev", "ops"):
        build.memory(f"/ring/{ring}", "old")
        build.memory(f"/ring/{ring}", "new")
    with build.snapshot.transaction():
        edges.put(build.db, edges.Edge(dev.id, "new", "supersedes", dev.id, "old"), None)
        edges.put(build.db, edges.Edge(ops.id, "new", "supersedes", dev.id, "old"), None)
        edges.put(build.db, edges.Edge(dev.id, "new", "derives_from", ops.id, "old"), None)
        edges.put(build.db, edges.Edge(dev.id, "new", "contradicts", dev.id, "old"), None)
    library = Library(build.snapshot, "me")
    new = library.attributes(library.resolve("/ring/dev/skills/new.md"))
    old = library.attributes(library.resolve("/ring/dev/skills/old.md"))
    assert new["supersedes"] == b"old"
    assert old["superseded_by"] == b"new"
    assert old["contradicts_by"] == b"new"
    assert "derives_from" not in new


def test_metadata_is_shown_and_does_not_replace_a_built_in_name(build: Builder) -> None:
    build.namespace("/ring/dev", "me")
    build.memory("/ring/dev", "m", metadata={"owner": "ann", "id": "other", "tags": ["a", "ü"], "": 1}, confidence=0.25)
    library = Library(build.snapshot, "me")
    values = library.attributes(library.resolve("/ring/dev/skills/m.md"))
    assert values["owner"] == b"ann"
    assert values["id"] == b"m"
    assert values["metadata.id"] == b"other"
    assert values["tags"] == '["a", "ü"]'.encode()
    assert values["confidence"] == b"0.25"
    assert values["type"] == b"skill"


RINGS = ("/ring/r0", "/ring/r1", "/agent/a0")


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(st.tuples(st.sampled_from(RINGS), st.integers(0, 5)), max_size=12),
    grants=st.sets(st.tuples(st.sampled_from(["p", "q"]), st.sampled_from(RINGS))),
    links=st.lists(
        st.tuples(st.sampled_from(RINGS), st.integers(0, 5), st.sampled_from(RINGS), st.integers(0, 5)), max_size=6
    ),
)
def test_nothing_of_a_hidden_namespace_shows(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[str, int]],
    grants: set[tuple[str, str]],
    links: list[tuple[str, int, str, int]],
) -> None:
    build = Builder(tmp_path_factory.mktemp("access") / "library.db")
    spaces = {path: build.namespace(path, *(who for who, what in grants if what == path)) for path in RINGS}

    def marker(path: str) -> str:
        return "mark" + path.rpartition("/")[2]

    for path, number in rows:
        build.memory(path, f"{marker(path)}-{number}", content=f"{marker(path)} text", metadata={"k": marker(path)})
    with build.snapshot.transaction():
        for source, a, target, b in links:
            link = edges.Edge(
                spaces[source].id, f"{marker(source)}-{a}", "supersedes", spaces[target].id, f"{marker(target)}-{b}"
            )
            edges.put(build.db, link, None)
    for principal in ("p", "q", "nobody"):
        library = Library(build.snapshot, principal)
        seen = everything(library)
        allowed = {what for who, what in grants if who == principal}
        assert {path for path in seen if path.count("/") == 2} == allowed
        text = (
            repr(seen)
            + tree.tree(library, "/", 5).model_dump_json()
            + drilldown.drilldown(library, "/").model_dump_json()
        )
        for path in set(RINGS) - allowed:
            assert marker(path) not in text
            assert path not in text
            with pytest.raises(PathNotFound):
                library.resolve(path)
            for entry_path in (path, f"{path}/memory", f"{path}/skills"):
                with pytest.raises(LibraryError):
                    library.resolve(entry_path)
            for row in memory.every(build.db, spaces[path].id):
                with pytest.raises(PathNotFound):
                    library.entry(row.ino)
        for kind, ino in (("ring", "/ring"), ("agent", "/agent")):
            folder = library.resolve(ino)
            assert library.count(folder) == sum(1 for path in allowed if path.startswith(f"/{kind}/"))
            assert folder.mtime_ns == 0
    build.snapshot.close()
