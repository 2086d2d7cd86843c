"""How much of a change is chance: what the set can show at all, measured and in plain words."""

from itertools import combinations

from libraryfs.evals.drift import RunRecord, compare
from libraryfs.evals.report import Noise, SelfTest
from libraryfs.evals.statistics import Count, false_alarm_rate, smallest_drift, smallest_drop

ASSUMED_FLIP_RATE = 0.1
FEW_FALSE_ALARMS = 0.05


def measure(count: Count, flip_rates: list[float]) -> Noise:
    """What a set of this size can show; with the questions' flip rates where repeats measured them."""
    return Noise(
        drift_takes=smallest_drift(count.total),
        significant_takes=smallest_drop(count.passed),
        moves_at_10_percent=round(false_alarm_rate([ASSUMED_FLIP_RATE] * count.total, inclusive=True), 4),
        false_alarms_at_10_percent=round(false_alarm_rate([ASSUMED_FLIP_RATE] * count.total), 4),
        measured_flip_rate=round(sum(flip_rates) / len(flip_rates), 4) if flip_rates else None,
        false_alarms_measured=round(false_alarm_rate(flip_rates), 4) if flip_rates else None,
    )


def in_words(noise: Noise, count: Count) -> list[str]:
    """The same as sentences for the reader of a report."""
    n, takes = count.total, noise.drift_takes
    questions = f"{takes} question{'s' * (takes != 1)}"
    alarms = noise.false_alarms_at_10_percent
    notes = [
        f"Drift is a change of more than 5 points: on this set of {n}, {questions}. If 10 % of verdicts are chance, "
        f"the rate moves by 5 points or more in {_percent(noise.moves_at_10_percent)} of runs in which nothing "
        f"changed, and the rule fires on {_percent(alarms)} of them"
        + (": read a drift together with the McNemar test." if alarms > FEW_FALSE_ALARMS else ".")
    ]
    if noise.significant_takes is None:
        notes.append(f"No drop can be shown on this set: only {count.passed} of its questions pass, and it takes 6.")
    else:
        points = 100 * noise.significant_takes / n
        notes.append(
            f"The smallest drop that this set can show (McNemar, p < 0.05) is {noise.significant_takes} questions, "
            f"{points:.0f} points, with none that rose."
        )
    if noise.measured_flip_rate is not None and noise.false_alarms_measured is not None:
        notes.append(
            f"Measured by the repeats: two runs of a question disagree in {_percent(noise.measured_flip_rate)} of "
            f"cases, so the 5-point rule fires on {_percent(noise.false_alarms_measured)} of runs in which nothing "
            "changed."
        )
    return notes


def against_itself(runs: list[RunRecord]) -> SelfTest:
    """All pairs of runs of one set in which nothing changed. At least two runs, each with a total."""
    pairs = [compare(a, b) for a, b in combinations(runs, 2)]
    return SelfTest(
        runs=len(runs),
        pass_rates=tuple(run.count.rate for run in runs),
        pairs=len(pairs),
        drifted=sum(pair.detected for pair in pairs),
        significant=sum(bool(pair.significant) for pair in pairs),
    )


def self_test_in_words(test: SelfTest) -> str:
    """The same as a sentence."""
    return (
        f"The set against itself: {test.runs} runs, {test.pairs} pairs; the 5-point rule called {test.drifted} of them "
        f"drift ({_percent(test.false_alarm_rate)}), McNemar's test {test.significant}."
    )


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share == 0 or share >= 0.01 else "under 1 %"
