"""Comparing runs: flips, changed sets, and each reason for which two rates are not comparable."""

import pytest

from libraryfs.evals.drift import Fingerprint, RunRecord, Verdict, compare
from libraryfs.evals.evalset import ABSTAIN
from libraryfs.evals.score import Outcome

_FINGERPRINT = Fingerprint(language_model="lm", embedding_model="em", prompt="1", judge="none", options="vector")


def _run(
    outcomes: dict[str, Outcome], *, fingerprint: Fingerprint | None = _FINGERPRINT, expected: str | None = None
) -> RunRecord:
    judged = [outcome for outcome in outcomes.values() if outcome != "error"]
    verdicts = tuple(
        Verdict(key=text, question=text, expected=(expected or f"of {text}",), outcome=outcome)
        for text, outcome in outcomes.items()
    )
    return RunRecord(
        run=1,
        at="2026-01-01T00:00:00Z",
        passed=judged.count("passed"),
        total=len(judged),
        errors=len(outcomes) - len(judged),
        fingerprint=fingerprint,
        verdicts=verdicts,
    )


def _numbered(passed: int, total: int) -> dict[str, Outcome]:
    return {f"question {i}": "passed" if i < passed else "failed" for i in range(total)}


def test_nothing_changed() -> None:
    found = compare(_run(_numbered(17, 20)), _run(_numbered(17, 20)))
    assert (found.detected, found.direction, found.difference) == (False, None, 0)
    assert (found.comparable, found.reasons, found.flips, found.p_value) == (True, (), (), 1)
    assert not found.fell_significantly


def test_exactly_five_points_are_no_drift() -> None:
    found = compare(_run(_numbered(17, 20)), _run(_numbered(16, 20)))
    assert (found.detected, found.direction) == (False, "down")
    assert [(flip.question, flip.before, flip.now) for flip in found.flips] == [("question 16", "passed", "failed")]


def test_a_fall_that_shows() -> None:
    found = compare(_run(_numbered(18, 20)), _run(_numbered(12, 20)))
    assert (found.detected, found.direction, found.worse, found.better) == (True, "down", 6, 0)
    assert found.p_value == 0.03125
    assert found.significant
    assert found.fell_significantly
    back = compare(_run(_numbered(12, 20)), _run(_numbered(18, 20)))
    assert (back.detected, back.direction, back.significant, back.fell_significantly) == (True, "up", True, False)


def test_same_rate_other_questions() -> None:
    found = compare(_run({"a": "passed", "b": "failed"}), _run({"a": "failed", "b": "passed"}))
    assert (found.difference, found.worse, found.better, len(found.flips)) == (0, 1, 1, 2)


def test_errors_are_outside_the_comparison() -> None:
    found = compare(_run({"a": "passed", "b": "passed"}), _run({"a": "passed", "b": "error"}))
    assert (found.shared, found.flips, found.comparable) == (1, (), False)
    assert found.reasons == ("this run had 1 error",)


def test_a_changed_set_is_compared_on_what_it_shares() -> None:
    before = _run({"same": "passed", "when do we deploy?": "passed", "who is on call?": "passed", "left out": "failed"})
    now = _run({"same": "failed", "when do we deploy it?": "passed", "on which days is nobody there?": "passed"})
    found = compare(before, now)
    assert (found.shared, found.worse, found.p_value) == (1, 1, 1)
    change = found.set_change
    assert [(pair.before, pair.now) for pair in change.reworded] == [("when do we deploy?", "when do we deploy it?")]
    assert change.added == ("on which days is nobody there?",)
    assert change.removed == ("who is on call?", "left out")
    assert found.reasons == ("the set changed: 1 added, 2 removed, 1 reworded",)
    assert not found.comparable


def test_reworded_by_its_fragments() -> None:
    found = compare(_run({"alpha": "passed"}, expected="x"), _run({"something else": "passed"}, expected="x"))
    assert len(found.set_change.reworded) == 1
    apart = compare(_run({"alpha": "passed"}, expected=ABSTAIN), _run({"something else": "passed"}, expected=ABSTAIN))
    assert apart.set_change.reworded == ()
    assert (apart.shared, apart.p_value, apart.significant) == (0, None, None)


def test_other_fragments_are_another_question() -> None:
    found = compare(_run({"a": "passed"}), _run({"a": "failed"}, expected="another"))
    assert (found.shared, found.set_change.regraded) == (0, ("a",))


@pytest.mark.parametrize("field", ["language_model", "embedding_model", "prompt", "judge", "options"])
def test_what_makes_runs_incomparable(field: str) -> None:
    other = _FINGERPRINT.model_copy(update={field: "other"})
    found = compare(_run(_numbered(2, 2)), _run(_numbered(2, 2), fingerprint=other))
    assert not found.comparable
    assert found.reasons == (f"the {field.replace('_', ' ')} changed: {getattr(_FINGERPRINT, field)} → other",)


def test_only_a_rate_is_known_of_the_earlier_run() -> None:
    found = compare(RunRecord(passed=18, total=20), _run(_numbered(10, 20)))
    assert (found.detected, found.direction, found.comparable, found.shared, found.significant) == (
        True,
        "down",
        False,
        0,
        None,
    )
    assert found.reasons == ("of the earlier run only the rate is kept",)
    assert str(found.set_change) == ""


def test_two_thousand_questions_replaced() -> None:
    before = _run(_numbered(1000, 2000))
    now = _run({f"other {i}": "passed" for i in range(2000)})
    assert compare(before, now).shared == 0
