from hypothesis import given
from hypothesis import strategies as st

from libraryfs.paths import CONTROL_NAMES, MAX_SEGMENT_BYTES, SECTIONS
from libraryfs.store import inodes, names

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
