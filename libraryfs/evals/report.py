"""An eval's report: the one result that the mount, the command line, JUnit and the HTML page show."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from libraryfs.ask.result import Citation
from libraryfs.evals.drift import Comparison, Flip, SetChange
from libraryfs.evals.score import FragmentScore, Miss, Outcome
from libraryfs.evals.statistics import Direction

Status = Literal["completed", "failed"]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)


class QuestionReport(_Frozen):
    """One question: verdict, answer, and how each fragment was matched. With repeats, those of the majority's first."""

    question: str
    line: int
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
    """What the run used and did. All that is time is under `milliseconds`, and in the report's `at`."""

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
    baseline: Comparison | None = Field(None, description="against the pinned run")
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
        """Drift either way, a fall that McNemar's test shows, or a fall against the baseline."""
        fell = self.drift_significant and sum(f.now == "failed" for f in self.flips) * 2 > len(self.flips)
        return bool(self.drift_detected or fell or (self.baseline is not None and self.baseline.is_regression))

    @property
    def exit_code(self) -> int:
        """0: passed without drift; 1: drift or regression; 2: the set or the models are at fault."""
        if self.status == "failed" or self.errors or not self.total:
            return 2
        return 1 if self.regressed else 0
