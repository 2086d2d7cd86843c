"""Sentences in every script, with their places."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libraryfs.ask.fit import fit
from libraryfs.ask.sentences import split, words
from libraryfs.ask.terms import coverage, names, negated, numbers, terms, weights


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("It costs 3.5 euros. See e.g. Dr. No at St. Pauli.", ["It costs 3.5 euros.", "See e.g. Dr. No at St. Pauli."]),
        (
            "J. S. Bach wrote it. He said “Go.” Then he left.",
            ["J. S. Bach wrote it.", "He said “Go.”", "Then he left."],
        ),
        ("Am 3. Oktober war es. Danach kam 24. Das Ende.", ["Am 3. Oktober war es.", "Danach kam 24.", "Das Ende."]),
        ("A hard\nwrapped line. And\nmore.", ["A hard\nwrapped line.", "And\nmore."]),
        ("# Head\n\nText.\n- one\n- two. Three.\n1. four", ["Head", "Text.", "one", "two.", "Three.", "four"]),
        ("---\ntitle: x\n---\nBody here.", ["Body here."]),
        ("key: value\nother: thing\n", ["key: value", "other: thing"]),
        ("| a | b |\n| c | d |", ["| a | b |", "| c | d |"]),
        ("Do:\n```\nx = 1\ny = 2\n```\nDone.", ["Do:", "x = 1", "y = 2", "Done."]),
        ("我们周二部署。需要两个人！对吗？好", ["我们周二部署。", "需要两个人！", "对吗？", "好"]),
        ("火曜日にデプロイする。二人が承認する。", ["火曜日にデプロイする。", "二人が承認する。"]),
        ("यह पहला है। यह दूसरा है।", ["यह पहला है।", "यह दूसरा है।"]),
        ("هل ننشر الثلاثاء؟ نعم۔ حسنا.", ["هل ننشر الثلاثاء؟", "نعم۔", "حسنا."]),
        ("ማክሰኞ እናሰማራለን። ሁለት ሰዎች።", ["ማክሰኞ እናሰማራለን።", "ሁለት ሰዎች።"]),
        ("យើងដាក់ពង្រាយ។ ពីរនាក់។", ["យើងដាក់ពង្រាយ។", "ពីរនាក់។"]),
        ("အင်္ဂါနေ့။ နှစ်ယောက်။", ["အင်္ဂါနေ့။", "နှစ်ယောက်။"]),
        ("Мы выпускаем. Двое проверяют.", ["Мы выпускаем.", "Двое проверяют."]),
        ("", []),
        ("\n\n---\n***\n… !\n", []),
    ],
)
def test_split(text: str, expected: list[str]) -> None:
    found = split(text)
    assert [sentence.text for sentence in found] == expected
    assert all(text[sentence.start : sentence.end] == sentence.text for sentence in found)


@given(st.text(alphabet="aB1 .!?\n-#|`。। \t:,\ud800\U0001f600", max_size=120) | st.text(max_size=120))
def test_nothing_with_a_letter_is_lost_and_nothing_is_there_twice(text: str) -> None:
    found = split(text)
    assert all(left.end <= right.start for left, right in pairwise(found))
    assert all(sentence.text == text[sentence.start : sentence.end] for sentence in found)
    kept = {at for sentence in found for at in range(sentence.start, sentence.end)}
    lost = [char for at, char in enumerate(text) if at not in kept and char.isalnum()]
    if not text.startswith("---"):
        assert all(char.isdigit() for char in lost)  # only the numbers of a list


def test_words() -> None:
    assert words("two words") == 2
    assert words("我们周二部署") == 3
    assert words("We use 部署 now") == 4


def test_terms_of_words_and_of_scripts_without_spaces() -> None:
    assert terms("When do we deploy the DEPLOYMENTS?") == ["deplo", "deplo"]
    assert terms("周二部署") == ["周二", "二部", "部署"]
    assert terms("Straße STRASSE") == ["stras", "stras"]
    assert terms("?!🙂") == []
    assert numbers("8,646 km in 1990, 4:51 and 1.5") == {"8646", "1990", "4:51", "1.5"}
    assert names("The guard Marta Ruiz left. Then Bob came.") == {"marta", "ruiz", "bob"}
    assert negated("We don’t deploy.")
    assert not negated("We note it.")


def test_rare_terms_weigh_more() -> None:
    weighted = weights(["deplo", "graz"], [{"deplo"}, {"deplo", "graz"}, {"deplo"}])
    assert weighted["graz"] > weighted["deplo"] > 0
    assert coverage(weighted, {"graz"}) > 0.5 > coverage(weighted, {"deplo"})
    assert coverage({}, {"x"}) == 0.0


def test_a_long_sentence_is_cut_to_the_clauses_that_answer() -> None:
    long = (
        "The town was founded in 1822, a year after the land was bought, and after much debate among its few settlers; "
        "it was named after Andrew Jackson, the first governor, who never came to see the place that has his name."
    )
    part = fit(long, terms("Who was the town named after?"))
    assert part in long
    assert "Andrew Jackson" in part
    assert words(part) <= 30
    assert fit("Short enough.", []) == "Short enough."


@given(st.text(alphabet="ab ,;部署，。AB1", max_size=400), st.integers(1, 40))
def test_a_part_is_verbatim_and_within_the_limit(text: str, limit: int) -> None:
    part = fit(text, ["a", "部署"], limit)
    assert part in text
    assert words(part) <= limit or " " not in part.strip()
