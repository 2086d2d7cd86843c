from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libraryfs.ingest.chunker import MAX_CHARACTERS, OVERLAP_TOKENS, TARGET_TOKENS, chunk
from tests.ask.fake_embedder import WordEmbedder

tokenize = WordEmbedder().offsets
SENTENCE = "The blue whale swims far out in the cold sea. "


def uneven(text: str) -> list[tuple[int, int]]:
    """Tokens that depend on where a text begins: pairs of characters, white space among them."""
    return [(at, min(at + 2, len(text))) for at in range(0, len(text), 2)]


@given(
    st.text(st.sampled_from("ab. \n!。漢字🐋é\t-"), max_size=600),
    st.integers(8, 90),
    st.sampled_from(["", "Title\n", "日本\n"]),
    st.sampled_from([tokenize, uneven]),
)
def test_everything_is_in_a_chunk_and_every_chunk_fits(text: str, window: int, prefix: str, tokens: object) -> None:
    assert callable(tokens)
    chunks = chunk(text, tokens, window, prefix)
    covered: set[int] = set()
    for one in chunks:
        body = text[one.start : one.end]
        assert body == body.strip() != ""
        assert len(tokens(prefix + body)) <= window
        covered.update(range(one.start, one.end))
    assert {at for at, char in enumerate(text) if not char.isspace()} <= covered
    assert chunks == sorted(chunks)


def test_cut_between_sentences_with_whole_sentences_repeated() -> None:
    text = SENTENCE * 60
    chunks = chunk(text, tokenize, 1000)
    assert len(chunks) > 3
    for one in chunks:
        body = text[one.start : one.end]
        assert body.startswith("The blue")
        assert body.endswith("sea.")
        assert TARGET_TOKENS * 0.8 < len(tokenize(body)) <= TARGET_TOKENS or one is chunks[-1]
    for before, after in pairwise(chunks):
        assert 0 < len(tokenize(text[after.start : before.end])) <= OVERLAP_TOKENS


def test_a_short_text_is_one_chunk_without_its_edges() -> None:
    assert chunk("\n\n  A cat. A dog.\n", tokenize, 100) == [(4, 17)]


@pytest.mark.parametrize("blank", ["", " \n\t", "\u3000"])
def test_blank_text_has_none(blank: str) -> None:
    assert chunk(blank, tokenize, 100) == []


def test_front_matter_is_apart() -> None:
    head = "---\nid: d1\ntitle: Deploys\n---\n"
    assert [(head + "We deploy.")[one.start : one.end] for one in chunk(head + "We deploy.", tokenize, 100)] == [
        head.strip(),
        "We deploy.",
    ]
    assert len(chunk("---\nno end of it\nWe deploy.", tokenize, 100)) == 1


def test_one_word_of_many_pages() -> None:
    text = "x" * 20_000
    chunks = chunk(text, tokenize, 50)
    assert chunks[0].start == 0
    assert chunks[-1].end == len(text)
    assert all(before.end == after.start for before, after in pairwise(chunks))


def test_no_chunk_is_long_although_it_has_few_tokens() -> None:
    text = "x" * 9000 + "\n" * 9000 + "short" + " " * 9000 + "." * 9000
    chunks = chunk(text, lambda body: [(0, len(body))] if body else [], 50)
    assert max(one.end - one.start for one in chunks) <= MAX_CHARACTERS
    covered = {at for one in chunks for at in range(one.start, one.end)}
    assert {at for at, char in enumerate(text) if not char.isspace()} <= covered


def test_a_prefix_that_fills_the_window_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="no room"):
        chunk("text", tokenize, 2, "one two three")
