"""The reading test: who writes answers."""

from pathlib import Path

import pytest

from libraryfs.ask import exam
from libraryfs.errors import ModelCrashed
from libraryfs.models.cancel import Cancel
from tests.ask.fake_model import Scripted


class Here(Scripted):
    """One that runs here, so that its result is kept."""

    supports_likelihoods = True


def test_who_reads_well_writes() -> None:
    assert exam.take(Scripted("x"), Cancel()) == (True, len(exam.QUESTIONS), 0)


def test_who_makes_things_up_does_not_and_the_test_ends_there() -> None:
    model = Scripted("x", capable=False)
    assert exam.take(model, Cancel()) == (False, 2, 2)
    assert model.examined == 2


def test_a_result_is_kept_for_a_model_that_runs_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIBRARYFS_CACHE", str(tmp_path))
    first, second = Here("x"), Here("x")
    second.model = first.model
    result = exam.sit(first, Cancel())
    monkeypatch.setattr(exam, "_results", {})  # as in another process
    assert exam.sit(second, Cancel()) == result
    assert (first.examined, second.examined) == (len(exam.QUESTIONS), 0)


def test_a_failure_is_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Scripted("x")

    def fail(*_: object, **__: object) -> None:
        raise ModelCrashed("killed")

    with monkeypatch.context() as patched:
        patched.setattr(model, "generate", fail)
        with pytest.raises(ModelCrashed):
            exam.sit(model, Cancel())
    assert exam.sit(model, Cancel()).writes
