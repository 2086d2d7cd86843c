"""What the surfaces share: a run with the models of the settings, and a calibration."""

from collections.abc import Callable
from pathlib import Path

from libraryfs.ask import shared
from libraryfs.ask.pipeline import Models
from libraryfs.errors import ModelUnavailable
from libraryfs.evals import calibrate, runner
from libraryfs.evals.judge import ModelJudge
from libraryfs.evals.report import EvalReport
from libraryfs.evals.request import EvalRequest
from libraryfs.models.cancel import Cancel

Tell = Callable[[int, int, str | None], None]
"""Called with questions done, questions in all, and the rate so far as text."""


def run(
    snapshot: Path, principal: str, ring: str, request: EvalRequest, with_models: Models, tell: Tell | None = None
) -> EvalReport:
    """Runs a set, telling how far it is. Raises as `runner.run`."""

    def progress(now: runner.Progress) -> None:
        if tell is not None:
            rate = f"{now.passed}/{now.judged} passed" if now.judged else ""
            tell(now.done, now.total, rate)

    return runner.run(
        snapshot, principal, ring, request, with_models, surroundings=runner.Surroundings(progress=progress)
    )


def run_until(
    on_stop: Callable[[Callable[[], None]], None], snapshot: Path, principal: str, ring: str, request: EvalRequest
) -> EvalReport:
    """A run with the models that this process shares, cancelled when `on_stop` calls what it is given."""
    cancel = Cancel()
    on_stop(cancel.cancel)
    return runner.run(snapshot, principal, ring, request, shared.models(), cancel)


def calibration(
    rows: list[calibrate.Row], with_models: Models, progress: Callable[[int, int], None]
) -> calibrate.Calibration:
    """The judge of the settings against labelled rows. Raises ModelError where it cannot be used."""
    model = with_models.language_model
    if model is None:
        raise ModelUnavailable("LIBRARYFS_LLM is none: a judge is a language model; name one to calibrate it")
    return calibrate.calibrate(rows, ModelJudge(model, Cancel()), model.model, progress)
