"""Front matter: what is read, what is metadata, and what is refused with file and line."""

import json
from contextlib import suppress

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from libraryfs.errors import InvalidSource
from libraryfs.ingest.front_matter import HEAD_BYTES, FrontMatter, read
from libraryfs.rows import iso


def front(text: str) -> FrontMatter:
    return read(f"---\n{text}\n---\nBody.\n".encode(), "a.md")


def test_fields_and_metadata() -> None:
    found = front(
        "title: Deploys\nid: d-7\nmemory_type: procedural\nconfidence: 0.75\ncreated: 2024-02-29\n"
        "updated: 2024-03-01T10:00:00+02:00\nsupersedes: d-6\nderives_from: [a, b, a]\nstatus: accepted\n"
        "tags: [x, 1, 2.5]"
    )
    assert found == FrontMatter(
        title="Deploys",
        id="d-7",
        memory_type="procedural",
        confidence=0.75,
        created_ns=found.created_ns,
        updated_ns=found.updated_ns,
        supersedes=("d-6",),
        derives_from=("a", "b"),
        metadata={"status": "accepted", "tags": ["x", 1, 2.5]},
    )
    assert found.created_ns is not None
    assert found.updated_ns is not None
    assert iso(found.created_ns) == "2024-02-29T00:00:00Z"
    assert iso(found.updated_ns) == "2024-03-01T08:00:00Z"


@pytest.mark.parametrize(
    ("written", "kept"),
    [("0012", "0012"), ("1.10", "1.10"), ("2024-01-01", "2024-01-01"), ("yes", "yes"), ("'a: b'", "a: b")],
)
def test_ids_and_titles_are_taken_as_written(written: str, kept: str) -> None:
    found = front(f"id: {written}\ntitle: {written}\nsupersedes: [{written}]")
    assert (found.id, found.title, found.supersedes) == (kept, kept, (kept,))


def test_keys_are_json_words_not_python_ones() -> None:
    assert front("~: 1\nyes: {no: 2}\n7: 3").metadata == {"null": 1, "true": {"false": 2}, "7": 3}


@pytest.mark.parametrize(
    "empty", ["title:", "title: ~", "title: ''", "supersedes: []", "supersedes:", "", "# only a comment"]
)
def test_empty_values_say_nothing(empty: str) -> None:
    found = front(empty)
    assert (found.title, found.supersedes) == (None, ())


@pytest.mark.parametrize(
    ("written", "time"),
    [
        ("26-Oct-2000", "2000-10-26T00:00:00Z"),
        ("9 Jun 2021", "2021-06-09T00:00:00Z"),
        ("2020-01-01 12:30", "2020-01-01T12:30:00Z"),
    ],
)
def test_dates_as_people_write_them(written: str, time: str) -> None:
    found = front(f"created: {written}")
    assert found.created_ns is not None
    assert iso(found.created_ns) == time
    assert found.metadata == {}


@pytest.mark.parametrize("written", ["soon", "1066-10-14", "31-Feb-2020", "12", "[2020-01-01]"])
def test_what_is_no_time_stays_as_metadata(written: str) -> None:
    found = front(f"created: {written}")
    assert found.created_ns is None
    assert "created" in found.metadata


@pytest.mark.parametrize(
    "content",
    [
        b"# No front matter\n",
        b"",
        b"---\n",
        b"---\nNo second line of dashes.\n",
        b"----\ntitle: four dashes are a rule\n----\n",
        b"---\nA text between two rules.\n---\n",
        b"---\n- a list\n---\n",
        b"text\n---\ntitle: not at the head\n---\n",
    ],
)
def test_what_is_not_front_matter(content: bytes) -> None:
    assert read(content, "a.md") == FrontMatter()


@pytest.mark.parametrize(
    "head", [b"\xef\xbb\xbf---\r\ntitle: T\r\n---\r\nx", b"--- \ntitle: T\n...\n", b"---\ntitle: T\n---"]
)
def test_byte_order_mark_crlf_and_other_ends(head: bytes) -> None:
    assert read(head, "a.md").title == "T"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("title: a: b", 2),
        ("ok: 1\ntitle: [open", 3),
        ("a: 1\n\tb: 2", 3),
        ("a: 1\nb: !!python/object:os.system x", 3),
        ("ok: 1\n? [1]\n: 2", 3),
        ("id: [1, 2]", 2),
        ("ok: 1\nconfidence: high", 3),
        ("confidence: 1.5", 2),
        ("supersedes: {a: b}", 2),
        ("supersedes: [[a]]", 2),
        ('id: "a\\nb"', 2),
        ("a: " + "[" * 5000, 2),
        ("date: 2020-02-30", 2),
        ("n: " + "9" * 5000, 2),
        ("a: &a [*a]", 1),
        ("a: &a [" + "1," * 200 + "]\nb: &b [" + "*a," * 200 + "]\nc: [" + "*b," * 200 + "]", 1),
    ],
)
def test_malformed_front_matter_names_file_and_line(text: str, line: int) -> None:
    with pytest.raises(InvalidSource, match=rf"^a\.md:{line}: ") as caught:
        front(text)
    assert "\n" not in str(caught.value)
    assert "Value error" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_front_matter_that_is_not_utf8() -> None:
    with pytest.raises(InvalidSource, match=r"^a\.md:3: front matter is not UTF-8"):
        read(b"---\nok: 1\ntitle: caf\xe9\n---\n", "a.md")


def test_front_matter_without_end_in_a_long_file() -> None:
    with pytest.raises(InvalidSource, match="does not end within 64 KiB"):
        read(b"---\n" + b"key: value\n" * 10_000, "a.md"[:HEAD_BYTES])


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.dates() | st.datetimes()


letters = st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp"))
keys = st.text(letters, max_size=10).map("x{}".format)


@given(st.dictionaries(keys, scalars | st.lists(scalars, max_size=3), max_size=5))
def test_whatever_yaml_holds_becomes_json(value: dict[str, object]) -> None:
    found = front(yaml.safe_dump(value, allow_unicode=True))
    assert found.metadata.keys() == value.keys()
    assert json.loads(json.dumps(found.metadata, allow_nan=False)) == found.metadata


@given(st.binary(max_size=200))
def test_no_bytes_break_the_reading(content: bytes) -> None:
    for head in (content, b"---\n" + content + b"\n---\n"):
        with suppress(InvalidSource):
            read(head, "a.md")
