"""This run against its last comparable runs together: the paired test that the verdict rests on."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import islice

from pydantic import BaseModel, ConfigDict, Field

from libraryfs.evals import paired
from libraryfs.evals.drift import RunRecord, Verdict, is_comparable


class PairedChange(BaseModel):
    """The paired permutation test of each question's share of matched fragments, this run against earlier ones."""

    model_config = ConfigDict(frozen=True)

    runs: tuple[int | None, ...] = Field(description="numbers of the earlier runs that were pooled, newest first")
    questions: int = Field(description="questions that were compared: in the same words, with the same fragments")
    difference: float = Field(description="mean change of a question's share of matched fragments, -1 to 1")
    p_drop: float = Field(description="one-sided p-value of a fall, 0 to 1")
    p_rise: float = Field(description="one-sided p-value of a rise, 0 to 1")
    exact: bool = Field(description="whether the p-values are exact, or from 20,000 random draws")

    @property
    def fell(self) -> bool:
        """Whether the test shows a fall."""
        return self.p_drop < paired.SIGNIFICANT

    @property
    def rose(self) -> bool:
        """Whether the test shows a rise."""
        return self.p_rise < paired.SIGNIFICANT


def pooled(kept: Sequence[RunRecord], now: RunRecord) -> list[RunRecord]:
    """The last runs that measured the same as `now`, at most 5, newest first; without one, the last run of all."""
    comparable = (run for run in reversed(kept) if is_comparable(run, now))
    return list(islice(comparable, paired.MAX_POOLED)) or list(kept[-1:])


def measure(earlier: Sequence[RunRecord], now: RunRecord) -> PairedChange | None:
    """`now` against `earlier`, newest first; None where they share no question with a known share."""
    tables = [{verdict.key: verdict for verdict in run.verdicts} for run in earlier]
    rows = [row for verdict in now.verdicts if (row := _shares(verdict, tables)) is not None]
    if not rows:
        return None
    tested = paired.test(rows)
    return PairedChange(
        runs=tuple(run.run for run in earlier),
        questions=len(rows),
        difference=round(tested.difference, 6),
        p_drop=round(tested.p_drop, 6),
        p_rise=round(tested.p_rise, 6),
        exact=tested.exact,
    )


def _shares(verdict: Verdict, tables: Sequence[dict[str, Verdict]]) -> paired.Shares | None:
    """The question's shares, each draw of answers once: an answer that was only reused tells nothing new."""
    if verdict.observed is None:
        return None
    draws: dict[str, Fraction] = {}
    for table in tables:
        other = table.get(verdict.key)
        if other is not None and other.observed is not None and other.is_same_question(verdict):
            draws.setdefault(other.observed.draw, other.observed.share)
    if not draws:
        return None
    now = verdict.observed
    if next(iter(draws)) == now.draw:  # nothing has changed since the last run
        return paired.Shares(now.share, (now.share,))
    others = tuple(share for draw, share in draws.items() if draw != now.draw)
    return paired.Shares(now.share, others)


def must_lost(now: RunRecord, must: frozenset[str], references: Sequence[RunRecord]) -> tuple[str, ...]:
    """The questions of the keys `must` that passed in one of `references` and fail now."""
    passed = {verdict.definition for run in references for verdict in run.verdicts if verdict.outcome == "passed"}
    return tuple(
        verdict.question
        for verdict in now.verdicts
        if verdict.key in must and verdict.outcome == "failed" and verdict.definition in passed
    )
