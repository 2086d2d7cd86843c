"""The three stores: where a row is shown, under which name, and what a second storing does."""

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from libraryfs import rows
from libraryfs.store import artifacts, changes, check, edges, entries, inodes, memory, namespaces, workspace
from libraryfs.store.changes import Op
from libraryfs.store.outcome import Outcome
from libraryfs.store.snapshot import Snapshot
from tests.store.build import Builder


def names_in(build: Builder, namespace: str, section: str) -> list[bytes]:
    folder = inodes.section_ino(namespace, section)
    return [entry.name for entry in entries.children_by_name(build.db, folder, b"", 1000)]


def test_storing_again_writes_nothing(build: Builder) -> None:
    def store_all() -> list[Outcome]:
        return [
            build.memory("/ring/dev", "m", content="one", metadata={"a": [1, 2]}, confidence=0.5),
            build.item("/ring/dev", "w", content="two"),
            build.item("/ring/dev", "folder", folder=True),
            build.artifact("/ring/dev", "a", "img/x.png", content="three"),
        ]

    assert store_all() == [Outcome.ADDED] * 4
    before, wrote = changes.latest(build.db), build.db.total_changes()
    assert store_all() == [Outcome.UNCHANGED] * 4
    assert changes.latest(build.db) == before
    assert build.db.total_changes() == wrote


def test_a_memory_keeps_name_and_inode_when_its_text_and_title_change(build: Builder) -> None:
    build.memory("/ring/dev", "m", content="one", title="First")
    before = build.entry(memory, "/ring/dev", "m")
    assert build.memory("/ring/dev", "m", content="other", title="Second") is Outcome.CHANGED
    after = build.entry(memory, "/ring/dev", "m")
    assert (before.ino, before.name) == (after.ino, after.name)
    assert (after.size, after.mtime_ns) == (5, build.now)


def test_equal_titles_keep_their_names_when_one_goes(build: Builder) -> None:
    for number in range(3):
        build.memory("/ring/dev", f"m{number}", title="Same")
    before = names_in(build, "/ring/dev", "skills")
    assert len(set(before)) == 3
    assert b"same.md" in before
    first = build.entry(memory, "/ring/dev", "m0")
    namespace = namespaces.find_path(build.db, "/ring/dev")
    assert namespace is not None
    with build.snapshot.transaction():
        memory.delete(build.db, namespace, first.ino)
    assert names_in(build, "/ring/dev", "skills") == [name for name in before if name != b"same.md"]


def test_a_new_type_moves_the_file(build: Builder) -> None:
    build.memory("/ring/dev", "m", "skill")
    ino = build.entry(memory, "/ring/dev", "m").ino
    build.memory("/ring/dev", "m", "procedural")
    assert names_in(build, "/ring/dev", "skills") == []
    assert names_in(build, "/ring/dev", "memories") == [b"m.md"]
    assert build.entry(memory, "/ring/dev", "m").ino == ino


def test_one_charter_the_newest(build: Builder) -> None:
    build.memory("/ring/dev", "old", "charter", title="Charter", updated_at=1)
    build.memory("/ring/dev", "new", "charter", title="Charter", updated_at=3)
    build.memory("/ring/dev", "mid", "charter", title="Charter", updated_at=2)
    shown = build.entry(memory, "/ring/dev", "new")
    assert names_in(build, "/ring/dev", "charter") == [shown.name]
    assert {problem.id for problem in check.check(build.db) if problem.kind == "shadowed_charter"} == {"old", "mid"}
    namespace = namespaces.find_path(build.db, "/ring/dev")
    assert namespace is not None
    with build.snapshot.transaction():
        memory.delete(build.db, namespace, shown.ino)
    assert names_in(build, "/ring/dev", "charter") == [build.entry(memory, "/ring/dev", "mid").name]
    build.memory("/ring/dev", "mid", "skill", title="Charter", updated_at=2)
    assert names_in(build, "/ring/dev", "charter") == [build.entry(memory, "/ring/dev", "old").name]


