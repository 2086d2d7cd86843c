"""Two runs of an eval set compared: the rate's drift, the questions that flipped, and whether it means anything."""

from collections import defaultdict
from difflib import get_close_matches
from fractions import Fraction

from pydantic import BaseModel, ConfigDict, Field

from libraryfs.evals.evalset import ABSTAIN, Question
from libraryfs.evals.score import Outcome
from libraryfs.evals.statistics import Count, Direction, direction, has_drifted, is_significant, mcnemar

_MOST_PAIRS = 10_000  # of removed and added questions that are looked at for a likeness


class Observation(BaseModel):
    """A question's share of matched fragments over its repeats, `matched` of `possible`.

    `draw` names the answers that it was measured on: runs that reuse kept answers observe nothing new, and have the
    same draw as the run that made them.
    """

    model_config = ConfigDict(frozen=True)

    matched: int = Field(ge=0)
    possible: int = Field(ge=1)
    draw: str

    @property
    def share(self) -> Fraction:
        """matched/possible."""
        return Fraction(self.matched, self.possible)


class Verdict(BaseModel):
    """What is kept of one question in a run. `expected` are its fragments, `asked` its paths, as the set had them.

    `observed` is None where the question had an error, and in runs of versions that did not keep it.
    """

    model_config = ConfigDict(frozen=True)

    key: str
    question: str
    expected: tuple[str, ...]
    asked: tuple[str, ...] = ()
    outcome: Outcome
    observed: Observation | None = None

    @classmethod
    def of(cls, question: Question, outcome: Outcome, observed: Observation | None = None) -> "Verdict":
        """The verdict on a question of a set."""
        return cls(
            key=question.key,
            question=question.text,
            expected=question.fragments,
            asked=question.paths,
            outcome=outcome,
            observed=observed,
        )

    @property
    def definition(self) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
        """What was asked and expected; equal for two verdicts that can be compared."""
        return self.key, self.expected, self.asked

    def is_same_question(self, other: "Verdict") -> bool:
        """Whether two verdicts are about the same words, fragments and paths."""
        return self.definition == other.definition


class Fingerprint(BaseModel):
    """What a rate depends on besides the library's content: runs that differ here are not comparable.

    `embedding_model` is the one that was searched with, "none" where that was keywords, whatever was set.
    """

    model_config = ConfigDict(frozen=True)

    language_model: str
    embedding_model: str
    prompt: str
    judge: str
    options: str


class RunRecord(BaseModel):
    """A run as it is kept and compared. Of a rate that came with an import, only the counts are known."""

    model_config = ConfigDict(frozen=True)

    run: int | None = None
    at: str = ""
    passed: int
    total: int
    errors: int = 0
    pinned: bool = False
    fingerprint: Fingerprint | None = None
    verdicts: tuple[Verdict, ...] = ()

    @property
    def count(self) -> Count:
        """The rate as counts."""
        return Count(self.passed, self.total)


class Flip(BaseModel):
    """A question whose verdict is another one now."""

    model_config = ConfigDict(frozen=True)

    question: str
    before: Outcome
    now: Outcome


class Reworded(BaseModel):
    """A question that was probably only rewritten; its two wordings are not compared."""

    model_config = ConfigDict(frozen=True)

    before: str
    now: str


class SetChange(BaseModel):
    """How the set itself changed. `regraded`: same words, other fragments or paths."""

    model_config = ConfigDict(frozen=True)

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    reworded: tuple[Reworded, ...] = ()
    regraded: tuple[str, ...] = ()

    def __str__(self) -> str:
        named = {"added": self.added, "removed": self.removed, "reworded": self.reworded, "regraded": self.regraded}
        return ", ".join(f"{len(questions)} {name}" for name, questions in named.items() if questions)


class Comparison(BaseModel):
    """This run against an earlier one. `shared` counts the questions that both judged, in the same words and grading.

    `p_value`: the exact McNemar test on those, None where no question is shared. `comparable` is False with `reasons`.
    """

    model_config = ConfigDict(frozen=True)

    run: int | None
    at: str
    passed: int
    total: int
    pass_rate: float
    difference: float
    direction: Direction | None
    detected: bool
    comparable: bool
    reasons: tuple[str, ...]
    shared: int
    shared_before: int
    shared_now: int
    worse: int
    better: int
    p_value: float | None
    significant: bool | None
    flips: tuple[Flip, ...]
    set_change: SetChange

    @property
    def fell_significantly(self) -> bool:
        """Whether McNemar's test shows a fall."""
        return bool(self.significant) and self.worse > self.better


