"""Somebody else's regular expressions: what matches, what is refused, and that no pattern takes long."""

import pytest

from libraryfs.patterns import searcher


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("b", "abc", True),
        ("^b", "abc", False),
        (r"^\d{4}-\d{2}$", "2026-11", True),
        (r"^\d$", "٣", False),  # ECMA-262: 0 to 9
        ("^a$", "a\n", False),  # and `$` is the end
        (r"^\u00e9+$", "éé", True),
        (r"^\\u00e9$", r"\u00e9", True),
        (r"^\p{Lu}", "Élan", True),
        ("a|", "\ud800", True),  # text that is not valid Unicode is searched too
        ("^(([A-Za-z -]+)+)+$", "a" * 60_000 + "!", False),
        ("(a*)*b", "a" * 60_000, False),
    ],
)
def test_found(pattern: str, text: str, found: bool) -> None:
    assert searcher(pattern)(text) is found


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("(", "missing )"),
        ("(?=a)b", "look-around and back references are not to be had"),
        (r"(a)\1", "look-around and back references are not to be had"),
        ("a{5000}", "invalid repetition size"),
        ("(a{1000}){1000}", "invalid repetition size"),
        ("\ud800", "not valid Unicode"),
    ],
)
def test_refused(pattern: str, said: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        searcher(pattern)
    assert said in str(caught.value)
