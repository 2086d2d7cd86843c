"""The arithmetic against values worked out by hand or printed in the literature, and by enumeration."""

from fractions import Fraction
from itertools import product
from math import isclose

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libraryfs.evals.statistics import (
    Count,
    cohen_kappa,
    direction,
    false_alarm_rate,
    flip_rate,
    has_drifted,
    is_significant,
    mcnemar,
    smallest_drift,
    smallest_drop,
    wilson,
)

_counts = st.integers(1, 300).flatmap(lambda total: st.builds(Count, st.integers(0, total), st.just(total)))


@pytest.mark.parametrize(
    ("before", "now", "drifted"),
    [
        (Count(17, 20), Count(16, 20), False),
        (Count(18, 20), Count(17, 20), False),
        (Count(18, 20), Count(16, 20), True),
        (Count(16, 20), Count(18, 20), True),
        (Count(1, 1), Count(0, 1), True),
        (Count(95, 100), Count(90, 100), False),
        (Count(95, 100), Count(89, 100), True),
        (Count(3, 20), Count(4, 40), False),
        (Count(3, 20), Count(39, 400), True),
    ],
)
def test_the_drift_rule(before: Count, now: Count, drifted: bool) -> None:
    assert has_drifted(before, now) is drifted
    assert has_drifted(now, before) is drifted


@given(_counts, _counts)
def test_drift_is_the_rule_on_exact_fractions(before: Count, now: Count) -> None:
    difference = Fraction(now.passed, now.total) - Fraction(before.passed, before.total)
    assert has_drifted(before, now) is (abs(difference) > Fraction(1, 20))
    assert direction(before, now) == (None if difference == 0 else "up" if difference > 0 else "down")


@pytest.mark.parametrize(
    ("count", "low", "high"),
    [
        # Newcombe, R. G. (1998), Statistics in Medicine 17:857-872, table I, method 3
        (Count(81, 263), 0.2553, 0.3662),
        (Count(15, 148), 0.0624, 0.1605),
        (Count(0, 20), 0.0, 0.1611),
        (Count(1, 29), 0.0061, 0.1718),
    ],
)
def test_wilson_against_published_intervals(count: Count, low: float, high: float) -> None:
    found = wilson(count)
    assert round(found[0], 4) == low
    assert round(found[1], 4) == high


@given(_counts)
def test_wilson_holds_the_rate_and_is_symmetric(count: Count) -> None:
    low, high = wilson(count)
    assert 0 <= low <= count.rate <= high <= 1
    mirrored = wilson(Count(count.total - count.passed, count.total))
    assert isclose(low, 1 - mirrored[1], abs_tol=1e-12)
    assert isclose(high, 1 - mirrored[0], abs_tol=1e-12)


@pytest.mark.parametrize(
    ("worse", "better", "p"),
    [(0, 0, 1), (1, 0, 1), (5, 0, 0.0625), (6, 0, 0.03125), (1, 1, 1), (10, 2, 2 * (1 + 12 + 66) / 4096), (0, 3, 0.25)],
)
def test_exact_mcnemar(worse: int, better: int, p: float) -> None:
    assert mcnemar(worse, better) == p
    assert mcnemar(better, worse) == p
    assert is_significant(worse, better) is (p < 0.05)


@given(st.integers(0, 12), st.integers(0, 12))
def test_mcnemar_is_a_count_of_coin_tosses(worse: int, better: int) -> None:
    n = worse + better
    as_far = (
        sum(abs(2 * sum(toss) - n) >= abs(worse - better) for toss in product((0, 1), repeat=n)) if n <= 12 else None
    )
    if as_far is not None:
        assert isclose(mcnemar(worse, better), as_far / 2**n)


def test_what_a_set_can_show() -> None:
    assert smallest_drop(20) == 6
    assert smallest_drop(6) == 6
    assert smallest_drop(5) is None
    assert smallest_drift(20) == 2
    assert smallest_drift(19) == 1
    assert smallest_drift(100) == 6


def test_false_alarms_by_hand() -> None:
    assert false_alarm_rate([0.0] * 20) == 0
    assert isclose(false_alarm_rate([0.1]), 0.1)  # one question: any flip is drift
    assert isclose(false_alarm_rate([0.2, 0.2]), 1 - (0.8 * 0.8 + 2 * 0.1 * 0.1))
    assert isclose(false_alarm_rate([0.1] * 20), 0.26548, abs_tol=1e-5)  # |difference| ≥ 2 of 20
    assert isclose(false_alarm_rate([0.1] * 20, inclusive=True), 0.69930, abs_tol=1e-5)  # ≥ 1 of 20


@given(st.lists(st.sampled_from([0.0, 0.1, 0.5, 1.0]), min_size=1, max_size=6))
def test_false_alarms_by_enumeration(rates: list[float]) -> None:
    expected = 0.0
    for moves in product((-1, 0, 1), repeat=len(rates)):
        chance = 1.0
        for move, rate in zip(moves, rates, strict=True):
            chance *= 1 - rate if move == 0 else rate / 2
        expected += chance * (20 * abs(sum(moves)) > len(rates))
    assert isclose(false_alarm_rate(rates), expected, abs_tol=1e-12)


@given(st.lists(st.booleans(), min_size=2, max_size=12))
def test_flip_rate_is_the_share_of_pairs_that_disagree(verdicts: list[bool]) -> None:
    pairs = [(a, b) for i, a in enumerate(verdicts) for b in verdicts[i + 1 :]]
    found = flip_rate(sum(verdicts), len(verdicts))
    assert found is not None
    assert isclose(found, sum(a != b for a, b in pairs) / len(pairs))


def test_one_repeat_has_no_flip_rate() -> None:
    assert flip_rate(1, 1) is None


def test_kappa() -> None:
    kappa = cohen_kappa(20, 5, 10, 15)
    assert kappa is not None
    assert isclose(kappa, 0.4)
    assert cohen_kappa(10, 0, 0, 10) == 1
    assert cohen_kappa(5, 5, 5, 5) == 0
    assert cohen_kappa(10, 0, 0, 0) is None
