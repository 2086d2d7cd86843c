"""An eval's report: the one result that the mount, the command line, JUnit and the HTML page show."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from libraryfs.ask.result import Citation
from libraryfs.evals.change import PairedChange
from libraryfs.evals.drift import Comparison, Flip, SetChange
from libraryfs.evals.score import FragmentScore, Miss, Outcome
from libraryfs.evals.statistics import Direction

Status = Literal["completed", "failed"]
FailOn = Literal["regression", "drift", "never"]
"""What exit code 1 means: a regression, any drift (or a regression), or nothing."""
Conclusion = Literal["failed", "errors", "first run", "regression", "drift", "improvement", "no change shown"]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)


class QuestionReport(_Frozen):
    """One question: verdict, answer, and how each fragment was matched. With repeats, those of the majority's first."""

    question: str
    line: int
    must: bool = Field(False, description="marked [must] in the set: a pass that is lost here is a regression")
    paths: tuple[str, ...]
    outcome: Outcome
    miss: Miss | None = Field(None, description="retrieval, answer or error: the step that lost it")
    before: Outcome | None = Field(None, description="the verdict of the run before, where the question was in it")
    fragments: tuple[FragmentScore, ...] = ()
    answer: str | None = None
    message: str | None = Field(None, description="why there is no answer, in words")
    citations: tuple[Citation, ...] = ()
    evidence: tuple[str, ...] = Field((), description="paths of what was retrieved, best first")
    error: str | None = None
    degraded: tuple[str, ...] = ()
    repeats: int = 1
    passed_repeats: int = 0
    flip_rate: float | None = Field(None, description="chance that two runs of this question disagree")
    history: tuple[Outcome | None, ...] = Field((), description="verdicts in the report's `history`; null: not asked")


class Drift(_Frozen):
    """The change against the stored rate."""

    direction: Direction | None
    difference: float
    previous_pass_rate: float
    previous_passed: int
    previous_total: int
    previous_at: str
    previous_run: int | None


class RunPoint(_Frozen):
    """A kept run, for the curve. `drift`: it drifted against the run before it."""

    run: int | None
    at: str
    passed: int
    total: int
    errors: int
    pass_rate: float
    ci95: tuple[float, float]
    drift: bool
    pinned: bool


class Noise(_Frozen):
    """How much of a change is chance on this set. Rates are 0…1."""

    drift_takes: int = Field(description="questions whose change trips the 0.05 rule")
    significant_takes: int | None = Field(description="fewest questions that must fall for McNemar's test to show it")
    moves_at_10_percent: float = Field(
        description="how often the rate moves by 0.05 or more, were 10 % of verdicts noise"
    )
    false_alarms_at_10_percent: float = Field(description="of the 0.05 rule, were 10 % of verdicts noise")
    detectable_drop: float | None = Field(
        None, description="smallest fall of the mean share that the paired test shows in 80 % of runs, 0 to 1"
    )
    halved_by_questions: int | None = Field(None, description="questions that would halve detectable_drop")
    halved_by_repeats: int | None = Field(None, description="repeats that would halve it; null: not up to 50")
    measured_flip_rate: float | None = Field(None, description="mean over questions, from the repeats")
    false_alarms_measured: float | None = Field(None, description="of the 0.05 rule, at the flip rates measured")


class SelfTest(_Frozen):
    """The set against itself (`--aa`): all pairs of runs in which nothing changed."""

    runs: int
    pass_rates: tuple[float | None, ...]
    pairs: int
    drifted: int
    significant: int

    @property
    def false_alarm_rate(self) -> float:
        """The share of pairs that the 0.05 rule calls drift."""
        return self.drifted / self.pairs


class Trace(_Frozen):
    """What the run used and did. All that is time is under `…milliseconds`, and in the report's `at`."""

    models: dict[str, str] = {}
    prompt: str = ""
    judge: str = ""
    options: str = ""
    questions_asked: int = 0
    answers_kept: int = Field(0, description="answers taken from the cache")
    judge_calls: int = 0
    rulings_kept: int = Field(0, description="rulings taken from the cache")
    degraded: tuple[str, ...] = ()
    milliseconds: dict[str, float] = {}
    question_milliseconds: tuple[float, ...] = Field((), description="of each question that was asked, with repeats")


class EvalReport(_Frozen):
    """A run. `total` is passed and failed; errors are outside it. What compares is null on a first run."""

    ring: str
    item_id: str
    path: str
    run: int | None = None
    at: str
    status: Status = "completed"
    error: str | None = Field(None, description="why the run failed")
    passed: int
    total: int
    errors: int
    pass_rate: float | None
    ci95: tuple[float, float] | None
    drift_detected: bool | None = None
    drift: Drift | None = None
    drift_significant: bool | None = None
    drift_comparable: bool | None = None
    drift_reasons: tuple[str, ...] = ()
    p_value: float | None = None
    flips: tuple[Flip, ...] = ()
    set_change: SetChange = SetChange()
    paired: PairedChange | None = Field(None, description="against the last comparable runs together")
    must_lost: tuple[str, ...] = Field((), description="questions marked [must] that passed before and fail now")
    baseline: Comparison | None = Field(None, description="against the pinned run")
    paired_baseline: PairedChange | None = Field(None, description="the paired test against the pinned run")
    noise: Noise | None = None
    aa: SelfTest | None = None
    written: bool = False
    write_error: str | None = None
    notes: tuple[str, ...] = Field((), description="what the figures mean, in plain words")
    foot: tuple[str, ...] = Field((), description="how the judge was measured")
    questions: tuple[QuestionReport, ...] = ()
    history: tuple[RunPoint, ...] = Field((), description="kept runs, oldest first, this one last")
    trace: Trace = Trace()

    @property
    def regressed(self) -> bool:
        """A fall that the paired test shows, against the last runs or the baseline, or a [must] question lost.

        Where earlier runs kept no shares, McNemar's test takes the paired test's place.
        """
        lost = sum(flip.now == "failed" for flip in self.flips)
        fell = self.paired.fell if self.paired else bool(self.drift_significant) and 2 * lost > len(self.flips)
        below = self.baseline is not None and self.baseline.fell_significantly
        if self.paired_baseline is not None:
            below = self.paired_baseline.fell
        return bool(self.must_lost) or fell or below

    @property
    def drifted(self) -> bool:
        """The 0.05 rule, either way against the run before, or downwards against the baseline."""
        below = self.baseline is not None and self.baseline.detected and self.baseline.direction == "down"
        return bool(self.drift_detected) or below

    @property
    def conclusion(self) -> Conclusion:
        """The run in a word: what a person acts on."""
        if self.status == "failed":
            return "failed"
        if self.errors:
            return "errors"
        if self.regressed:
            return "regression"
        if self.drift is None and self.baseline is None:
            return "first run"
        if self.drifted:
            return "drift"
        return "improvement" if self.paired is not None and self.paired.rose else "no change shown"

    def fails(self, fail_on: FailOn = "regression") -> bool:
        """Whether the run is one that `fail_on` asks to hear of."""
        if fail_on == "never":
            return False
        return self.regressed or (fail_on == "drift" and self.drifted)

    def exit_code(self, fail_on: FailOn = "regression") -> int:
        """0: nothing to act on; 1: what `fail_on` names; 2: the set or the models are at fault."""
        if self.status == "failed" or self.errors or not self.total:
            return 2
        return 1 if self.fails(fail_on) else 0