def test_an_agents_memory_is_one_folder(build: Builder) -> None:
    build.memory("/agent/alice", "a", "skill")
    build.memory("/agent/alice", "b", "charter")
    build.memory("/agent/alice", "c", "charter")
    assert names_in(build, "/agent/alice", "memory") == [b"a.md", b"b.md", b"c.md"]


def test_a_cycle_is_not_reachable_and_is_named(build: Builder) -> None:
    build.item("/ring/dev", "fine", folder=True)
    build.item("/ring/dev", "a", "b", folder=True)
    build.item("/ring/dev", "b", "a", folder=True)
    build.item("/ring/dev", "below", "b", content="x")
    build.item("/ring/dev", "self", "self", folder=True)
    assert names_in(build, "/ring/dev", "workspace") == [b"fine"]
    assert entries.chain(build.db, build.entry(workspace, "/ring/dev", "below")) is None
    found = {problem.id: problem.kind for problem in check.check(build.db)}
    assert found == dict.fromkeys(["a", "b", "below", "self"], "workspace_cycle")


def test_an_orphan_shows_when_its_parent_comes(build: Builder) -> None:
    build.item("/ring/dev", "child", "parent", content="x")
    assert [problem.kind for problem in check.check(build.db)] == ["workspace_orphan"]
    build.item("/ring/dev", "parent", folder=True)
    assert list(check.check(build.db)) == []
    links = entries.chain(build.db, build.entry(workspace, "/ring/dev", "child"))
    assert links is not None
    assert [link.name for link in links[1:]] == [b"ring", b"dev", b"workspace", b"parent", b"child"]


def test_what_is_below_a_file_is_an_orphan(build: Builder) -> None:
    build.item("/ring/dev", "file", content="x")
    build.item("/ring/dev", "child", "file", content="y")
    assert [(problem.kind, problem.id) for problem in check.check(build.db)] == [("workspace_orphan", "child")]


def test_artifact_folders_come_and_go_with_their_files(build: Builder) -> None:
    build.artifact("/ring/dev", "1", "a/b/c.txt")
    build.artifact("/ring/dev", "2", "a/d.txt")
    build.artifact("/ring/dev", "1", "moved.txt")
    assert names_in(build, "/ring/dev", "artifacts") == [b"a", b"moved.txt"]
    with build.snapshot.transaction():
        artifacts.delete(build.db, build.entry(artifacts, "/ring/dev", "2").ino)
    assert names_in(build, "/ring/dev", "artifacts") == [b"moved.txt"]


def test_an_artifact_beside_a_folder_of_its_name(build: Builder) -> None:
    build.artifact("/ring/dev", "file", "a", content="file")
    build.artifact("/ring/dev", "below", "a/b", content="below")
    shown = names_in(build, "/ring/dev", "artifacts")
    assert len(shown) == 2
    assert build.entry(artifacts, "/ring/dev", "file").name == b"a"  # given first, and kept


def test_the_change_log_tells_what_to_forget(build: Builder) -> None:
    build.memory("/ring/dev", "m", content="one")
    entry = build.entry(memory, "/ring/dev", "m")
    start = changes.latest(build.db)
    build.memory("/ring/dev", "m", content="two")
    namespace = build.namespace("/ring/dev", "me")
    with build.snapshot.transaction():
        memory.delete(build.db, namespace, entry.ino)
    log = [(change.op, change.ino) for change in changes.since(build.db, start, changes.latest(build.db))]
    ring = inodes.namespace_ino("/ring/dev")
    assert log == [(Op.CHANGED, entry.ino), (Op.GRANTED, ring), (Op.REMOVED, entry.ino)]
    assert changes.is_complete_since(build.db, start)
    with build.snapshot.transaction():
        build.db.execute("DELETE FROM changes WHERE seq <= ?", (start + 1,))
    assert not changes.is_complete_since(build.db, start)


