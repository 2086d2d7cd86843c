"""The arithmetic of pass rates: the drift rule, intervals, tests of a change, and how often a rule cries wolf.

Counts are integers and compared as integers: 17/20 → 16/20 differs by 0.05 exactly, which floating point cannot say.
"""

from collections.abc import Iterable
from math import comb, sqrt
from typing import Final, Literal, NamedTuple

Direction = Literal["up", "down"]

DRIFT_ONE_IN: Final = 20  # drift: the rates differ by more than 1/20
PASS_TENTHS: Final = 7  # a question passes with 7/10 of its fragments
Z_95: Final = 1.959963984540054
"""The 97.5 % point of the standard normal distribution."""
SIGNIFICANT_ONE_IN: Final = 20  # p < 1/20


class Count(NamedTuple):
    """`passed` of `total`; total is at least 1."""

    passed: int
    total: int

    @property
    def rate(self) -> float:
        """passed/total."""
        return self.passed / self.total


def passes(matched: int, total: int) -> bool:
    """Whether a question with `matched` of its `total` fragments passes: at least 0.7 of them."""
    return 10 * matched >= PASS_TENTHS * total


def has_drifted(before: Count, now: Count) -> bool:
    """Whether the two rates differ by more than 0.05; exactly 0.05 is no drift."""
    difference = now.passed * before.total - before.passed * now.total
    return DRIFT_ONE_IN * abs(difference) > now.total * before.total


def direction(before: Count, now: Count) -> Direction | None:
    """Which way the rate went; None when it is the same."""
    difference = now.passed * before.total - before.passed * now.total
    if difference == 0:
        return None
    return "up" if difference > 0 else "down"


def wilson(count: Count) -> tuple[float, float]:
    """The 95 % score interval of a rate, inside 0…1.

    Wilson, E. B. (1927), "Probable inference, the law of succession, and statistical inference", JASA 22:209-212.
    """
    passed, n = count
    p, z2 = passed / n, Z_95 * Z_95
    middle = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = Z_95 / (1 + z2 / n) * sqrt(p * (1 - p) / n + z2 / (4 * n * n))
    low = 0.0 if passed == 0 else max(0.0, middle - half)
    high = 1.0 if passed == n else min(1.0, middle + half)
    return low, high


def mcnemar(worse: int, better: int) -> float:
    """The exact two-sided p-value that `worse` and `better` changes of verdict are chance: a binomial test of one half.

    McNemar, Q. (1947), Psychometrika 12:153-157; the exact form as in Fagerland, Lydersen & Laake (2013), BMC Medical
    Research Methodology 13:91, there called the exact conditional test.
    """
    numerator, denominator = _mcnemar(worse, better)
    return min(1.0, numerator / denominator)


def is_significant(worse: int, better: int) -> bool:
    """Whether the exact McNemar p-value is below 0.05, in integers."""
    numerator, denominator = _mcnemar(worse, better)
    return SIGNIFICANT_ONE_IN * numerator < denominator


def _mcnemar(worse: int, better: int) -> tuple[int, int]:
    n = worse + better
    return 2 * sum(comb(n, i) for i in range(min(worse, better) + 1)), 2**n


def smallest_drop(passed: int) -> int | None:
    """The fewest questions that must turn from passed to failed, none the other way, for McNemar's test to show it.

    None when fewer than that passed at all.
    """
    needed = 1
    while not is_significant(needed, 0):
        needed += 1
    return needed if needed <= passed else None


def smallest_drift(total: int) -> int:
    """The fewest questions whose change makes `has_drifted` true on a set of `total`."""
    return total // DRIFT_ONE_IN + 1


def false_alarm_rate(flip_rates: Iterable[float], *, inclusive: bool = False) -> float:
    """How often the drift rule fires between two runs when nothing changed, given each question's flip rate.

    A flip rate is the chance that two runs of one question disagree. Flips go either way with the same chance, since
    neither run is the better one, and are independent. Exact: the distribution of the difference is convolved
    question by question. `inclusive` counts a change of exactly 0.05 too, which the rule does not.
    """
    rates = list(flip_rates)
    chances = [1.0]  # of each difference, the middle one being 0
    for rate in (rate for rate in rates if rate):
        wider = [0.0] * (len(chances) + 2)
        for index, chance in enumerate(chances):
            wider[index] += chance * rate / 2
            wider[index + 1] += chance * (1 - rate)
            wider[index + 2] += chance * rate / 2
        chances = wider
    middle = len(chances) // 2
    least = len(rates) if inclusive else len(rates) + 1  # of 20 times the questions that the rate moves by
    fires = (chance for i, chance in enumerate(chances) if DRIFT_ONE_IN * abs(i - middle) >= least)
    return min(1.0, sum(fires))


def flip_rate(passed: int, repeats: int) -> float | None:
    """The share of pairs of repeats that disagree, an unbiased estimate of a question's flip rate; None for one repeat.

    The U-statistic of Gini's impurity: with k of N passed, k(N-k) of the N(N-1)/2 pairs differ.
    """
    if repeats < 2:
        return None
    return 2 * passed * (repeats - passed) / (repeats * (repeats - 1))


def cohen_kappa(both_yes: int, only_first: int, only_second: int, both_no: int) -> float | None:
    """Agreement of two raters beyond chance, from -1 to 1; None where chance alone agrees always.

    Cohen, J. (1960), "A coefficient of agreement for nominal scales", Educational and Psychological Measurement 20:37.
    """
    n = both_yes + only_first + only_second + both_no
    first, second = both_yes + only_first, both_yes + only_second
    chance = first * second + (n - first) * (n - second)  # times n²
    if chance == n * n:
        return None
    return ((both_yes + both_no) * n - chance) / (n * n - chance)
