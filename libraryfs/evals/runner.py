"""A run of an eval set: load → ask → score → compare and write back → report."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from libraryfs.ask import pipeline, prompt
from libraryfs.ask.pipeline import Models
from libraryfs.errors import Cancelled, InvalidRequest, ModelError
from libraryfs.evals import noise, questions
from libraryfs.evals.asking import Ask, Asker, LibraryWithout
from libraryfs.evals.assemble import Finished, failed
from libraryfs.evals.drift import Fingerprint, Observation, RunRecord, Verdict
from libraryfs.evals.judge import ModelJudge
from libraryfs.evals.load import Loaded, load
from libraryfs.evals.model_failures import Failures, watched
from libraryfs.evals.questions import Repeat
from libraryfs.evals.report import EvalReport, Trace
from libraryfs.evals.request import EvalRequest
from libraryfs.evals.score import Outcome, score
from libraryfs.evals.writeback import THIS, compare_only, write_back
from libraryfs.library.resolver import Library
from libraryfs.models import defaults
from libraryfs.models.cancel import Cancel
from libraryfs.rows import iso
from libraryfs.settings import settings
from libraryfs.store import evals as store
from libraryfs.store import vectors
from libraryfs.store.answers import Answers
from libraryfs.store.snapshot import Snapshot


class Progress(NamedTuple):
    """How far a run is: answers of all that will be asked, and the rate so far."""

    done: int
    total: int
    passed: int
    judged: int


class Surroundings(NamedTuple):
    """What a run works with besides its request. Tests put their own clock and pipeline here."""

    ask: Ask = pipeline.ask
    now_ns: Callable[[], int] = time.time_ns
    progress: Callable[[Progress], None] = lambda progress: None


def run(
    snapshot_path: Path,
    principal: str,
    ring: str,
    request: EvalRequest,
    models: Models,
    cancel: Cancel | None = None,
    surroundings: Surroundings | None = None,
) -> EvalReport:
    """Runs the set that the request names in `ring` ("/ring/dev"), as the principal. Blocks.

    Raises PathNotFound, EvalSetError, InvalidRequest, SnapshotError before the first question, and Cancelled; nothing
    is written then. A model that fails ends the run: the report says at which question, and nothing is written.
    """
    with Snapshot.open(snapshot_path) as snapshot:
        loaded = load(Library(snapshot, principal), ring, request)
        _check_baseline(snapshot, loaded, request.baseline)
        failures = Failures()
        with _answers() as answers:
            one = _Run(
                library=LibraryWithout(snapshot, principal, loaded.hidden),
                loaded=loaded,
                request=request,
                models=watched(models, failures),
                failures=failures,
                cancel=cancel or Cancel(),
                around=surroundings or Surroundings(),
                answers=answers,
            )
            return one.report()


@contextmanager
def _answers() -> Iterator[Answers | None]:
    answers = Answers.open(settings().cache_path / "eval-answers.db")
    try:
        yield answers
    finally:
        if answers is not None:
            answers.close()


def _check_baseline(snapshot: Snapshot, loaded: Loaded, pin: str | None) -> None:
    if pin not in (None, THIS) and store.find(snapshot.db, loaded.item.ino, int(pin)) is None:
        kept = ", ".join(str(run.number) for run in store.every(snapshot.db, loaded.item.ino)) or "none"
        raise InvalidRequest(f"baseline: no run {pin} of {loaded.path} is kept; there are: {kept}")


@dataclass
class _Run:
    """One run's state: what it was given, and what it has counted so far."""

    library: LibraryWithout
    loaded: Loaded
    request: EvalRequest
    models: Models
    failures: Failures
    cancel: Cancel
    around: Surroundings
    answers: Answers | None
    judge: ModelJudge | None = None
    asker: Asker | None = None
    fingerprint: Fingerprint | None = None
    milliseconds: dict[str, float] = field(default_factory=lambda: {"ask": 0.0, "score": 0.0})
    question_milliseconds: list[float] = field(default_factory=list)

    @property
    def repeats(self) -> int:
        """How often each question is asked."""
        wanted = self.request.repeats or self.loaded.evalset.options.repeats
        return max(2, wanted) if self.request.aa else wanted

    def report(self) -> EvalReport:
        """Asks everything, then stores and compares."""
        at_ns, began = self.around.now_ns(), time.monotonic()
        table: list[list[Repeat]] = []
        try:
            self._prepare()
            for row in self._ask_all():
                table.append(row)  # one by one: a run that fails reports what it has
        except Cancelled:
            raise
        except ModelError as error:
            return self._failed(at_ns, table, error)
        self.milliseconds["total"] = _since(began)
        reports = questions.reports(self.loaded, table)
        record = self._record([question.outcome for question in reports], at_ns, [questions.observed(r) for r in table])
        trace = self._trace(table)
        if not record.total:
            first = next(question.error for question in reports if question.error)
            return failed(self.loaded, iso(at_ns), f"no question could be judged: {first}", reports, trace)
        columns = [self._record([row[i].score.outcome for row in table], at_ns) for i in range(self.repeats)]
        testable = self.request.aa and all(column.total for column in columns)
        finished = Finished(
            loaded=self.loaded,
            record=record,
            questions=reports,
            trace=trace,
            self_test=noise.against_itself(columns) if testable else None,
            judged_by=self.judge.model if self.judge is not None else None,
        )
        if self.request.aa:
            return compare_only(self.library.snapshot, finished, self.request.baseline)
        return write_back(self.library.snapshot, self.library.principal, finished, at_ns, self.request.baseline)

    def _prepare(self) -> None:
        """Names the models; raises ModelUnavailable where one cannot be used as it is set."""
        options, model = self.loaded.evalset.options, self.models.language_model
        chosen = (self.request.llm_judge, options.llm_judge, True)
        wants_judge = next(choice for choice in chosen if choice is not None)
        if wants_judge and model is not None:
            self.judge = ModelJudge(model, self.cancel, self.answers if self.request.cache else None)
        budget = options.latency_budget_ms
        embedding_model = self.models.embedder.model if self.models.embedder is not None else "none"
        self.fingerprint = Fingerprint(
            language_model=model.model if model is not None else "none",
            embedding_model=self._searched_with(embedding_model),
            prompt=str(prompt.VERSION),
            judge=self.judge.identity if self.judge is not None else "none",
            options=f"retrieval {options.retrieval}, repeats {self.repeats}"
            + (f", latency budget {budget} ms" if budget else ""),
        )
        self.asker = Asker(
            self.library,
            self.models,
            self.around.ask,
            self.fingerprint.model_copy(
                update={"judge": "", "options": "", "embedding_model": embedding_model}
            ).model_dump_json(),
            self.cancel,
            self.answers,
            failures=self.failures,
            use_kept=self.request.cache and not self.request.aa,
        )

    def _searched_with(self, model: str) -> str:
        """The embedding model, or "none" where the snapshot has no vectors of it: then keywords are searched."""
        stored = vectors.embedder(self.library.snapshot.db)
        return model if stored is not None and stored.is_of(defaults.alike(model), stored.dimension) else "none"

    def _ask_all(self) -> Iterator[list[Repeat]]:
        """The repeats of each question, in the order of the set."""
        assert self.asker is not None
        pairs = list(zip(self.loaded.evalset.questions, self.loaded.requests, strict=True))
        passed = judged = 0
        for number, (question, request) in enumerate(pairs, 1):
            row, began = [], time.monotonic()
            for repeat in range(self.repeats):
                self.cancel.check()
                start = time.monotonic()
                asked = self.asker(request, repeat)
                self.failures.check()
                middle = time.monotonic()
                if asked.error is not None:
                    verdict = questions.error(asked.error)
                else:
                    answer = asked.answer if asked.answer is not None or asked.abstained else ""
                    verdict = score(question, answer, self.asker.evidence_texts(asked), self.judge)
                self.milliseconds["ask"] += 1000 * (middle - start)
                self.milliseconds["score"] += _since(middle)
                row.append(Repeat(asked, verdict))
            self.question_milliseconds.append(round(_since(began), 3))
            outcome = questions.majority(row)
            passed += outcome == "passed"
            judged += outcome != "error"
            self.around.progress(Progress(number, len(pairs), passed, judged))
            yield row

    def _record(
        self, outcomes: Sequence[Outcome], at_ns: int, observed: Sequence[Observation | None] = ()
    ) -> RunRecord:
        errors, passed = outcomes.count("error"), outcomes.count("passed")
        asked = self.loaded.evalset.questions
        kept = observed or [None] * len(asked)
        return RunRecord(
            at=iso(at_ns),
            passed=passed,
            total=len(outcomes) - errors,
            errors=errors,
            fingerprint=self.fingerprint,
            verdicts=tuple(Verdict.of(*row) for row in zip(asked, outcomes, kept, strict=True)),
        )

    def _failed(self, at_ns: int, table: list[list[Repeat]], error: ModelError) -> EvalReport:
        total = len(self.loaded.requests)
        where = f"question {len(table) + 1} of {total}" if self.fingerprint is not None else "before the first question"
        text = f"{where}: {error.code}: {error.message}"
        return failed(self.loaded, iso(at_ns), text, questions.reports(self.loaded, table), self._trace(table))

    def _trace(self, table: list[list[Repeat]]) -> Trace:
        marks = self.fingerprint
        degraded = [reason for row in table for repeat in row for reason in repeat.asked.degraded]
        if marks is not None and marks.language_model == "none" and self.request.llm_judge is not False:
            degraded.append("no language model is set, so no judge: fragments are matched as substrings only")
        return Trace(
            models={"embedding": marks.embedding_model, "language": marks.language_model} if marks else {},
            prompt=marks.prompt if marks else "",
            judge=marks.judge if marks else "",
            options=marks.options if marks else "",
            questions_asked=self.asker.asked if self.asker else 0,
            answers_kept=self.asker.kept if self.asker else 0,
            judge_calls=self.judge.calls if self.judge else 0,
            rulings_kept=self.judge.kept if self.judge else 0,
            degraded=questions.grouped(degraded),
            milliseconds={step: round(spent, 3) for step, spent in self.milliseconds.items()},
            question_milliseconds=tuple(self.question_milliseconds),
        )


def _since(start: float) -> float:
    return 1000 * (time.monotonic() - start)
