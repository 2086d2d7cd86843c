"""The paired permutation test against scipy, against counting all permutations, and what it can show."""

from fractions import Fraction
from itertools import product
from math import isclose
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import permutation_test

from libraryfs.evals import paired
from libraryfs.evals.paired import Shares, detectable_drop, to_halve

_shares = st.builds(Fraction, st.integers(0, 6), st.just(6))
_few = st.lists(
    st.builds(Shares, _shares, st.lists(_shares, min_size=1, max_size=3).map(tuple)), min_size=1, max_size=5
)


def _mean_change(question: Shares) -> Fraction:
    return question.now - sum(question.before, Fraction(0)) / len(question.before)


def _counted(questions: list[Shares]) -> tuple[float, float]:
    """Both p-values, by going through every choice of the share that is this run's."""
    observed = sum(map(_mean_change, questions))
    sums = []
    for places in product(*(range(len(question.before) + 1) for question in questions)):
        total = Fraction(0)
        for question, place in zip(questions, places, strict=True):
            shares = [question.now, *question.before]
            total += _mean_change(Shares(shares.pop(place), tuple(shares)))
        sums.append(total)
    return sum(s <= observed for s in sums) / len(sums), sum(s >= observed for s in sums) / len(sums)


@given(_few)
@settings(max_examples=60, deadline=None)
def test_as_counted_over_all_permutations(questions: list[Shares]) -> None:
    found = paired.test(questions)
    drop, rise = _counted(questions)
    assert found.exact
    assert isclose(found.p_drop, drop)
    assert isclose(found.p_rise, rise)
    assert isclose(found.difference, float(sum(map(_mean_change, questions)) / len(questions)))


def test_with_one_earlier_run_it_is_scipys_sign_flip_test() -> None:
    random = np.random.default_rng(7)
    before, now = random.integers(0, 5, 12), random.integers(0, 4, 12)

    def statistic(x: Any, y: Any, axis: int) -> Any:
        return np.sum(x - y, axis=axis)

    rows = [Shares(Fraction(int(b), 4), (Fraction(int(a), 4),)) for a, b in zip(before, now, strict=True)]
    found = paired.test(rows)
    for alternative, mine in (("less", found.p_drop), ("greater", found.p_rise)):
        oracle = permutation_test(
            (now, before), statistic, permutation_type="samples", n_resamples=np.inf, alternative=alternative
        )
        assert isclose(oracle.pvalue, mine)


def test_nothing_changed() -> None:
    assert paired.test([Shares(Fraction(1, 3), (Fraction(1, 3),))] * 9) == (0.0, 1.0, 1.0, True)


def test_a_large_set_is_sampled_and_agrees_with_the_exact_test(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(3)
    rows = [
        Shares(Fraction(int(random.integers(0, 8)), 9), tuple(Fraction(int(n), 9) for n in random.integers(0, 10, 2)))
        for _ in range(60)
    ]
    exact = paired.test(rows)
    monkeypatch.setattr(paired, "_EXACT_WORK", 0)
    sampled = paired.test(rows)
    assert (exact.exact, sampled.exact) == (True, False)
    assert abs(exact.p_drop - sampled.p_drop) < 0.015
    assert sampled.p_drop > 0
    assert paired.test(rows) == sampled  # the same each time


def test_a_drop_of_ten_points_on_a_hundred_questions_is_shown_and_noise_is_not() -> None:
    """Two runs of a question disagree in 10 % of cases, three repeats; scripts/bench/eval.py has the whole table."""
    random = np.random.default_rng(11)
    flips = (1 - 0.8**0.5) / 2  # 2 p (1 - p) = 0.1
    chance = np.array([1 - flips] * 80 + [flips] * 20)
    fallen = chance.copy()
    fallen[:10] = flips

    def p_drop(now: Any) -> float:
        runs = [random.binomial(3, chance) for _ in range(2)]
        asked = random.binomial(3, now)
        rows = [Shares(Fraction(int(asked[i]), 3), tuple(Fraction(int(run[i]), 3) for run in runs)) for i in range(100)]
        return paired.test(rows).p_drop

    assert sum(p_drop(fallen) < paired.SIGNIFICANT for _ in range(24)) >= 20
    assert sum(p_drop(chance) < paired.SIGNIFICANT for _ in range(24)) <= 4


def test_what_a_set_can_show() -> None:
    assert detectable_drop(3, 1, 1, 0.1) is None
    assert detectable_drop(100, 1, 1, 0.0) == 0.05  # five falls in a row: 1/32
    hundred = detectable_drop(100, 3, 1, 0.1)
    assert hundred is not None
    assert 0.04 < hundred < 0.1
    halved = to_halve(100, 3, 1, 0.1)
    assert halved is not None
    again = detectable_drop(halved.questions, 3, 1, 0.1)
    assert again is not None
    assert again <= hundred / 2
    assert to_halve(3, 1, 1, 0.1) is None


@given(st.integers(1, 300), st.integers(1, 50), st.integers(1, 5), st.floats(0, 0.5))
@settings(deadline=None)
def test_what_a_set_can_show_is_a_share_or_nothing(questions: int, repeats: int, pooled: int, flip_rate: float) -> None:
    drop = detectable_drop(questions, repeats, pooled, flip_rate)
    assert drop is None or 0 < drop <= 1
    halved = to_halve(questions, repeats, pooled, flip_rate)
    assert (halved is None) == (drop is None)
    assert halved is None or halved.questions > questions


def test_what_a_very_large_set_can_show_is_said_at_once() -> None:
    drop = detectable_drop(10_000, 1, 1, 0.1)
    assert drop is not None
    assert drop < 0.015
    assert to_halve(10_000, 1, 1, 0.1) is not None
