"""Folding, the 0.7 rule, what matched how, and which step a miss is laid to."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libraryfs.evals.evalset import ABSTAIN, Question
from libraryfs.evals.matching import fold, fold_fragment, says
from libraryfs.evals.score import Ruling, score
from libraryfs.evals.statistics import passes


@pytest.mark.parametrize(
    ("answer", "fragment", "found"),
    [
        ("We deploy on THURSDAY.", "thursday", True),
        ("after   the\nstand-up", "After the stand-up", True),
        ("after the stand-up", "“After the stand-up.”", True),
        ("ｆｕｌｌ　width １２", "full width 12", True),
        ("Straße", "STRASSE", True),
        ("ﬁle", "file", True),
        ("cafe\u0301", "café", True),
        ("costs $5", "$5", True),
        ("costs 5", "$5", False),
        ("written in C", "C#", False),
        ("grew by 50", "50%", False),
        ("at 5 degrees", "-5", False),
        ("何処。ここ", "「ここ」", True),
        ("really?!", "?!", True),
        ("really", "?!", False),
        ("Thurs day", "Thursday", False),
    ],
)
def test_folding(answer: str, fragment: str, found: bool) -> None:
    assert says(fold(answer), fragment) is found


@given(st.text(max_size=40))
def test_folding_twice_changes_nothing(text: str) -> None:
    folded = fold(text)
    assert fold(folded) == folded
    assert fold(f"\t {text}\n") == folded
    assert fold(unicodedata.normalize("NFKD", text)) == folded
    assert fold_fragment(fold_fragment(text)) == fold_fragment(text)


@given(st.text(max_size=20), st.text(max_size=20))
def test_a_text_says_each_of_its_words(before: str, after: str) -> None:
    assert says(fold(f"{before} Thursday {after}"), "thursday")


@pytest.mark.parametrize(
    ("matched", "total", "passed"),
    [
        (7, 10, True),
        (6, 10, False),
        (1, 1, True),
        (1, 2, False),
        (2, 3, False),
        (3, 4, True),
        (14, 20, True),
        (69, 100, False),
    ],
)
def test_seven_tenths_pass(matched: int, total: int, passed: bool) -> None:
    assert passes(matched, total) is passed


class _Judge:
    def __init__(self, *says: bool | None) -> None:
        self.says = list(says)
        self.calls: list[tuple[str, str, str]] = []

    def __call__(self, question: str, answer: str, fragment: str) -> Ruling:
        self.calls.append((question, answer, fragment))
        said = self.says[len(self.calls) - 1]
        return Ruling(says=said, reason="neither yes nor no" if said is None else None)


def _question(*fragments: str) -> Question:
    return Question(text="When?", fragments=fragments, line=1)


def test_the_judge_is_asked_once_for_each_fragment_that_substring_did_not_find() -> None:
    judge = _Judge(True, False)
    found = score(_question("Thursday", "noon", "Friday"), "On Thursday at twelve", ["noon"], judge)
    assert judge.calls == [("When?", "On Thursday at twelve", "noon"), ("When?", "On Thursday at twelve", "Friday")]
    assert [(f.matched, f.how) for f in found.fragments] == [(True, "substring"), (True, "judge"), (False, None)]
    assert found.outcome == "failed"  # 2 of 3 is under 0.7


def test_no_answer_is_not_judged() -> None:
    judge = _Judge()
    assert score(_question("Thursday"), None, ["Thursday"], judge).outcome == "failed"
    assert judge.calls == []


def test_could_not_judge_is_an_error_only_where_it_decides() -> None:
    decides = score(_question("a", "b"), "a", [], _Judge(None))
    assert decides.outcome == "error"
    assert decides.miss == "error"
    assert decides.error is not None
    assert "neither yes nor no" in decides.error
    assert decides.fragments[1].matched is None
    assert score(_question("a", "b", "c", "x"), "a b c", [], _Judge(None)).outcome == "passed"
    assert score(_question("a", "x", "y"), "a", [], _Judge(False, None)).outcome == "failed"


@pytest.mark.parametrize(
    ("evidence", "miss"),
    [
        ([], "retrieval"),
        (["on thursday, at NOON"], "answer"),
        (["thursday"], "retrieval"),
        (["Thursday", "noon"], "answer"),
    ],
)
def test_a_miss_is_laid_to_retrieval_or_to_the_answer(evidence: list[str], miss: str) -> None:
    found = score(_question("Thursday", "noon"), "sometime", evidence)
    assert (found.outcome, found.miss) == ("failed", miss)


def test_expected_abstention() -> None:
    passed = score(_question(ABSTAIN), None, ["anything"])
    assert (passed.outcome, passed.fragments[0].how) == ("passed", "abstention")
    failed = score(_question(ABSTAIN), "Romulus", ["Romulus"])
    assert (failed.outcome, failed.miss) == ("failed", "answer")
