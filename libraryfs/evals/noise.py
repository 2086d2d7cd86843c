"""How much of a change is chance: what the set can show at all, measured and in plain words."""

from itertools import combinations

from libraryfs.evals import paired
from libraryfs.evals.drift import RunRecord, compare
from libraryfs.evals.report import Noise, SelfTest
from libraryfs.evals.statistics import Count, false_alarm_rate, smallest_drift, smallest_drop

ASSUMED_FLIP_RATE = 0.1
FEW_FALSE_ALARMS = 0.05


def measure(count: Count, flip_rates: list[float], repeats: int, pooled: int) -> Noise:
    """What a set of this size can show, asked `repeats` times and compared with `pooled` runs.

    Where repeats measured the questions' flip rates they are used, else 10 % is assumed.
    """
    flip_rate = sum(flip_rates) / len(flip_rates) if flip_rates else ASSUMED_FLIP_RATE
    halved = paired.to_halve(count.total, repeats, pooled, flip_rate)
    return Noise(
        drift_takes=smallest_drift(count.total),
        significant_takes=smallest_drop(count.passed),
        moves_at_10_percent=round(false_alarm_rate([ASSUMED_FLIP_RATE] * count.total, inclusive=True), 4),
        false_alarms_at_10_percent=round(false_alarm_rate([ASSUMED_FLIP_RATE] * count.total), 4),
        detectable_drop=paired.detectable_drop(count.total, repeats, pooled, flip_rate),
        halved_by_questions=halved.questions if halved else None,
        halved_by_repeats=halved.repeats if halved else None,
        measured_flip_rate=round(flip_rate, 4) if flip_rates else None,
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
        + (": read a drift together with the paired test." if alarms > FEW_FALSE_ALARMS else "."),
        _can_show(noise, n),
    ]
    if noise.measured_flip_rate is not None and noise.false_alarms_measured is not None:
        notes.append(
            f"Measured by the repeats: two runs of a question disagree in {_percent(noise.measured_flip_rate)} of "
            f"cases, so the 5-point rule fires on {_percent(noise.false_alarms_measured)} of runs in which nothing "
            "changed."
        )
    return notes


def _can_show(noise: Noise, total: int) -> str:
    assumed = "if 10 % of verdicts are chance" if noise.measured_flip_rate is None else "at the flip rate measured"
    if noise.detectable_drop is None:
        return f"This set is too small for the paired test to show any drop ({total} questions): add questions."
    words = (
        f"The smallest drop that the paired test shows in 8 of 10 runs is about {100 * noise.detectable_drop:.0f} "
        f"points, {assumed}. To see half of that, ask {noise.halved_by_questions} questions"
    )
    if noise.halved_by_repeats is not None:
        return f"{words}, or these {noise.halved_by_repeats} times each (--repeats)."
    return f"{words}; more repeats alone would not do it."


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
