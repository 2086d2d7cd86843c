"""A finished run → its report, compared with what is kept."""

from typing import Any, NamedTuple

from libraryfs.evals import change, history, noise
from libraryfs.evals.drift import Comparison, RunRecord, compare
from libraryfs.evals.judge import BUILT_IN_JUDGE
from libraryfs.evals.load import Loaded
from libraryfs.evals.paired import MAX_POOLED
from libraryfs.evals.report import Drift, EvalReport, Noise, QuestionReport, SelfTest, Trace
from libraryfs.evals.score import Outcome
from libraryfs.evals.statistics import Count, wilson
from libraryfs.store.evals import KEPT_RUNS
from libraryfs.store.workspace import Item


class Finished(NamedTuple):
    """All questions of a set, asked and scored."""

    loaded: Loaded
    record: RunRecord
    questions: tuple[QuestionReport, ...]
    trace: Trace
    self_test: SelfTest | None
    judged_by: str | None
    """The judge's model, None without a judge."""


def failed(loaded: Loaded, at: str, error: str, questions: tuple[QuestionReport, ...], trace: Trace) -> EvalReport:
    """The report of a run that ended before its last question. It compares nothing and was written nowhere."""
    outcomes = [question.outcome for question in questions]
    passed = outcomes.count("passed")
    total = passed + outcomes.count("failed")
    return EvalReport(
        ring=loaded.ring,
        item_id=loaded.item.id,
        path=loaded.path,
        at=at,
        status="failed",
        error=error,
        passed=passed,
        total=total,
        errors=outcomes.count("error"),
        pass_rate=passed / total if total else None,
        ci95=wilson(Count(passed, total)) if total else None,
        questions=questions,
        trace=trace,
    )


def completed(
    finished: Finished, item: Item, kept: list[RunRecord], number: int | None, baseline: RunRecord | None
) -> EvalReport:
    """The report, against the rate that `item` holds, the runs `kept`, and the pinned `baseline`."""
    loaded, record = finished.loaded, finished.record.model_copy(update={"run": number})
    before = history.previous(item, kept)
    against = compare(before, record) if before is not None else None
    pinned = compare(baseline, record) if baseline is not None else None
    rates = [q.flip_rate for q in finished.questions if q.flip_rate is not None]
    earlier = change.pooled(kept, record)
    repeats = max(question.repeats for question in finished.questions)
    # The next run is compared with this one too.
    measured = noise.measure(record.count, rates, repeats, min(len(earlier) + 1, MAX_POOLED))
    must = frozenset(question.key for question in loaded.evalset.questions if question.must)
    references = [*kept[-1:], *([baseline] if baseline is not None else [])]
    runs = _shown([*kept, record])
    return EvalReport(
        ring=loaded.ring,
        item_id=loaded.item.id,
        path=loaded.path,
        run=number,
        at=record.at,
        passed=record.passed,
        total=record.total,
        errors=record.errors,
        pass_rate=record.count.rate,
        ci95=wilson(record.count),
        **_compared(against),
        paired=change.measure(earlier, record),
        must_lost=change.must_lost(record, must, references),
        baseline=pinned,
        paired_baseline=change.measure([baseline], record) if baseline is not None else None,
        noise=measured,
        aa=finished.self_test,
        notes=tuple(_notes(finished, record, measured, against, pinned)),
        foot=_foot(finished.judged_by),
        questions=_with_history(finished.questions, record, before, runs),
        history=history.points(runs),
        trace=finished.trace,
    )


def _shown(runs: list[RunRecord]) -> list[RunRecord]:
    return [run for index, run in enumerate(runs) if run.pinned or index >= len(runs) - KEPT_RUNS]


def _compared(against: Comparison | None) -> dict[str, Any]:
    if against is None:
        return {}
    return {
        "drift_detected": against.detected,
        "drift": Drift(
            direction=against.direction,
            difference=round(against.difference, 6),
            previous_pass_rate=against.pass_rate,
            previous_passed=against.passed,
            previous_total=against.total,
            previous_at=against.at,
            previous_run=against.run,
        ),
        "drift_significant": against.significant,
        "drift_comparable": against.comparable,
        "drift_reasons": against.reasons,
        "p_value": against.p_value,
        "flips": against.flips,
        "set_change": against.set_change,
    }


def _notes(
    finished: Finished, record: RunRecord, measured: Noise, against: Comparison | None, pinned: Comparison | None
) -> list[str]:
    notes = noise.in_words(measured, record.count)
    if finished.self_test is not None:
        notes.append(noise.self_test_in_words(finished.self_test))
    if against is not None:
        if against.reasons:
            notes.append(f"Not comparable with the run before: {'; '.join(against.reasons)}.")
        if str(against.set_change):
            notes.append(
                f"On the {against.shared} questions that both sets share: {against.shared_before} passed before, "
                f"{against.shared_now} now."
            )
        if against.at > record.at:
            notes.append(f"The clock went backwards: the run before is dated {against.at}. Runs go by their numbers.")
    if pinned is not None:
        notes.append(
            f"Against the baseline, run {pinned.run}: {pinned.passed}/{pinned.total} then, "
            f"{record.passed}/{record.total} now"
            + (", which is drift." if pinned.detected else ", no drift.")
            + (f" Not comparable: {'; '.join(pinned.reasons)}." if pinned.reasons else "")
        )
    return notes


def _foot(judged_by: str | None) -> tuple[str, ...]:
    if judged_by is None:
        return ("No judge: a fragment counts as said when the answer holds it as a substring.",)
    if judged_by == BUILT_IN_JUDGE.model:
        return (BUILT_IN_JUDGE.in_words(),)
    return (
        f"Judge: {judged_by}. How far it agrees with people is not known here; "
        "measure it on labelled rows with 'libraryfs eval calibrate FILE'.",
    )


def _with_history(
    questions: tuple[QuestionReport, ...], record: RunRecord, before: RunRecord | None, runs: list[RunRecord]
) -> tuple[QuestionReport, ...]:
    """Each question with its verdicts in the runs shown; those of other fragments or paths are not its own."""
    tables = [{verdict.key: verdict for verdict in run.verdicts} for run in runs]
    earlier = {verdict.key: verdict for verdict in before.verdicts} if before is not None else {}
    found = []
    for question, verdict in zip(questions, record.verdicts, strict=True):
        mine: list[Outcome | None] = []
        for table in tables:
            other = table.get(verdict.key)
            mine.append(other.outcome if other is not None and other.is_same_question(verdict) else None)
        last = earlier.get(verdict.key)
        was = last.outcome if last is not None and last.is_same_question(verdict) else None
        found.append(question.model_copy(update={"history": tuple(mine), "before": was}))
    return tuple(found)
