"""A paired permutation test on each question's share of fragments: did the set as a whole fall or rise?

Of each question the test takes its share of matched fragments in this run and in earlier, independent runs. If nothing
changed, any of those shares could have been the one of this run. So the null distribution of the summed differences
picks one of them for each question, all with the same chance, independently. With one earlier run this is the
sign-flip test. Fisher, R. A. (1935), The Design of Experiments, section 21; Good, P. (2005), Permutation, Parametric
and Bootstrap Tests of Hypotheses, 3rd ed., section 3.2.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from math import exp, gcd, lcm, log, sqrt
from statistics import NormalDist
from typing import Final, NamedTuple

import numpy as np

SIGNIFICANT: Final = 0.05
POWER: Final = 0.8
MAX_POOLED: Final = 5
"""Earlier runs that a run is compared with, at most."""
MAX_REPEATS: Final = 50
MAX_SLOPE_AT: Final = 64.0
NO_NOISE: Final = 1e-6
_DRAWS: Final = 20_000
_EXACT_WORK: Final = 30_000_000
"""Additions up to which the distribution is computed exactly: about 50 ms."""
_SEED: Final = 20261130


class Shares(NamedTuple):
    """One question: its share of matched fragments now, and in each earlier run, at least one. All are 0 to 1."""

    now: Fraction
    before: tuple[Fraction, ...]


class Tested(NamedTuple):
    """`difference`: mean change of a question's share, -1 to 1. `p_drop`, `p_rise`: one-sided p-values, 0 to 1."""

    difference: float
    p_drop: float
    p_rise: float
    exact: bool


def test(questions: Sequence[Shares]) -> Tested:
    """Tests the change over all questions, of which there is at least one.

    Exact where that takes about 50 ms or less; else from 20,000 random draws with a fixed seed, and the p-values then
    count the observed run as a draw: Phipson, B. & Smyth, G. (2010), Stat. Appl. Genet. Mol. Biol. 9:39.
    """
    changes = [question.now - _mean(question.before) for question in questions]
    difference = float(sum(changes, Fraction(0)) / len(questions))
    choices, observed = _whole([_choices(question) for question in questions], changes)
    if not choices:
        return Tested(difference, 1.0, 1.0, exact=True)
    span = sum(max(row) - min(row) for row in choices)
    if span * sum(map(len, choices)) <= _EXACT_WORK:
        drop, rise = _exact(choices, observed)
        return Tested(difference, drop, rise, exact=True)
    drop, rise = _sampled(choices, observed)
    return Tested(difference, drop, rise, exact=False)


def _mean(shares: Sequence[Fraction]) -> Fraction:
    return sum(shares, Fraction(0)) / len(shares)


def _choices(question: Shares) -> list[Fraction]:
    """The change of the question for each of its shares taken as the one of this run."""
    shares = (question.now, *question.before)
    whole, others = sum(shares, Fraction(0)), len(question.before)
    return [share - (whole - share) / others for share in shares]


