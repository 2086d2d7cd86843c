"""Kept runs, repeats, the set against itself, the baseline, and the cache of answers."""

from typing import Any

import pytest

from libraryfs.ask.pipeline import Models
from libraryfs.errors import InvalidRequest
from libraryfs.store import access, workspace
from tests.evals.fake_model import FakeLanguageModel
from tests.evals.world import RING, SET, World, set_text


def test_fifty_runs_are_kept(world: World) -> None:
    world.rewrite(set_text(2))
    for number in range(53):
        world.wrong = {number % 2}
        found = world.run(cache=False)
    assert found.run == 53
    assert [point.run for point in found.history] == list(range(4, 54))
    assert len(found.questions[0].history) == 50
    assert found.questions[0].history[-2:] == ("passed", "failed")
    stored = world.stored()
    assert len(stored["eval_runs"]) == 50
    assert len(stored["eval_verdicts"]) == 100
    assert len(stored["eval_questions"]) == 2


def test_questions_that_no_kept_run_asked_are_forgotten(world: World) -> None:
    world.rewrite("## Once, 1?\n- value 1\n")
    world.run()
    world.rewrite(set_text(1))
    for _ in range(50):
        world.run()
    assert len(world.stored()["eval_questions"]) == 1


def test_runs_go_with_their_item(world: World) -> None:
    world.run()
    with world.build.snapshot.transaction():
        workspace.delete(world.build.db, world.build.entry(workspace, RING, "set").ino)
    stored = world.stored()
    assert (stored["eval_runs"], stored["eval_verdicts"], stored["eval_questions"]) == ([], [], [])


