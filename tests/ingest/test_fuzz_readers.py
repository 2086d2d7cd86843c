"""Whatever stands in front matter, a file of rows or an eval set: it is taken, or refused with an error of ours."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from libraryfs.errors import LibraryError
from libraryfs.evals import evalset
from libraryfs.ingest import front_matter
from libraryfs.ingest.importer import import_source
from libraryfs.store.snapshot import Snapshot

HEX = "0x" + "f" * 4000
ODD = [
    HEX,
    "0b" + "1" * 20_000,
    ":".join(["59"] * 2500),
    ":".join(["59"] * 2500) + ".5",
    "9" * 5000,
    "!!bool x",
    "!!timestamp x",
    '!!int ""',
    '!!float ""',
    "!!binary ///=",
    "!!set {1: , a: }",
    "!!omap [a: 1]",
    "!!python/object:os.system x",
    "&a [*a]",
    "2001-13-45",
    "2001-01-01T00:00:00+99:99",
    "0001-01-01",
    "9999-12-31T23:59:59-14:00",
    ".nan",
    "-.inf",
    '"\\ud800"',
    '"\\0"',
    "[" * 500 + "]" * 500,
    "{a: {b: [1, null, ~]}}",
    "[\n  " + HEX + "]",
]
KEYS = [
    "title",
    "id",
    "memory_type",
    "confidence",
    "created",
    "updated",
    "supersedes",
    "derives_from",
    "tags",
    "<<",
    "? [a]",
]
VALUES = st.one_of(st.sampled_from(ODD), st.text(max_size=12), st.integers().map(str), st.floats().map(str))
LINES = st.tuples(st.sampled_from([*KEYS, "1.5", "null", "2001-01-01", HEX, "repeats", "paths"]), VALUES)
BLOCKS = st.lists(LINES, max_size=5)


def written(form: str, lines: list[tuple[str, str]]) -> str:
    """A document with these lines as its front matter."""
    if form == "json":
        body = ",\n".join(f"{json.dumps(key)}: {value}" for key, value in lines)
        return f"{{\n{body}\n}}\n\nText."
    mark, join = ("+++", " = ") if form == "toml" else ("---", ": ")
    return f"{mark}\n" + "\n".join(f"{key}{join}{value}" for key, value in lines) + f"\n{mark}\nText."


def imported(path: Path, snapshot: Path) -> list[str]:
    """The warnings of an import, or the one error of ours."""
    opened = Snapshot.open(snapshot, create=True)
    try:
        return [str(warning) for warning in import_source(opened, path, "/ring/x", None, lambda *_: None).warnings]
    except LibraryError as error:
        return [str(error)]
    finally:
        opened.close()


@pytest.mark.parametrize("value", ODD)
@pytest.mark.parametrize("form", ["yaml", "toml"])
def test_odd_values(form: str, value: str, tmp_path: Path) -> None:
    """The file comes in, whatever its front matter has; what cannot be read is told with the file and the line."""
    (tmp_path / "notes/skills").mkdir(parents=True)
    (tmp_path / "notes/skills/a.md").write_text(written(form, [("title", "A"), ("z", value)]))
    warnings = imported(tmp_path / "notes", tmp_path / "library.db")
    assert all("skills/a.md:" in warning and "\n" not in warning for warning in warnings)
    opened = Snapshot.open(tmp_path / "library.db")
    assert opened.db.execute("SELECT count(*) FROM memories").get == 1
    opened.close()


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(["yaml", "toml", "json"]), BLOCKS, st.text(max_size=20))
@example("yaml", [(HEX, "1")], "")
def test_front_matter_never_raises(form: str, lines: list[tuple[str, str]], tail: str) -> None:
    """And what it gives can be written as JSON: it goes into the snapshot."""
    reading = front_matter.read(written(form, lines) + tail)
    json.dumps([reading.front.metadata, reading.front.values])
    assert all("\n" not in remark.text and remark.line >= 1 for remark in reading.remarks)


@settings(max_examples=80, deadline=None)
@given(BLOCKS, st.text(max_size=40))
@example([(HEX, "1")], "")
@example([("repeats", HEX)], "")
def test_eval_sets(lines: list[tuple[str, str]], tail: str) -> None:
    try:
        text = written("yaml", lines) + f"\n## Why?\n- because\n{tail}"
        evalset.parse_evalset(text.encode("utf-8", "surrogatepass"))
    except LibraryError as error:
        assert "\n" not in str(error)


SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8),
    st.sampled_from(["/ring/x", "/agent/a", "a/b", "..", "\ud800", "\0", "2001-01-01", "9" * 400, 10**400, -1e308]),
)  # fmt: skip
ROWS = st.dictionaries(
    st.sampled_from(
        ["store", "namespace", "id", "memory_type", "title", "content", "content_base64", "confidence", "metadata",
         "name", "created_at", "parent_id", "folder", "filename", "media_type", "source", "kind", "target", "principal",
         "path"]
    ),
    st.one_of(SCALARS, st.lists(SCALARS, max_size=2), st.dictionaries(st.text(max_size=4), SCALARS, max_size=2)),
)  # fmt: skip
STORES: list[dict[str, Any]] = [
    {"store": "memory", "namespace": "/ring/x", "id": "m", "memory_type": "skill", "title": "T"},
    {"store": "workspace", "namespace": "/ring/x", "id": "w", "name": "n"},
    {"store": "artifact", "namespace": "/ring/x", "id": "a", "filename": "f"},
    {"store": "part", "content_base64": "YQ=="},
    {"store": "edge", "namespace": "/ring/x", "source": "m", "kind": "supersedes", "target": "m"},
    {"store": "grant", "principal": "p", "path": "/ring/x"},
    {},
]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.sampled_from(STORES), ROWS), min_size=1, max_size=3), st.binary(max_size=12))
def test_files_of_rows(rows: list[tuple[dict[str, Any], dict[str, Any]]], tail: bytes) -> None:
    """Imported whole, or refused with the file and the line, and nothing imported."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "rows.jsonl"
        lines = [json.dumps(base | odd).encode() for base, odd in rows]
        path.write_bytes(b"\n".join([*lines, tail]))
        said = imported(path, Path(folder) / "library.db")
        assert all("\n" not in line for line in said)


@settings(max_examples=80, deadline=None)
@given(st.binary(max_size=200))
@example(b'{"store": "memory", "confidence": 1' + b"0" * 5000 + b"}")
@example(b"[" * 10_000)
@example(b'{"a": 1, "a": NaN}')
def test_bytes_as_rows(data: bytes) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "rows.jsonl"
        path.write_bytes(data)
        imported(path, Path(folder) / "library.db")
