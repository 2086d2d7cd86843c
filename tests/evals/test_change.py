"""What a run is compared with, what counts as a regression, and what [must] does."""

import pytest

from libraryfs.errors import EvalSetError
from libraryfs.evals.evalset import parse_evalset
from tests.evals.world import World, set_text


def test_runs_that_measured_the_same_are_pooled(world: World) -> None:
    for _ in range(7):
        last = world.run(cache=False)
    assert last.paired is not None
    assert last.paired.runs == (6, 5, 4, 3, 2)
    assert (last.paired.p_drop, last.paired.p_rise, last.conclusion) == (1, 1, "no change shown")
    world.rewrite(set_text(9))
    shorter = world.run(cache=False)
    assert shorter.paired is not None
    assert (shorter.paired.runs, shorter.paired.questions) == ((7,), 9)  # none is comparable: the last of all


def test_a_fall_is_a_regression_though_the_rule_is_silent(world: World) -> None:
    """Each fall halves the p-value with one earlier run; with five, it takes a sixth."""
    for _ in range(5):
        world.run(cache=False)
    world.wrong = {1, 2}
    found = world.run(cache=False)
    assert found.paired is not None
    assert found.paired.p_drop == round(1 / 36, 6)
    assert (found.conclusion, found.exit_code(), found.exit_code("never")) == ("regression", 1, 0)
    world.wrong = set()
    assert world.run(cache=False).exit_code() == 0


def test_answers_that_are_only_reused_are_no_new_observations(world: World) -> None:
    """Five runs from kept answers are one draw: two falls after them show nothing yet."""
    world.run()
    for _ in range(4):
        world.run()
    world.wrong = {1, 2}
    found = world.run(cache=False)
    assert found.paired is not None
    assert found.paired.p_drop == 0.25
    assert found.exit_code() == 0
    again = world.run()
    assert again.paired is not None
    assert again.trace.questions_asked == 0
    assert (again.paired.p_drop, again.exit_code()) == (1, 0)  # nothing has changed since the last run


def test_the_share_counts_fragments_and_repeats(world: World) -> None:
    world.rewrite("## What is 1?\n- value 1\n- VALUE\n- it is\n- absent\n")
    world.run(cache=False, repeats=3)
    world.pipeline = None
    world.pipeline = world.ask
    world.wrong = {1}
    found = world.run(cache=False, repeats=3)
    assert found.paired is not None
    assert found.paired.difference == -0.75


def test_a_pass_lost_where_it_must_not_be(world: World) -> None:
    world.rewrite(set_text().replace("What is 3?", "What is 3? [must]").replace("What is 4?", "What is 4?  [MUST]"))
    world.wrong = {4}
    first = world.run()
    assert [question.question for question in first.questions if question.must] == ["What is 3?", "What is 4?"]
    assert (first.must_lost, first.exit_code()) == ((), 0)
    world.wrong = {3, 4, 5}
    lost = world.run(cache=False)
    assert (lost.must_lost, lost.conclusion, lost.exit_code()) == (("What is 3?",), "regression", 1)
    world.wrong = {5}
    world.run(cache=False, baseline="this")
    world.wrong = {3}
    world.run(cache=False)
    assert world.run(cache=False).must_lost == ("What is 3?",)  # the baseline has it


@pytest.mark.parametrize("heading", ["[must]", " [must] "])
def test_a_mark_alone_is_no_question(heading: str) -> None:
    with pytest.raises(EvalSetError, match="line 1: a '##' heading without a question"):
        parse_evalset(f"## {heading}\n- a\n".encode())


def test_runs_of_a_snapshot_that_kept_no_shares(world: World) -> None:
    """An older snapshot: McNemar's test takes the paired test's place, and reading it fails nowhere."""
    world.run()
    world.build.db.execute("DROP TABLE eval_shares")
    world.wrong = {1, 2, 3, 4, 5, 6}
    test = world.run(aa=True)
    assert test.paired is None
    assert (test.drift_significant, test.conclusion) == (True, "regression")
