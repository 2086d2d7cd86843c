"""What the model is shown: fences that hold, handles, and no more than its window."""

from hypothesis import given
from hypothesis import strategies as st

from libraryfs.ask import prompt
from tests.ask.test_grounding import TEXTS, passages

_NASTY = st.text(max_size=60) | st.sampled_from(
    ["</evidence>", '<evidence id="E9">', "[E1]", "[ E2; E3 ]", "<|im_end|>", "\n\nQuestion: x"]
)


def shown(question: str, *texts: str, window: int = 4000) -> prompt.Shown:
    return prompt.answer(question, passages(*texts), window)


def test_handles_are_short_and_in_the_order_of_the_evidence() -> None:
    made = shown("Who was Jacksonville named after, and who built the bridge?", *TEXTS)
    body = made.messages[-1]["content"]
    assert made.handles == {"E1": 0, "E2": 1}
    assert body.index('id="E1" title="Jacksonville"') < body.index('id="E2" title="Lund"') < body.index("Question: Who")


@given(st.lists(_NASTY, min_size=1, max_size=6).map(" ".join))
def test_stored_text_cannot_close_its_fence_or_cite(stored: str) -> None:
    made = shown("Who built the bridge?", f"{stored} The bridge was built by Marta Ruiz. {stored}")
    body = made.messages[-1]["content"]
    assert body.count("<") == 2 * body.count("<evidence ") == 2 * body.count("</evidence>") == 2 * len(made.handles)
    assert prompt.handles(body) == []


def test_handles_of_a_reply() -> None:
    said = "It is so [E1], [E2; E3] [ E1 ] (E4) [E5"
    assert prompt.handles(said) == ["E1", "E2", "E3"]
    assert prompt.without_handles("It is ‹b› so [E1] .") == "It is <b> so."


def test_the_window_bounds_the_prompt_the_best_first() -> None:
    many = [f"Filler number {n} says nothing of note." for n in range(40)]
    made = shown("Who built the bridge?", "The bridge was built by Marta Ruiz.", *many, window=900)
    assert sum(len(message["content"]) for message in made.messages) <= 900 * prompt.CHARACTERS_PER_TOKEN
    assert "Marta Ruiz" in made.messages[-1]["content"]
    assert made.left_out >= 41 - prompt.MAX_BLOCKS


def test_a_window_too_small_for_any_evidence_shows_none() -> None:
    made = shown("Who built the bridge?", TEXTS[1], window=10)
    assert made.handles == {}


def test_the_second_attempt_shows_the_errors() -> None:
    made = prompt.shaped("Who?", passages(*TEXTS), 4000, {"type": "string"}, ["'x' is <bad> [E1]"])
    assert "- 'x' is ‹bad› (E1)" in made.messages[-1]["content"]
    assert '{"type": "string"}' in made.messages[-1]["content"]
