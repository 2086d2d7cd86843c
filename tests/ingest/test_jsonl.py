"""`.jsonl` rows: what is taken, and what is refused with the line's number and nothing imported."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from libraryfs.errors import InvalidSource
from libraryfs.store import access
from libraryfs.store.snapshot import Snapshot
from tests.ingest.conftest import Importing
from tests.ingest.shown import attributes, files

MEMORY = {
    "store": "memory",
    "namespace": "/ring/dev",
    "id": "m1",
    "memory_type": "skill",
    "title": "One",
    "content": "1",
}
EDGE = {"store": "edge", "namespace": "/ring/dev", "source": "m1", "kind": "supersedes", "target": "m0"}


def rows(path: Path, *lines: dict[str, Any] | str) -> Path:
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    return path


def part(data: bytes) -> dict[str, str]:
    return {"store": "part", "content_base64": base64.b64encode(data).decode()}


def test_all_kinds_of_rows(tmp_path: Path, snapshot: Snapshot, bring: Importing) -> None:
    source = rows(
        tmp_path / "a.jsonl",
        {"store": "grant", "principal": "carol", "path": "/ring/dev"},
        {"store": "namespace", "path": "/agent/empty"},
        EDGE,
        MEMORY,
        MEMORY | {"id": "m0", "title": "Zero", "confidence": 0.5, "metadata": {"k": [1]}, "created_at": "2020-01-01"},
        "",
        MEMORY | {"namespace": "/agent/ada", "memory_type": "unheard-of"},
        {
            "store": "workspace",
            "namespace": "/ring/dev",
            "id": "w2",
            "parent_id": "w1",
            "name": "a/b",
            "content": "item",
        },
        {"store": "workspace", "namespace": "/ring/dev", "id": "w1", "folder": True, "name": "dir"},
        {"store": "artifact", "namespace": "/ring/dev", "id": "a1", "filename": "x/y.bin"} | {"content_base64": "AP8="},
        part(b"more"),
        part(b""),
        part(b"!"),
    )
    report = bring(source, None)
    assert (report.added, report.edges) == (6, 1)
    assert sorted(report.namespaces) == ["/agent/ada", "/agent/empty", "/ring/dev"]
    shown = files(snapshot)
    assert sorted(shown.values()) == sorted([b"1", b"1", b"1", b"item", b"\x00\xffmore!"])
    assert shown["/ring/dev/artifacts/x/y.bin"] == b"\x00\xffmore!"
    assert shown["/agent/ada/memory/one.md"] == b"1"
    zero = attributes(snapshot, "/ring/dev/skills/zero.md")
    assert (zero["superseded_by"], zero["confidence"], zero["k"]) == ("m1", "0.5", "[1]")
    granted = {(who, where.path) for who, where in access.every(snapshot.db)}
    assert granted == {("carol", "/ring/dev")} | {("alice", path) for path in report.namespaces}
    assert bring(source, None).unchanged == 6


def test_a_type_that_nobody_knows_is_shown_in_memories(tmp_path: Path, snapshot: Snapshot, bring: Importing) -> None:
    bring(rows(tmp_path / "a.jsonl", MEMORY | {"memory_type": "unheard-of"}), None)
    assert set(files(snapshot)) == {"/ring/dev/memories/one.md"}
    assert attributes(snapshot, "/ring/dev/memories/one.md")["type"] == "unheard-of"


def test_rows_take_the_namespace_of_the_import(tmp_path: Path, snapshot: Snapshot, bring: Importing) -> None:
    bare = {key: value for key, value in MEMORY.items() if key != "namespace"}
    bring(
        rows(tmp_path / "a.jsonl", bare, {key: value for key, value in EDGE.items() if key != "namespace"}),
        "/agent/ada",
    )
    assert set(files(snapshot)) == {"/agent/ada/memory/one.md"}
    assert attributes(snapshot, "/agent/ada/memory/one.md").get("supersedes") is not None


def test_a_gone_row_of_the_file_goes_with_its_edges(tmp_path: Path, snapshot: Snapshot, bring: Importing) -> None:
    two = MEMORY | {"id": "m2", "namespace": "/ring/ops"}
    bring(rows(tmp_path / "a.jsonl", MEMORY, two, EDGE), None)
    report = bring(rows(tmp_path / "a.jsonl", MEMORY), None)
    assert (report.removed, report.unchanged, report.edges) == (1, 1, 0)
    assert set(files(snapshot)) == {"/ring/dev/skills/one.md"}


def test_an_edge_to_another_ring_grants_nothing_there(tmp_path: Path, snapshot: Snapshot, bring: Importing) -> None:
    secret = tmp_path / "secret.jsonl"
    bring(rows(secret, MEMORY | {"namespace": "/ring/secret"}), None, "owner")
    report = bring(
        rows(tmp_path / "a.jsonl", MEMORY, EDGE | {"target": "m1", "target_namespace": "/ring/secret"}), None
    )
    assert report.namespaces == ["/ring/dev"]
    assert set(files(snapshot)) == {"/ring/dev/skills/one.md"}
    assert "supersedes" not in attributes(snapshot, "/ring/dev/skills/one.md")


WRONG = [
    ('{"store": "memory"', "not JSON: Expecting ',' delimiter at column 19"),
    ("nonsense", "not JSON: "),
    ("[1]", "not a JSON object"),
    ("null", "not a JSON object"),
    ('{"a": NaN}', "not JSON: NaN is not a JSON number"),
    ("[" * 100_000, "not JSON: "),
    ("{}", "store: must be one of namespace, memory"),
    ({"store": "shelf"}, "store: must be one of namespace, memory"),
    ({"store": "memory"}, "namespace: Field required"),
    (MEMORY | {"id": ""}, "id: String should have at least 1 character"),
    (MEMORY | {"id": "a\nb"}, "id: an id holds no control characters"),
    (MEMORY | {"id": "a\ud800"}, "id: Input should be a valid string"),
    (MEMORY | {"memory_type": "a\ud800"}, "memory_type: Input should be a valid string"),
    (MEMORY | {"namespace": "/ring"}, "namespace: '/ring"),
    (MEMORY | {"namespace": "/ring/.ask"}, "namespace: '.ask' is"),
    (MEMORY | {"titel": "x"}, "titel: Extra inputs are not permitted"),
    (MEMORY | {"confidence": 2}, "confidence: Input should be less than or equal to 1"),
    (MEMORY | {"metadata": "x"}, "metadata: Input should be a valid dictionary"),
    (MEMORY | {"created_at": "yesterday"}, "created_at: a time is ISO 8601 text or a number of seconds"),
    (MEMORY | {"updated_at": 1e300}, "updated_at: a time lies between"),
    ('{"store": "memory", "updated_at": 1e999}', "1e999 is not a finite number"),
    (MEMORY | {"content_base64": "AAAA"}, "give content or content_base64, not both"),
    (MEMORY | {"content": None, "content_base64": "?"}, "content_base64: "),
    (part(b"x"), "a part follows a memory, an item or an artifact"),
    (
        {"store": "workspace", "namespace": "/agent/ada", "id": "w", "name": "x"},
        "an agent has memory only, no workspace",
    ),
    (
        {"store": "artifact", "namespace": "/agent/ada", "id": "w", "filename": "x"},
        "an agent has memory only, no artifact",
    ),
    (
        {"store": "workspace", "namespace": "/ring/dev", "id": "w", "name": "x", "folder": True, "content": "x"},
        "no content",
    ),
    (MEMORY | {"title": "again"}, "has the id of"),
    (EDGE | {"kind": ""}, "kind: String should have at least 1 character"),
    ({"store": "grant", "principal": "", "path": "/ring/dev"}, "principal: '': a principal is a name"),
    ({"store": "grant", "principal": "a\nb", "path": "/ring/dev"}, "a principal is a name"),
]


@pytest.mark.parametrize(("line", "message"), WRONG, ids=[str(number) for number in range(len(WRONG))])
def test_a_wrong_line_is_named_and_nothing_imported(
    tmp_path: Path, snapshot: Snapshot, bring: Importing, line: dict[str, Any] | str, message: str
) -> None:
    bring(rows(tmp_path / "first.jsonl", MEMORY | {"id": "before"}), None)
    before = files(snapshot)
    first: dict[str, Any] | str = "" if line == WRONG[23][0] else MEMORY
    with pytest.raises(InvalidSource) as caught:
        bring(rows(tmp_path / "a.jsonl", first, "", line, MEMORY | {"id": "after"}), None)
    text = str(caught.value)
    assert text.startswith(f"{tmp_path / 'a.jsonl'}:3: ")
    assert message in text
    assert text.endswith("Nothing was imported")
    assert "\n" not in text
    assert len(text) < 500
    assert files(snapshot) == before


def test_a_part_of_a_folder_or_a_broken_part(tmp_path: Path, bring: Importing) -> None:
    folder = {"store": "workspace", "namespace": "/ring/dev", "id": "w", "name": "x", "folder": True}
    with pytest.raises(InvalidSource, match=r":2: a folder has no content"):
        bring(rows(tmp_path / "a.jsonl", folder, part(b"x")), None)
    with pytest.raises(InvalidSource, match=r":3: content_base64"):
        bring(rows(tmp_path / "a.jsonl", MEMORY, part(b"x"), {"store": "part", "content_base64": "A"}), None)


def test_a_line_that_is_not_utf8_and_one_that_is_too_long(
    tmp_path: Path, bring: Importing, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "a.jsonl"
    source.write_bytes(json.dumps(MEMORY).encode() + b'\n{"store": "caf\xe9"}\n')
    with pytest.raises(InvalidSource, match=r":2: not UTF-8"):
        bring(source, None)
    monkeypatch.setattr("libraryfs.ingest.jsonl.MAX_LINE", 1000)
    with pytest.raises(InvalidSource, match=r":2: longer than .* part rows"):
        bring(rows(source, MEMORY, MEMORY | {"id": "m2", "content": "x" * 1000}), None)


def test_rows_of_another_ring_than_the_one_named(tmp_path: Path, bring: Importing) -> None:
    with pytest.raises(InvalidSource, match=r":1: is of /ring/dev, but the import is into /ring/ops"):
        bring(rows(tmp_path / "a.jsonl", MEMORY), "/ring/ops")


def test_a_large_content_in_parts(tmp_path: Path, snapshot: Snapshot, bring: Importing) -> None:
    pieces = [bytes([number]) * (100_000 + number) for number in range(7)]
    head = {"store": "artifact", "namespace": "/ring/dev", "id": "a", "filename": "big"}
    bring(rows(tmp_path / "a.jsonl", head, *map(part, pieces), MEMORY), None)
    assert files(snapshot)["/ring/dev/artifacts/big"] == b"".join(pieces)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
fields = st.sampled_from(
    ["store", "namespace", "id", "title", "content", "metadata", "parent_id", "path", "created_at", "name"]
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(
    lines=st.lists(
        st.binary(max_size=40)
        | st.dictionaries(fields, json_values | st.sampled_from(["memory", "workspace", "/ring/dev"]), max_size=4).map(
            lambda value: json.dumps(MEMORY | value).encode()
        ),
        max_size=4,
    )
)
def test_no_input_breaks_the_import(tmp_path: Path, snapshot: Snapshot, bring: Importing, lines: list[bytes]) -> None:
    source = tmp_path / "any.jsonl"
    source.write_bytes(b"\n".join(lines))
    before = files(snapshot)
    try:
        bring(source, None)
    except InvalidSource:
        assert files(snapshot) == before