def test_check_names_changed_names_and_dangling_edges(build: Builder) -> None:
    build.item("/ring/dev", "w", name="a/b")
    build.artifact("/ring/dev", "a", filename="x/../y")
    build.artifact("/ring/dev", "b", filename="x/plain/z")
    build.memory("/ring/dev", "m0", title="Same")
    build.memory("/ring/dev", "m1", title="Same")
    namespace = build.namespace("/ring/dev")
    with build.snapshot.transaction():
        edges.put(build.db, edges.Edge(namespace.id, "m1", "supersedes", namespace.id, "gone"), None)
    found = sorted((problem.kind, problem.id) for problem in check.check(build.db))
    assert found == [("changed_name", "a"), ("changed_name", "m1"), ("changed_name", "w"), ("dangling_edge", "m1")]


@given(st.integers(-(10**18), 4 * 10**18))
def test_times_survive_being_text(nanoseconds: int) -> None:
    assert rows.to_nanoseconds(rows.iso(nanoseconds)) == nanoseconds


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("1970-01-01T00:00:01Z", 10**9),
        ("1970-01-01T00:00:01.5+00:00", 15 * 10**8),
        ("1970-01-01T01:00:00.000000001+01:00", 1),
        ("1970-01-02", 86_400 * 10**9),
    ],
)
def test_iso_times(text: str, nanoseconds: int) -> None:
    assert rows.to_nanoseconds(text) == nanoseconds


def test_a_look_up_is_one_search_in_an_index(build: Builder) -> None:
    for query in ("parent = ? AND name = ?", "parent = ? AND ino > ? ORDER BY ino LIMIT 10"):
        plan = build.db.execute(f"EXPLAIN QUERY PLAN SELECT * FROM entries WHERE {query}", (1, 2)).fetchall()
        assert len(plan) == 1
        assert "SEARCH entries USING INDEX" in str(plan[0])


def test_foreign_inode_clash_is_refused(build: Builder) -> None:
    ino = inodes.row_ino("/ring/dev", "memory", "m")
    build.namespace("/ring/dev")
    build.db.execute("INSERT INTO entries VALUES (?, 5, x'41', 5, 1, 0, 0, 0, zeroblob(16))", (ino,))
    with pytest.raises(ValueError, match="change the id"):
        build.memory("/ring/dev", "m")
    assert isinstance(build.db, apsw.Connection)


def test_a_charters_folder_has_the_charters_time_in_every_rebuilt_snapshot(build: Builder) -> None:
    build.memory("/ring/dev", "c", "charter", updated_at="2020-01-01")
    folder = entries.get(build.db, inodes.section_ino("/ring/dev", "charter"))
    assert folder is not None
    assert folder.mtime_ns == rows.to_nanoseconds("2020-01-01")


def test_a_folders_ctime_is_never_behind_its_mtime(build: Builder) -> None:
    """Whatever comes into it, goes out of it, or moves."""
    build.item("/ring/dev", "f", name="folder", folder=True)
    build.item("/ring/dev", "w", "f", name="item")
    build.item("/ring/dev", "w", name="item")
    build.memory("/ring/dev", "c1", "charter")
    build.memory("/ring/dev", "c2", "charter")
    build.artifact("/ring/dev", "a", "x/y")
    with build.snapshot.transaction():
        workspace.delete(build.db, build.entry(workspace, "/ring/dev", "w").ino)
    folders = "SELECT count(*) FROM entries WHERE kind <= 4"
    assert build.db.execute(f"{folders} AND mtime_ns > 0").get > 3
    assert build.db.execute(f"{folders} AND ctime_ns < mtime_ns").get == 0


def test_an_earlier_snapshots_folders_get_their_ctime(build: Builder) -> None:
    build.item("/ring/dev", "w", name="item")
    build.db.execute("UPDATE entries SET ctime_ns = 0 WHERE kind <= 4")
    build.db.execute("DELETE FROM settings WHERE key = 'schema'")
    build.snapshot.close()
    with Snapshot.open(build.path, write=True) as build.snapshot:
        assert build.db.execute("SELECT count(*) FROM entries WHERE ctime_ns < mtime_ns").get == 0
