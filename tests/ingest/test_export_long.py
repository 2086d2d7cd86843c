"""An import of an export gives an equal snapshot: names, inodes, ids, content, metadata, edges and grants."""

import io
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from libraryfs.errors import PathNotFound
from libraryfs.ingest.export import PART, export
from libraryfs.ingest.importer import import_source
from libraryfs.rows import ArtifactRow, EdgeRow, MemoryRow, WorkspaceRow
from libraryfs.store import access, artifacts, bodies, edges, memory, namespaces, workspace
from libraryfs.store.snapshot import Snapshot
from tests.store.build import NOW, Builder

TABLES = {
    "memories": "m.ino, m.id, memory_type, title, confidence, metadata, created_ns, updated_ns",
    "items": "m.ino, m.id, parent_id, is_folder, m.name, media_type, metadata, created_ns, updated_ns",
    "artifacts": "m.ino, m.id, filename, media_type, metadata, created_ns, updated_ns",
}


def dump(snapshot: Snapshot) -> dict[str, list[Any]]:
    """All that a snapshot holds but for numbers of namespaces and sources, and times of folders."""
    path = "(SELECT '/' || kind || '/' || name FROM namespaces n WHERE n.id = {})"
    ask = {
        table: f"SELECT {path.format('m.namespace_id')}, {columns} FROM {table} m ORDER BY m.ino"
        for table, columns in TABLES.items()
    }
    ask["entries"] = (
        f"SELECT ino, parent, name, kind, {path.format('namespace_id')}, size, digest,"
        " iif(digest IS NULL, 0, mtime_ns), iif(digest IS NULL, 0, ctime_ns) FROM entries ORDER BY ino"
    )
    ask["bodies"] = "SELECT ino, data FROM bodies ORDER BY ino"
    ask["chunks"] = "SELECT ino, seq, data FROM chunks ORDER BY ino, seq"
    ask["edges"] = (
        f"SELECT {path.format('source_ns')}, source_id, kind, {path.format('target_ns')}, target_id FROM edges"
        " ORDER BY 1, 2, 3, 4, 5"
    )
    ask["grants"] = f"SELECT principal, {path.format('namespace_id')} FROM grants ORDER BY 1, 2"
    return {name: list(snapshot.db.execute(text)) for name, text in ask.items()}


def copy(snapshot: Snapshot, folder: Path, namespace: str | None = None) -> dict[str, list[Any]]:
    """What a new snapshot holds after an import of the export; nobody is granted more."""
    lines = folder / "rows.jsonl"
    with lines.open("wb") as out:
        export(snapshot, out, namespace)
    with Snapshot.open(folder / "copy.db", create=True) as other:
        import_source(other, lines, None, None)
        again = io.BytesIO()
        export(other, again, namespace)
        assert again.getvalue() == lines.read_bytes()
        return dump(other)


NAMESPACES = ("/ring/dev", "/ring/日本", "/agent/ada")
RINGS = NAMESPACES[:2]
ids = st.sampled_from(["1", "2", "3", "a/b", "é", "x" * 300])
texts = st.text(st.characters(), max_size=12) | st.sampled_from(
    ["Same", "same", ".ask", "..", "a\ud800b", "caf\udce9", "a/b", ""]
)
names = texts | st.sampled_from(["a", "b", "a~b", "ü" * 200])
contents = st.binary(max_size=20) | st.sampled_from([b"", "日本".encode(), b"\xff\x00", b"\r\n"])
times = st.none() | st.integers(-(2**62), 2**62)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=4,
)
metadata = st.dictionaries(st.text(max_size=8), json_values, max_size=3)
types = st.sampled_from(["charter", "skill", "decision", "semantic", "unheard of"])
confidences = st.none() | st.floats(0, 1)
media = st.none() | st.sampled_from(["text/plain", "日本"])
common = {"metadata": metadata, "created_at": times, "updated_at": times}


