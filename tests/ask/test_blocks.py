"""Text to blocks: what belongs together stays together, and what answers nothing is none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libraryfs.ask.blocks import MAX_WORDS, blocks
from libraryfs.ask.sentences import words


def texts(source: str, name: str = "") -> list[str]:
    return [" ".join(block.text(source).split()) for block in blocks(source, name)]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("One line\nand its end.\n\nAnother.", ["One line and its end.", "Another."]),
        ("# Head\n\nText.\n\n## Empty\n\n## Other\n", ["Text."]),
        ("A triager is active if they:\n\n- review\n- merge\n", ["A triager is active if they: - review - merge"]),
        ("Run this:\n\n```sh\nmake all\n```\nThen wait.", ["Run this: ```sh make all ```", "Then wait."]),
        ("Run this\n\n    make all\n", ["Run this make all"]),
        ("It needs:\n\n# Next\n\nText.", ["Text."]),
        ("Good. It needs:\n\n# Next", ["Good."]),
        ("- [One](#one)\n- [Two](#two)\n\n# One\n\nText.", ["Text."]),
        ("<!-- toc -->\n\nText.\n\n---\n", ["Text."]),
        ("![badge](x.png)\n\nText.", ["Text."]),
        ("**When?** On Tuesdays.", ["On Tuesdays."]),
        ("- When do we deploy?\n- Who approves?\n", ["- When do we deploy? - Who approves?"]),
        ("", []),
        ("\n# Only a heading\n", []),
    ],
)
def test_blocks(source: str, expected: list[str]) -> None:
    assert texts(source) == expected


def test_headings_and_questions_caption_what_follows() -> None:
    source = (
        "# Guide\n\n## Install\n\n### Linux\n\nUse apt.\n\n### macOS\n\nUse brew.\n\n## FAQ\n\nDoes it work?\n\nYes.\n"
    )
    assert [block.headings for block in blocks(source)] == [
        ("Guide", "Install", "Linux"),
        ("Guide", "Install", "macOS"),
        ("Guide", "FAQ", "Does it work?"),
    ]


def test_a_long_list_is_cut_between_items_each_part_with_its_lead_in() -> None:
    source = "The sections are:\n\n" + "\n".join(
        f"- section {n} holds what is about {n}, and no more" for n in range(40)
    )
    found = blocks(source)
    assert len(found) > 3
    assert all(block.text(source).startswith("The sections are:\n") for block in found)
    assert all(source[block.start] == "-" for block in found)
    assert sum(block.text(source).count("\n- ") + 1 for block in found) >= 40


def test_a_row_of_a_large_table_comes_with_the_header() -> None:
    rows = "\n".join(f"| key{n} | value {n} |" for n in range(400))
    source = f"| Key | Value |\n|---|---|\n{rows}\n"
    found = blocks(source)
    assert len(found) == 400
    assert found[37].text(source) == "| Key | Value |\n|---|---|\n| key37 | value 37 |"
    assert all("key" in source[block.start : block.end] for block in found)


def test_a_csv_file_is_a_table_and_a_program_is_code() -> None:
    source = "name,port\n" + "".join(f"host{n},{n}\n" for n in range(9))
    assert blocks(source, "hosts.csv")[3].text(source) == "name,port\nhost3,3"
    (only,) = blocks("# not a heading\nport = 1\n", "set.py")
    assert (only.kind, only.headings) == ("code", ())


def test_front_matter_is_facts() -> None:
    found = blocks("---\ntitle: x\nstatus: accepted\n---\n# x\n\nText.\n")
    assert [block.kind for block in found] == ["facts", "paragraph"]


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("a.rst", "Title\n=====\n\nInstall\n-------\n\nRun this::\n\n  make all\n\n* one\n* two\n"),
        (
            "a.org",
            "* Title\n** Install\nRun this:\n#+BEGIN_SRC sh\nmake all\n#+END_SRC\n\n- one\n- two\n",
        ),
        ("a.adoc", "= Title\n\n== Install\n\nRun this:\n\n----\nmake all\n----\n\n* one\n* two\n"),
        ("a.md", "Title\n=====\n\nInstall\n-------\n\nRun this:\n\n    make all\n\n* one\n* two\n"),
    ],
)
def test_every_light_markup_gives_the_same_blocks(name: str, source: str) -> None:
    found = blocks(source, name)
    assert [block.headings[-2:] for block in found] == [("Title", "Install")] * 2
    assert "make all" in found[0].text(source)
    assert "Run this" in found[0].text(source)
    assert found[1].kind == "list"


def test_a_simple_table_of_restructured_text() -> None:
    source = "Sizes\n=====\n\n====  =====\nName  Bytes\n====  =====\na     12\nb     13\n====  =====\n"
    (found,) = blocks(source, "x.rst")
    assert found.kind == "table"
    assert "b     13" in found.text(source)


_LINES = st.sampled_from(
    [
        "# a",
        "text one.",
        "- item",
        "  more",
        "```",
        "| a | b |",
        "|---|---|",
        "> q",
        "",
        "",
        "x:",
        "1. one",
        "\ta",
        "<b>",
        "====",
        ".. note::",
        "* b",
        "ü\r",
    ]
)
_NAMES = st.sampled_from(["", "a.rst", "a.org", "a.adoc"])


@given(st.lists(_LINES, max_size=30).map("\n".join) | st.text(max_size=200), _NAMES)
def test_blocks_are_verbatim_in_order_and_short(source: str, name: str) -> None:
    for block in blocks(source, name):
        assert 0 <= block.start < block.end <= len(source)
        assert source[block.start : block.end].strip() == source[block.start : block.end]
        assert all(source[start:end] for start, end in block.spans(source))
        assert words(block.text(source)) <= MAX_WORDS + 40
