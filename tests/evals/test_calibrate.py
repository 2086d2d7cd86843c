"""Labelled rows, and the judge's figures against values worked out by hand."""

import json

import pytest

from libraryfs.errors import InvalidRequest
from libraryfs.evals.calibrate import agreement, calibrate, read_rows
from libraryfs.evals.score import Ruling


def _row(claim: str, evidence: str | list[str], support: str | bool) -> str:
    return json.dumps({"claim": claim, "evidence": evidence, "support": support, "other": 1})


def test_rows() -> None:
    rows = read_rows([_row("a", ["x", "y"], "Complete"), "", _row("b", "z", False), _row("c", "z", "Partial")])
    assert [(row.claim, row.evidence, row.support) for row in rows] == [
        ("a", "x\n\ny", True),
        ("b", "z", False),
        ("c", "z", False),
    ]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "line 1: no labelled rows"),
        ([_row("a", "x", True), "{"], "line 2: not JSON"),
        (["[]"], "line 1: "),
        ([_row("", "x", True)], "line 1: claim"),
        ([_row("a", "x", "perhaps")], "line 1: support: 'perhaps' is not a verdict"),
        ([json.dumps({"claim": "a", "evidence": 3, "support": True})], "line 1: evidence"),
        ([json.dumps({"claim": "a", "evidence": "x"})], "line 1: support"),
    ],
)
def test_rows_refused(lines: list[str], message: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        read_rows(lines)
    assert str(caught.value).startswith(message)


def test_agreement_by_hand() -> None:
    pairs: list[tuple[bool | None, bool]] = [(True, True)] * 20
    pairs += [(True, False)] * 5
    pairs += [(False, True)] * 10
    pairs += [(False, False)] * 15
    pairs += [(None, True)] * 3
    found = agreement(pairs)
    assert (found.rows, found.could_not, found.agreement) == (53, 3, 0.7)
    assert found.kappa == pytest.approx(0.4)
    nothing = agreement([(None, True)])
    assert (nothing.agreement, nothing.kappa, nothing.ci95) == (None, None, None)


def test_a_judge_beside_substring() -> None:
    rows = read_rows([_row("noon", "at noon", "yes"), _row("midday", "at noon", "yes"), _row("night", "at noon", "no")])
    good = calibrate(rows, lambda question, answer, fragment: Ruling(says=fragment != "night"), "m")
    assert (good.judge.agreement, good.judge.kappa) == (1, 1)
    assert good.substring.agreement == pytest.approx(2 / 3)
    assert good.better_than_substring
    bad = calibrate(rows, lambda question, answer, fragment: Ruling(says=True), "m")
    assert not bad.better_than_substring
    assert "not better than substring" in bad.verdict
