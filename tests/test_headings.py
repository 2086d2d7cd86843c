import pytest

from libraryfs import headings


@pytest.mark.parametrize(
    ("text", "title", "others"),
    [
        ("# Top\n\nText.\n\n## Sub ##\n", "Top", ["Sub"]),
        ("> A note first.\n\n# Top\n\n## Sub\n", "Top", ["Sub"]),
        ("# One\n\n# Two\n", "", ["One", "Two"]),
        ("## Summary\n\n## More\n", "", ["Summary", "More"]),
        ("---\ntitle: x\n---\nTop\n===\n\nSub\n---\n", "Top", ["Sub"]),
        ("=====\nTop\n=====\n\nText\n\nSub\n~~~\n", "Top", ["Sub"]),
        ("= Top\n\n== Sub\n", "Top", ["Sub"]),
        ("#+TITLE: Top\n* Sub\n** Below\n", "", ["Top", "Sub", "Below"]),
        ("# Top\n\n```sh\n# a comment\n```\n", "Top", []),
        ("* a list\n* of two\n", "", []),
        ("No heading at all.\n", "", []),
        ("", "", []),
        ("# " + "x" * 300, "", []),
        ("# Top\r\n\r\n## Sub\r\n", "Top", ["Sub"]),
    ],
)
def test_headings(text: str, title: str, others: list[str]) -> None:
    assert headings.find(text) == (title, others)
