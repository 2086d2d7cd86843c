"""Tokens as character positions, exact and estimated."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from libraryfs.models.tokens import VOCABULARY, EstimatedTokens, FileTokens, Tokens

EXACT = FileTokens(VOCABULARY)
ESTIMATED = EstimatedTokens()
any_text = st.text(st.characters(exclude_categories=()), max_size=80)  # lone surrogates too


@pytest.mark.parametrize("tokens", [EXACT, ESTIMATED], ids=["exact", "estimated"])
@settings(deadline=None)  # the first one reads the file
@given(text=any_text)
def test_offsets_are_in_order_and_inside(tokens: Tokens, text: str) -> None:
    position = 0
    for start, end in tokens.offsets(text):
        assert 0 <= start <= end <= len(text)
        assert start >= position or end <= position  # accents folded apart share one place
        position = max(position, end)


def test_exact_offsets_point_at_words() -> None:
    text = "Hello wörld \ud800 unbelievable 東京"
    assert [text[start:end] for start, end in EXACT.offsets(text)][:3] == ["Hello", "wörld", "\ud800"]
    assert EXACT.marks == 2
    assert len(EXACT.offsets("word " * 1000)) == 1000  # neither cut nor padded, as its file would have it


@pytest.mark.parametrize(
    "text",
    [
        "We deploy on Tuesdays, after the change board has met and the release notes are written.",
        "def open(path: Path, *, write: bool = False) -> Snapshot: raise SnapshotMissing(path)",
        "Die Donaudampfschifffahrtsgesellschaft veröffentlichte gestern ihren Geschäftsbericht.",
        "部署在星期二进行。変更委員会の後です。",
        "https://example.org/a/b?c=1234567890&d=0xdeadbeef",
    ],
)
def test_the_estimate_is_not_below_the_truth(text: str) -> None:
    assert ESTIMATED.count(text) >= len(EXACT.offsets(text)) * 0.9
    assert ESTIMATED.count(text) == len(ESTIMATED.offsets(text))