def constructed(model: Any, /, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Rows with times that are nanoseconds already, as an importer makes them."""
    return st.fixed_dictionaries(fields).map(lambda values: model.model_construct(**values))


memories = constructed(
    MemoryRow,
    namespace=st.sampled_from(NAMESPACES),
    id=ids,
    memory_type=types,
    title=names,
    confidence=confidences,
    **common,
)
items = constructed(
    WorkspaceRow,
    namespace=st.sampled_from(RINGS),
    id=ids,
    parent_id=st.none() | ids,
    folder=st.booleans(),
    name=names,
    media_type=media,
    **common,
)
files = constructed(
    ArtifactRow,
    namespace=st.sampled_from(RINGS),
    id=ids,
    filename=st.lists(names, min_size=1, max_size=4).map("/".join),
    media_type=media,
    **common,
)
edge_rows = constructed(
    EdgeRow,
    namespace=st.sampled_from(NAMESPACES),
    source=ids,
    kind=st.sampled_from(["supersedes", "derives_from", "supports"]),
    target=ids,
    target_namespace=st.sampled_from(NAMESPACES),
)
grants = st.tuples(st.sampled_from(["alice", "böb"]), st.sampled_from(NAMESPACES))
steps = st.one_of(
    st.tuples(memories | items | files, contents),
    edge_rows,
    grants,
    st.tuples(st.just("delete"), st.sampled_from(NAMESPACES), ids),
)


def take(snapshot: Snapshot, step: Any) -> None:
    """One step of a snapshot's life."""
    db = snapshot.db
    match step:
        case ("delete", str(path), str(row_id)):
            namespace = namespaces.ensure(db, path)
            for store in (memory, workspace, artifacts):
                found = store.find(db, namespace.id, row_id)
                if found and store is memory:
                    memory.delete(db, namespace, found.ino)
                elif found:
                    (workspace if store is workspace else artifacts).delete(db, found.ino)
        case EdgeRow():
            source = namespaces.ensure(db, step.namespace).id
            target = namespaces.ensure(db, step.target_namespace or step.namespace).id
            edges.put(db, edges.Edge(source, step.source, step.kind, target, step.target), None)
        case (str(principal), str(path)):
            access.grant(db, principal, namespaces.ensure(db, path))
        case (row, bytes(content)):
            upsert: Any = memory.upsert if isinstance(row, MemoryRow) else artifacts.upsert
            upsert = workspace.upsert if isinstance(row, WorkspaceRow) else upsert
            upsert(db, namespaces.ensure(db, row.namespace), row, bodies.of_bytes(content), None, NOW)


@settings(max_examples=1500, deadline=None)
@given(st.lists(steps, max_size=14))
def test_an_import_of_an_export_is_equal(life: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as folder, Snapshot.open(Path(folder) / "a.db", create=True) as snapshot:
        with snapshot.transaction():
            for step in life:
                take(snapshot, step)
        assert copy(snapshot, Path(folder)) == dump(snapshot)


def test_a_folder_and_a_file_of_one_name_keep_theirs(build: Builder, tmp_path: Path) -> None:
    for order in (("a", "a/b", "a/b/c"), ("z/y/x", "z/y", "z")):
        for name in order:
            build.artifact("/ring/dev", name, content=name)
    assert copy(build.snapshot, tmp_path) == dump(build.snapshot)


@pytest.mark.parametrize("size", [PART - 1, PART, PART + 1, 3 * PART, 3 * PART + 5])
def test_a_large_content_goes_in_parts(build: Builder, tmp_path: Path, size: int) -> None:
    build.artifact("/ring/dev", "big", content="x" * size)
    build.memory("/ring/dev", "long", content="é" * (size // 2))
    assert copy(build.snapshot, tmp_path) == dump(build.snapshot)
    lines = (tmp_path / "rows.jsonl").read_bytes().splitlines()
    assert max(map(len, lines)) < 2 * PART


def test_one_ring_alone(build: Builder, tmp_path: Path) -> None:
    build.namespace("/ring/dev", "alice", "bob")
    build.namespace("/ring/ops", "carol")
    build.memory("/ring/dev", "m")
    build.memory("/ring/ops", "m")
    dev, ops = (namespaces.ensure(build.db, path).id for path in ("/ring/dev", "/ring/ops"))
    with build.snapshot.transaction():
        edges.put(build.db, edges.Edge(dev, "m", "supersedes", ops, "m"), None)
        edges.put(build.db, edges.Edge(ops, "m", "supersedes", dev, "m"), None)
    copied = copy(build.snapshot, tmp_path, "/ring/dev")
    assert [row[0] for row in copied["memories"]] == ["/ring/dev"]
    assert copied["edges"] == [("/ring/dev", "m", "supersedes", "/ring/ops", "m")]
    assert copied["grants"] == [("alice", "/ring/dev"), ("bob", "/ring/dev")]
    assert b"carol" not in (tmp_path / "rows.jsonl").read_bytes()
    with pytest.raises(PathNotFound):
        export(build.snapshot, io.BytesIO(), "/ring/missing")


def test_an_export_is_of_one_moment(build: Builder, tmp_path: Path) -> None:
    for number in range(20):
        build.memory("/ring/dev", f"m{number}")

    class Interfering(io.BytesIO):
        def write(self, data: Any, /) -> int:
            if b'"memory"' in data:
                build.memory("/ring/dev", f"new{build.now}")
            return super().write(data)

    with Snapshot.open(build.path) as reader:
        out = Interfering()
        assert export(reader, out).rows == 20
    assert b"new" not in out.getvalue()
