import unicodedata
from pathlib import Path

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from libraryfs.paths import CONTROL_NAMES, MAX_SEGMENT_BYTES, SECTIONS
from libraryfs.store import inodes, names
from tests.store.build import Builder

RAW = st.binary(max_size=300)
ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=[]), max_size=120)


def is_segment(name: bytes) -> bool:
    control = {name.encode() for name in CONTROL_NAMES}
    return (
        0 < len(name) <= MAX_SEGMENT_BYTES
        and b"/" not in name
        and b"\0" not in name
        and name not in (b".", b"..", *control)
    )


@given(RAW)
def test_bytes_survive_being_text(raw: bytes) -> None:
    assert names.to_bytes(names.from_bytes(raw)) == raw


@given(ANY_TEXT)
def test_text_with_lone_surrogates_has_bytes(text: str) -> None:
    raw = names.to_bytes(text)
    assert names.to_bytes(names.from_bytes(raw)) == raw


@given(ANY_TEXT)
def test_a_slug_is_a_segment_in_utf8(title: str) -> None:
    slug = names.slug(title)
    assert is_segment(slug + b"~" + b"x" * 16 + b".md")
    assert not slug.startswith(b".")
    slug.decode()


@given(st.lists(ANY_TEXT.map(names.to_bytes) | RAW, max_size=12))
def test_shown_names_are_segments_and_differ(true_names: list[bytes]) -> None:
    shown: set[bytes] = set()
    for number, true_name in enumerate(true_names):
        name = names.shown_name(true_name, str(number), shown.__contains__)
        assert is_segment(name)
        assert name not in shown
        shown.add(name)


@given(ANY_TEXT.map(names.to_bytes) | RAW)
def test_a_shown_name_leads_back_to_the_true_one(true_name: bytes) -> None:
    name = names.shown_name(true_name, "id", lambda label: False)
    if len(name) < MAX_SEGMENT_BYTES:  # a longer one was cut; the attribute has it whole
        assert names.unmap(name) == true_name
    assert names.unmap(names.shown_name(name, "id", lambda label: False)) == name


def test_names_that_a_folder_can_hold_stay() -> None:
    for name in (
        b"plan.md",
        b".hidden",
        b"-dash",
        b"new\nline",
        "日本語 🎉".encode(),
        b"caf\xe9",
        b"a%2Fb",
        b"x" * 255,
    ):
        assert names.shown_name(name, "id", lambda label: False) == name


def test_equal_titles_get_distinct_names_and_order_does_not_matter() -> None:
    taken = {b"deploy.md"}
    first = names.memory_name("Deploy!", "id-1", taken.__contains__)
    second = names.memory_name("deploy", "id-2", taken.__contains__)
    assert first != second
    assert first.startswith(b"deploy~")
    assert first.endswith(b".md")


@given(st.text(max_size=50), st.sampled_from(["memory", "item", "artifact"]), ANY_TEXT)
def test_inode_numbers_fit_and_avoid_the_fixed_ones(namespace: str, store: str, key: str) -> None:
    ino = inodes.row_ino(f"/ring/{namespace}", store, key)
    assert 1 << inodes.ROW_BITS <= ino < 1 << inodes.ENTRY_BITS


def test_sections_are_numbered_in_listing_order() -> None:
    numbers = [inodes.section_ino("/ring/dev", section) for section in SECTIONS]
    assert numbers == sorted(set(numbers))


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("हिन्दी दस्तावेज", "हिन्दी-दस्तावेज"),
        ("कि", "कि"),
        ("की", "की"),
        ("ภาษาไทย ที่นี่", "ภาษาไทย-ที่นี่"),
        ("বাংলা", "বাংলা"),
        ("ខ្មែរ", "ខ្មែរ"),
        ("မြန်မာ", "မြန်မာ"),
        ("நிர்வாகி", "நிர்வாகி"),
        ("שָׁלוֹם", "שָׁלוֹם"),
        ("می‌خواهم", "می‌خواهم"),
        ("İstanbul", "istanbul"),
        ("Cafe\u0301 & Bar", "café-bar"),
        ("q\u0307 x", "q\u0307-x"),
        ("❤️ love 👩\u200d🚀 1️⃣", "love-1\u20e3"),
        ("\u0301 \u200d", "untitled"),
        ("_Über_ uns²", "über_-uns2"),
    ],
)
def test_vowel_signs_and_accents_stay_with_their_letters(title: str, name: str) -> None:
    assert names.slug(title).decode() == unicodedata.normalize("NFC", name)


@given(st.text(alphabet=st.sampled_from("कखि्ीाเท่ี้aé\u0301👩🏽\u200d🚀한글-. "), max_size=200), st.integers(1, 255))
def test_a_cut_keeps_what_a_reader_sees_as_one_character(text: str, size: int) -> None:
    """The part is a number of whole grapheme clusters, as many as fit; or one that is longer than a name, cut."""
    part = names.cut_name(text.encode(), size).decode()
    assert text.startswith(part)
    assert len(part.encode()) <= size
    clusters = regex.findall(r"\X", text)
    if clusters and len(clusters[0].encode()) <= size:
        fitting = [count for count in range(len(clusters) + 1) if len("".join(clusters[:count]).encode()) <= size]
        assert part == "".join(clusters[: fitting[-1]])


def test_names_that_were_given_are_kept(tmp_path: Path) -> None:
    """Also those that lost their vowel signs when they were given."""
    builder = Builder(tmp_path / "library.db")
    builder.memory("/ring/dev", "m1", title="की", content="a")
    with builder.snapshot.transaction() as db:
        db.execute("UPDATE entries SET name = ? WHERE name = ?", ("क.md".encode(), "की.md".encode()))
        assert db.changes() == 1
    builder.memory("/ring/dev", "m1", title="की", content="b")
    builder.memory("/ring/dev", "m2", title="की", content="c")
    names_now = {bytes(name) for (name,) in builder.db.execute("SELECT name FROM entries WHERE size = 1")}
    assert names_now == {"क.md".encode(), "की.md".encode()}
    builder.snapshot.close()