def _whole(rows: Iterable[list[Fraction]], changes: list[Fraction]) -> tuple[list[list[int]], int]:
    """The same as integers, in the largest common unit, without the questions whose change is zero in each choice."""
    moving = [(row, change) for row, change in zip(rows, changes, strict=True) if any(row)]
    unit = lcm(*(value.denominator for row, _ in moving for value in row))
    scaled = [[int(value * unit) for value in row] for row, _ in moving]
    common = gcd(*(value for row in scaled for value in row)) or 1
    return [[value // common for value in row] for row in scaled], int(sum(c for _, c in moving) * unit) // common


def _exact(choices: list[list[int]], observed: int) -> tuple[float, float]:
    lowest = 0
    chances = np.ones(1)
    for row in choices:
        least, most = min(row), max(row)
        wider = np.zeros(len(chances) + most - least)
        for value in row:
            wider[value - least : value - least + len(chances)] += chances / len(row)
        chances, lowest = wider, lowest + least
    at = observed - lowest
    return min(1.0, float(chances[: at + 1].sum())), min(1.0, float(chances[at:].sum()))


def _sampled(choices: list[list[int]], observed: int) -> tuple[float, float]:
    random = np.random.default_rng(_SEED)
    sums = np.zeros(_DRAWS, dtype=np.float64)
    for row in choices:
        sums += np.asarray(row, dtype=np.float64)[random.integers(len(row), size=_DRAWS)]
    drop, rise = int((sums <= observed).sum()), int((sums >= observed).sum())
    return (drop + 1) / (_DRAWS + 1), (rise + 1) / (_DRAWS + 1)


def detectable_drop(questions: int, repeats: int, pooled: int, flip_rate: float) -> float | None:
    """The smallest true drop of the mean share, 0 to 1, that the test shows in 80 % of runs; None where none is.

    Two runs of a question disagree with the chance `flip_rate`, so a single answer varies by flip_rate/2; the drop is
    of whole questions, from right to wrong. `scripts/bench/eval.py` checks it by simulation.
    """
    noise = questions * flip_rate / 2 / repeats * (1 + 1 / pooled)
    unlucky = NormalDist().inv_cdf(POWER) * sqrt(noise)
    fallen = _first(1, questions, lambda w: w > unlucky and _tail(w, w - unlucky, noise, pooled) < SIGNIFICANT)
    return None if fallen is None else fallen / questions


def _first(low: int, high: int, holds: Callable[[int], bool]) -> int | None:
    """The least number from `low` to `high` for which `holds` is true, if it stays true from there on."""
    found = bisect_left(range(low, high + 1), True, key=holds)
    return None if found > high - low else low + found


def _tail(fallen: int, drop: float, noise: float, pooled: int) -> float:
    """The p-value of a summed drop, by the saddlepoint approximation.

    The null distribution: `fallen` questions of which one share in pooled + 1 is wrong, and normal noise of the
    variance `noise`. Lugannani, R. & Rice, S. (1980), Advances in Applied Probability 12:475-490.
    """
    if noise < NO_NOISE:
        return (1 / (pooled + 1)) ** fallen

    def slope(t: float) -> float:  # of the cumulant generating function, mirrored so that a drop is positive
        wrong, right = exp(t), pooled * exp(-t / pooled)
        return fallen * (wrong - right / pooled) / (wrong + right) + noise * t

    low, high = 0.0, 1.0
    while slope(high) < drop and high < MAX_SLOPE_AT:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) < drop else (low, middle)
    wrong, right = exp(high), pooled * exp(-high / pooled)
    share = wrong / (wrong + right)
    generating = fallen * log((wrong + right) / (pooled + 1)) + noise * high * high / 2
    curvature = fallen * (1 + 1 / pooled) ** 2 * share * (1 - share) + noise
    r = sqrt(max(0.0, 2 * (high * drop - generating)))
    u = high * sqrt(curvature)
    if r < 1e-6 or u < 1e-6:
        return 0.5
    return 1 - NormalDist().cdf(r) + NormalDist().pdf(r) * (1 / u - 1 / r)


class ToHalve(NamedTuple):
    """What would halve the drop that can be seen: so many questions, or so many repeats; None: not within 50."""

    questions: int
    repeats: int | None


def to_halve(questions: int, repeats: int, pooled: int, flip_rate: float) -> ToHalve | None:
    """How many questions, or repeats, would halve `detectable_drop`; None where no drop can be seen at all."""
    now = detectable_drop(questions, repeats, pooled, flip_rate)
    if now is None:
        return None
    more = _first(questions, 100 * questions, lambda n: _within(n, repeats, pooled, flip_rate, now / 2))
    often = _first(repeats, MAX_REPEATS, lambda n: _within(questions, n, pooled, flip_rate, now / 2))
    return None if more is None else ToHalve(more, often)


def _within(questions: int, repeats: int, pooled: int, flip_rate: float, limit: float) -> bool:
    drop = detectable_drop(questions, repeats, pooled, flip_rate)
    return drop is not None and drop <= limit
