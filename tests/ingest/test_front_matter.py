"""Front matter: what is read, what is metadata, and what is told with its line."""

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from libraryfs.ingest.front_matter import FrontMatter, Reading, read
from libraryfs.rows import iso


def reading(text: str) -> Reading:
    return read(f"---\n{text}\n---\nBody.\n")


def front(text: str) -> FrontMatter:
    found = reading(text)
    assert found.remarks == ()
    return found.front


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
        values=found.values,
    )
    assert found.values == found.metadata | {
        "title": "Deploys",
        "id": "d-7",
        "memory_type": "procedural",
        "confidence": 0.75,
        "supersedes": "d-6",
        "created": "2024-02-29",
        "updated": "2024-03-01T10:00:00+02:00",
        "derives_from": ["a", "b", "a"],
    }
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
        "# No front matter\n",
        "",
        "---\n",
        "---\nNo second line of dashes.\n",
        "----\ntitle: four dashes are a rule\n----\n",
        "text\n---\ntitle: not at the head\n---\n",
        "+++\nNo second line of signs.\n",
        '{"one": "line"}\ntext\n',
        "{\n}\n",
        "{{< shortcode >}}\ntext\n",
    ],
)
def test_what_is_not_front_matter(content: str) -> None:
    assert read(content) == Reading(FrontMatter(), 0, ())


@pytest.mark.parametrize("content", ["---\nA text between two rules.\n---\n", "---\n- a list\n---\n"])
def test_a_text_between_two_rules_is_told(content: str) -> None:
    found = read(content)
    assert found.front == FrontMatter()
    assert found.remarks[0].text.startswith("a text between two lines of dashes")


@pytest.mark.parametrize("head", ["\ufeff---\r\ntitle: T\r\n---\r\nx", "--- \ntitle: T\n...\n", "---\ntitle: T\n---"])
def test_byte_order_mark_crlf_and_other_ends(head: str) -> None:
    assert read(head).front.title == "T"


@pytest.mark.parametrize(
    "head",
    [
        '+++\ntitle = "T"\nid = "x"\ndate = 2024-01-01\ntags = ["a"]\nsupersedes = ["y"]\n+++\nText\n',
        '{\n "title": "T", "id": "x",\n "date": "2024-01-01", "tags": ["a"], "supersedes": ["y"]\n}\n\nText\n',
    ],
)
def test_toml_and_json(head: str) -> None:
    found = read(head)
    assert found.remarks == ()
    assert (found.front.title, found.front.id, found.front.supersedes) == ("T", "x", ("y",))
    assert found.front.metadata == {"date": "2024-01-01", "tags": ["a"]}
    assert head[found.end :].strip() == "Text"


def test_toml_that_cannot_be_read_names_the_line() -> None:
    (remark,) = read('+++\ntitle = "T"\ndate = soon\n+++\nText\n').remarks
    assert remark.line == 3
    assert remark.text.startswith("front matter is not TOML: ")


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
        ("a: &a [*a]", 2),
        ("a: &a [" + "1," * 200 + "]\nb: &b [" + "*a," * 200 + "]\nc: [" + "*b," * 200 + "]", 2),
    ],
)
def test_what_cannot_be_read_is_told_with_its_line(text: str, line: int) -> None:
    (remark, *_) = reading(text).remarks
    assert remark.line == line
    assert "\n" not in remark.text
    assert "Value error" not in remark.text
    assert len(remark.text) < 400


def test_one_wrong_field_leaves_the_others() -> None:
    found = reading("title: [a, b]\nid: x\nconfidence: 95\nstatus: kept")
    assert (found.front.title, found.front.id, found.front.confidence) == (None, "x", None)
    assert found.front.metadata == {"title": ["a", "b"], "confidence": 95, "status": "kept"}
    assert [remark.line for remark in found.remarks] == [2, 4]


def test_a_second_block_is_told_and_not_read() -> None:
    found = read("---\na: 1\n---\n---\nb: 2\n---\n# Text\n")
    assert found.front.metadata == {"a": 1}
    assert found.remarks[0].line == 4


def test_front_matter_without_end_in_a_long_file() -> None:
    (remark,) = read("---\n" + "key: value\n" * 10_000).remarks
    assert "does not end within 64 KiB" in remark.text


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.dates() | st.datetimes()


letters = st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp"))
keys = st.text(letters, max_size=10).map("x{}".format)


@given(st.dictionaries(keys, scalars | st.lists(scalars, max_size=3), max_size=5))
def test_whatever_yaml_holds_becomes_json(value: dict[str, object]) -> None:
    found = front(yaml.safe_dump(value, allow_unicode=True))
    assert found.metadata.keys() == value.keys()
    assert json.loads(json.dumps(found.metadata, allow_nan=False)) == found.metadata


@given(st.text(max_size=200))
def test_no_text_breaks_the_reading(content: str) -> None:
    for head in (content, f"---\n{content}\n---\n", f"+++\n{content}\n+++\n", f"{{\n{content}\n}}\nText"):
        json.dumps(read(head).front.values, allow_nan=False)