def test_a_pinned_baseline_catches_a_slow_slide(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("libraryfs.store.evals.KEPT_RUNS", 3)
    monkeypatch.setattr("libraryfs.evals.assemble.KEPT_RUNS", 3)
    for n in range(10, 20):
        world.build.memory(RING, f"m{n}", content=f"The value {n} is the value of {n}.")
    world.rewrite(set_text(20))
    first = world.run(cache=False, baseline="this")
    assert first.history[-1].pinned
    found = first
    for slide in range(5):
        world.wrong = set(range(min(slide, 2)))
        found = world.run(cache=False)
        assert found.drift_detected is False  # never more than one question in twenty from run to run
    assert found.baseline is not None
    assert (found.baseline.run, found.baseline.detected, found.baseline.direction) == (1, True, "down")
    assert (found.exit_code(), found.exit_code("drift")) == (0, 1)
    assert [point.run for point in found.history] == [1, 4, 5, 6]  # the pinned run does not fall off
    assert any("Against the baseline, run 1: 20/20 then, 18/20 now, which is drift." in note for note in found.notes)
    moved = world.run(cache=False, baseline="5")
    assert moved.baseline is not None
    assert (moved.baseline.run, moved.baseline.detected) == (5, False)
    assert [point.run for point in moved.history if point.pinned] == [5]


def test_each_set_counts_its_own_runs(world: World) -> None:
    """The first is run 1, whatever other sets have run; a baseline is named by that number, of this set alone."""
    world.build.item(RING, "other", name="other.md", content=set_text())
    assert [world.run().run for _ in range(3)] == [1, 2, 3]
    first = world.run(workspace_item_id="other", cache=False)
    assert first.run == 1
    world.wrong = {1, 2}
    again = world.run(workspace_item_id="other", cache=False, baseline="1")
    assert (again.run, again.drift.previous_run if again.drift else None) == (2, 1)
    assert again.baseline is not None
    assert (again.baseline.run, again.baseline.passed) == (1, first.passed)
    assert [(point.run, point.pinned) for point in again.history] == [(1, True), (2, False)]
    with pytest.raises(InvalidRequest, match=r"no run 3 of .* is kept; there are: 1, 2$"):
        world.run(workspace_item_id="other", baseline="3")


def test_runs_of_a_snapshot_that_had_no_numbers(world: World) -> None:
    """Their ids stand for them, and the next run goes on from there."""
    world.build.item(RING, "other", name="other.md", content=set_text(2))
    for _ in range(2):
        world.run(workspace_item_id="other")
    world.run()
    world.build.db.execute("DELETE FROM eval_numbers")
    assert [world.run().run for _ in range(2)] == [4, 5]
    world.build.db.execute("DROP TABLE eval_numbers")
    assert [point.run for point in world.run(aa=True).history if point.run] == [3, 4, 5]


def test_a_baseline_that_is_not_kept(world: World) -> None:
    world.run()
    with pytest.raises(InvalidRequest, match=r"baseline: no run 7 of .* is kept; there are: 1"):
        world.run(baseline="7")


class _Flicker:
    """Answers question 1 right every other time."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.times = 0

    def __call__(self, *arguments: Any) -> Any:
        number = int("".join(filter(str.isdigit, arguments[2].question)))
        if number == 1:
            self.times += 1
            self.world.wrong = {1} if self.times % 2 == 0 else set()
        return self.world.ask(*arguments)


def test_repeats_measure_the_flip_rate(world: World) -> None:
    world.pipeline = _Flicker(world)
    found = world.run(repeats=3, cache=False)
    first, second = found.questions[0], found.questions[1]
    assert (first.repeats, first.passed_repeats, first.flip_rate) == (3, 3, 0)
    assert (second.outcome, second.passed_repeats) == ("passed", 2)
    assert second.flip_rate == pytest.approx(2 / 3)
    assert found.noise is not None
    assert found.noise.measured_flip_rate == pytest.approx(0.0667)
    assert found.noise.false_alarms_measured == pytest.approx(2 / 3, abs=1e-4)  # one flip in ten is drift
    assert (found.passed, len(world.asked)) == (10, 30)
    tie = world.run(repeats=2, cache=False)
    assert (tie.questions[1].passed_repeats, tie.questions[1].outcome) == (1, "failed")


def test_the_set_against_itself(world: World) -> None:
    world.pipeline = _Flicker(world)
    before = world.stored()
    found = world.run(aa=True, repeats=4)
    assert found.aa is not None
    assert (found.aa.runs, found.aa.pairs, found.aa.drifted, found.aa.significant) == (4, 6, 4, 0)
    assert found.aa.pass_rates == (1.0, 0.9, 1.0, 0.9)
    assert found.aa.false_alarm_rate == pytest.approx(4 / 6)
    assert any("4 runs, 6 pairs; the 5-point rule called 4 of them drift (67 %)" in note for note in found.notes)
    assert not found.written
    assert world.stored() == before
    assert world.run(aa=True).aa is not None  # two runs at least


def test_the_fixed_rule_in_plain_words(world: World) -> None:
    found = world.run()
    assert found.noise is not None
    assert (found.noise.drift_takes, found.noise.significant_takes) == (1, 6)
    notes = " ".join(found.notes)
    assert "the rate moves by 5 points or more in 55 % of runs in which nothing changed" in notes
    assert "and the rule fires on 55 % of them" in notes
    assert "The smallest drop that the paired test shows in 8 of 10 runs is about 50 points" in notes
    assert "To see half of that, ask 28 questions" in notes


def test_answers_are_kept_until_what_they_rest_on_changes(world: World) -> None:
    world.rewrite("## What is 1?\npaths: /ring/dev/skills\n- value 1\n## What is 2?\n- value 2\n")
    assert world.run().trace.questions_asked == 2
    again = world.run()
    assert (again.trace.questions_asked, again.trace.answers_kept, again.passed) == (0, 2, 2)
    world.build.memory(RING, "other", kind="policy", content="Nothing to do with it.")
    assert world.run().trace.questions_asked == 1  # the one over the whole ring
    world.build.memory("/ring/secret", "far", content="In another ring.")
    assert world.run().trace.questions_asked == 0
    world.build.memory(RING, "m1", content="The value 1 is the value of 1, still.")
    assert world.run().trace.questions_asked == 2
    assert world.run(cache=False).trace.questions_asked == 2
    assert world.run(repeats=2).trace.questions_asked == 2  # the second repeat is an answer of its own
    other = Models(None, FakeLanguageModel(reply=lambda chat: "no"))
    assert world.run(models=other, llm_judge=False).trace.questions_asked == 2


def test_kept_answers_do_not_cross_principals(world: World) -> None:
    secret, ring = world.build.namespace("/ring/secret"), world.build.namespace(RING)
    world.rewrite("## What is 1?\npaths: /\n- value 1\n")
    world.build.memory("/ring/secret", "x", content="hidden from alice")
    with world.build.snapshot.transaction():
        access.grant(world.build.db, "bob", secret)
        access.grant(world.build.db, "bob", ring)
    assert world.run().trace.questions_asked == 1
    assert world.run(principal="bob").trace.questions_asked == 1


def test_the_run_itself_changes_nothing_that_answers_rest_on(world: World) -> None:
    world.run()
    world.run()
    assert world.run().trace.answers_kept == 10
    assert world.metadata()["last_eval_total"] == 10
    assert world.build.entry(workspace, RING, "set").name == SET.encode()


def test_a_cache_that_cannot_be_used_costs_time_only(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = world.path.parent / "blocked"
    blocked.write_text("a file where a folder should be")
    monkeypatch.setenv("LIBRARYFS_CACHE", str(blocked))
    assert world.run().passed == 10
    damaged = world.path.parent / "damaged"
    damaged.mkdir()
    (damaged / "eval-answers.db").write_bytes(b"no database" * 100)
    monkeypatch.setenv("LIBRARYFS_CACHE", str(damaged))
    assert world.run().passed == 10