def compare(before: RunRecord, now: RunRecord) -> Comparison:
    """`now` against `before`; both have a total of at least 1."""
    old = {verdict.key: verdict for verdict in before.verdicts}
    change = set_change(before.verdicts, now.verdicts) if before.verdicts else SetChange()
    both = [
        (old[verdict.key], verdict)
        for verdict in now.verdicts
        if verdict.key in old and old[verdict.key].is_same_question(verdict)
    ]
    judged = [(a, b) for a, b in both if "error" not in (a.outcome, b.outcome)]
    flips = tuple(
        Flip(question=b.question, before=a.outcome, now=b.outcome) for a, b in judged if a.outcome != b.outcome
    )
    worse = sum(flip.now == "failed" for flip in flips)
    better = len(flips) - worse
    reasons = _reasons(before, now, change)
    return Comparison(
        run=before.run,
        at=before.at,
        passed=before.passed,
        total=before.total,
        pass_rate=before.count.rate,
        difference=now.count.rate - before.count.rate,
        direction=direction(before.count, now.count),
        detected=has_drifted(before.count, now.count),
        comparable=not reasons,
        reasons=reasons,
        shared=len(judged),
        shared_before=sum(a.outcome == "passed" for a, _ in judged),
        shared_now=sum(b.outcome == "passed" for _, b in judged),
        worse=worse,
        better=better,
        p_value=mcnemar(worse, better) if judged else None,
        significant=is_significant(worse, better) if judged else None,
        flips=flips,
        set_change=change,
    )


def is_comparable(before: RunRecord, now: RunRecord) -> bool:
    """Whether the two runs measure the same: models, prompt, judge, options and set. Errors do not count here."""
    if before.fingerprint is None or before.fingerprint != now.fingerprint:
        return False
    return {verdict.definition for verdict in before.verdicts} == {verdict.definition for verdict in now.verdicts}


def set_change(before: tuple[Verdict, ...], now: tuple[Verdict, ...]) -> SetChange:
    """What was added, removed, reworded and regraded between the sets of two runs."""
    old, new = {verdict.key: verdict for verdict in before}, {verdict.key: verdict for verdict in now}
    added = [verdict for key, verdict in new.items() if key not in old]
    removed = [verdict for key, verdict in old.items() if key not in new]
    pairs = _reworded(removed, added)
    gone, come = {a.key for a, _ in pairs}, {b.key for _, b in pairs}
    return SetChange(
        added=tuple(verdict.question for verdict in added if verdict.key not in come),
        removed=tuple(verdict.question for verdict in removed if verdict.key not in gone),
        reworded=tuple(Reworded(before=a.question, now=b.question) for a, b in pairs),
        regraded=tuple(new[key].question for key in new if key in old and not old[key].is_same_question(new[key])),
    )


def _reworded(removed: list[Verdict], added: list[Verdict]) -> list[tuple[Verdict, Verdict]]:
    """Pairs that are one question in other words: the same fragments expected, or words that are much alike."""
    pairs: list[tuple[Verdict, Verdict]] = []
    by_fragments: dict[tuple[str, ...], list[Verdict]] = defaultdict(list)
    for verdict in removed:
        if verdict.expected != (ABSTAIN,):
            by_fragments[verdict.expected].append(verdict)
    rest: list[Verdict] = []
    for verdict in added:
        alike = by_fragments.get(verdict.expected)
        if alike:
            pairs.append((alike.pop(0), verdict))
        else:
            rest.append(verdict)
    taken = {a.key for a, _ in pairs}
    left = {verdict.key: verdict for verdict in removed if verdict.key not in taken}
    for verdict in rest if len(rest) * len(left) <= _MOST_PAIRS else ():
        for key in get_close_matches(verdict.key, left, n=1):
            pairs.append((left.pop(key), verdict))
    return pairs


def _reasons(before: RunRecord, now: RunRecord, change: SetChange) -> tuple[str, ...]:
    """Why the two rates do not measure the same thing; empty when they do."""
    reasons = []
    if before.fingerprint is None or now.fingerprint is None:
        reasons.append("of the earlier run only the rate is kept")
    else:
        for name in Fingerprint.model_fields:
            was, is_now = getattr(before.fingerprint, name), getattr(now.fingerprint, name)
            if was != is_now:
                reasons.append(f"the {name.replace('_', ' ')} changed: {was} → {is_now}")
    if str(change):
        reasons.append(f"the set changed: {change}")
    for run, words in ((before, "the earlier run"), (now, "this run")):
        if run.errors:
            reasons.append(f"{words} had {run.errors} error{'s' * (run.errors != 1)}")
    return tuple(reasons)
