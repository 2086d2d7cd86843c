"""The claim check: what it lets through, and what it stops."""

import pytest

from libraryfs.ask import grounding
from libraryfs.ask.evidence import Evidence
from libraryfs.ask.passages import Passage, of_text

TEXTS = (
    "Jacksonville was founded in 1822. It was named after Andrew Jackson, the first governor. It has 8,646 streets. "
    "The river does not freeze.",
    "The bridge at Lund was built by Marta Ruiz. It is 340 metres long and opened on 3 May 1987.",
)


def passages(*texts: str) -> list[Passage]:
    return [
        of_text(
            Evidence(
                id=f"m{number}",
                path=f"/ring/a/skills/m{number}.md",
                score=1.0,
                origin="vector",
                excerpt=text,
                superseded_by=None,
                title=("Jacksonville", "Lund")[number % 2],
                ino=number,
                namespace_id=1,
            ),
            text,
        )
        for number, text in enumerate(texts)
    ]


@pytest.mark.parametrize(
    ("question", "claim", "where"),
    [
        ("Who was Jacksonville named after?", "Jacksonville was named after Andrew Jackson.", 0),
        ("Who was Jacksonville named after?", "Andrew Jackson", 0),
        ("How many streets are there?", "There are 8646 streets.", 0),
        ("When was it founded?", "1822", 0),
        ("Who built the bridge at Lund?", "It was Marta Ruiz who built it.", 1),
        ("When did it open?", "The bridge opened on 3 May 1987.", 1),
        ("Does the river freeze?", "No, the river does not freeze.", 0),
    ],
)
def test_supported(question: str, claim: str, where: int) -> None:
    found = grounding.support(claim, question, passages(*TEXTS))
    assert found is not None
    assert found.passage == where


@pytest.mark.parametrize(
    ("question", "claim"),
    [
        ("Who was Jacksonville named after?", "Jacksonville was named after Marta Ruiz."),  # from two files
        ("Who was Jacksonville named after?", "Jacksonville was named after Andrew Johnson."),
        ("Who was Jacksonville named after?", "Who was Jacksonville named after?"),
        ("When was it founded?", "It was founded in 1823."),
        ("How many streets are there?", "There are 8,647 streets."),
        ("Does the river freeze?", "The river does freeze each winter."),
        ("Who built the bridge?", "The bridge was not built by Marta Ruiz."),
        ("How long is it?", "It is 340 metres long and 20 metres wide."),
        ("What is it made of?", "It is made of steel and local granite."),
        ("Is it open?", "Yes."),
        ("Is it open?", ""),
        ("Is it open?", "🙂"),
    ],
)
def test_not_supported(question: str, claim: str) -> None:
    assert grounding.support(claim, question, passages(*TEXTS)) is None


def test_the_cited_file_goes_first() -> None:
    twice = passages(TEXTS[1], "x " + TEXTS[1])
    for cited in (0, 1):
        found = grounding.support("It was Marta Ruiz.", "Who built it?", twice, [cited])
        assert found is not None
        assert found.passage == cited


def test_the_quote_is_the_sentences_as_they_stand() -> None:
    (passage,) = passages("One is\n  here. Two is   there. Three.")
    assert passage.quote(0, 2) == "One is\n  here. Two is   there."


@pytest.mark.parametrize(
    ("question", "value", "held"),
    [
        ("Whom is Jacksonville named after?", "Andrew Jackson", True),
        ("When was Jacksonville founded?", "1822", True),
        ("How many streets are there?", "8646", True),
        ("How many streets are in Jacksonville?", "Andrew Ruiz", False),
        ("When was Jacksonville founded?", "1823", False),
        ("When was Jacksonville founded?", "…", False),
        ("How many bits has an inode number?", "340", False),
        ("How long is the bridge?", "340", True),
        ("How many?", "340", True),
    ],
)
def test_values_of_a_shape(question: str, value: str, held: bool) -> None:
    """The figure must stand where the texts speak of what was asked."""
    assert (grounding.holds(value, question, passages(*TEXTS)) is not None) == held


def test_a_script_without_spaces() -> None:
    text = "我们每周二部署。需要两个人批准。"
    found = grounding.support("周二部署", "我们什么时候部署？", passages(text))
    assert found is not None
    assert grounding.support("周四部署", "我们什么时候部署？", passages(text)) is None
