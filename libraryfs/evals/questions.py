"""The repeats of a question → its line in the report."""

import re
from collections.abc import Sequence
from hashlib import blake2b
from typing import NamedTuple

from libraryfs.evals.asking import AskedQuestion
from libraryfs.evals.drift import Observation
from libraryfs.evals.evalset import Question
from libraryfs.evals.load import Loaded
from libraryfs.evals.report import QuestionReport
from libraryfs.evals.score import Outcome, Score
from libraryfs.evals.statistics import flip_rate


class Repeat(NamedTuple):
    """One answer to a question, and its verdict."""

    asked: AskedQuestion
    score: Score


def error(reason: str) -> Score:
    """The verdict on a question that has no answer to judge."""
    return Score(outcome="error", miss="error", error=reason)


def majority(repeats: Sequence[Repeat]) -> Outcome:
    """The verdict of most repeats; a tie fails. Errors have no vote, unless there is nothing else."""
    outcomes = [repeat.score.outcome for repeat in repeats]
    passed, failed = outcomes.count("passed"), outcomes.count("failed")
    if not passed and not failed:
        return "error"
    return "passed" if passed > failed else "failed"


def observed(repeats: Sequence[Repeat]) -> Observation | None:
    """The share of fragments that the repeats matched; None where no repeat could be judged."""
    judged = [repeat for repeat in repeats if repeat.score.outcome != "error"]
    if not judged:
        return None
    fragments = [fragment for repeat in judged for fragment in repeat.score.fragments]
    draws = sorted(repeat.asked.draw for repeat in judged)
    return Observation(
        matched=sum(fragment.matched is True for fragment in fragments),
        possible=len(fragments),
        draw=blake2b(" ".join(draws).encode(), digest_size=8).hexdigest(),
    )


def reports(loaded: Loaded, table: Sequence[Sequence[Repeat]]) -> tuple[QuestionReport, ...]:
    """The questions asked so far, in the order of the set."""
    rows = zip(loaded.evalset.questions, loaded.requests, table, strict=False)
    return tuple(_report(question, request.paths, row) for question, request, row in rows)


def _report(asked: Question, paths: tuple[str, ...], repeats: Sequence[Repeat]) -> QuestionReport:
    outcome = majority(repeats)
    shown = next(repeat for repeat in repeats if repeat.score.outcome == outcome)
    judged = [repeat for repeat in repeats if repeat.score.outcome != "error"]
    passed = sum(repeat.score.outcome == "passed" for repeat in judged)
    return QuestionReport(
        question=asked.text,
        line=asked.line,
        must=asked.must,
        paths=paths,
        outcome=outcome,
        miss=shown.score.miss,
        fragments=shown.score.fragments,
        answer=shown.asked.answer,
        message=shown.asked.message,
        citations=shown.asked.citations,
        evidence=shown.asked.evidence,
        error=shown.score.error,
        degraded=shown.asked.degraded,
        repeats=len(repeats),
        passed_repeats=passed,
        flip_rate=flip_rate(passed, len(judged)),
    )


def grouped(reasons: Sequence[str]) -> tuple[str, ...]:
    """The reasons without repeats; those that differ in figures only are told once, with how many answers had them."""
    groups: dict[str, list[str]] = {}
    for reason in reasons:
        groups.setdefault(re.sub(r"\d+", "0", reason), []).append(reason)
    return tuple(
        found[0] if len(set(found)) == 1 else f"{found[0]}, and the like in {len(found)} answers"
        for found in groups.values()
    )
