"""Runs over a real snapshot: what is reported, what is written, and what is not."""

import threading
from collections.abc import Sequence
from typing import Any

import pytest

from libraryfs.ask.pipeline import Models
from libraryfs.errors import Cancelled, EvalSetError, InvalidRequest, LibraryError, ModelCrashed, PathNotFound
from libraryfs.evals.questions import grouped
from libraryfs.evals.request import build
from libraryfs.library.resolver import Library
from libraryfs.models.cancel import Cancel
from libraryfs.store import access, workspace
from tests.evals.fake_model import FakeLanguageModel
from tests.evals.world import RING, SET, World, paths_not_found, set_text, without_times


def test_a_first_run(world: World) -> None:
    entry = world.build.entry(workspace, RING, "set")
    world.wrong = {3}
    found = world.run()
    assert (found.passed, found.total, found.errors, found.pass_rate) == (9, 10, 0, 0.9)
    assert (found.drift_detected, found.drift, found.drift_significant, found.drift_comparable) == (None,) * 4
    assert found.flips == ()
    assert found.written
    assert found.exit_code() == 0
    assert [q.question for q in found.questions if q.outcome == "failed"] == ["What is 3?"]
    assert found.questions[3].miss == "answer"
    assert found.questions[2].fragments[0].how == "substring"
    assert found.questions[2].citations[0].quote == "value 2"
    assert world.metadata() == {
        "last_eval_pass_rate": 0.9,
        "last_eval_total": 10,
        "last_eval_at": found.at,
    }
    assert world.build.entry(workspace, RING, "set") == entry  # content, size and times as they were
    assert [p.done for p in world.progress] == list(range(1, 11))
    assert (world.progress[-1].passed, world.progress[-1].judged) == (9, 10)


def test_the_rate_shows_as_extended_attributes(world: World) -> None:
    world.run()
    library = Library(world.build.snapshot, "alice")
    shown = library.attributes(library.resolve(f"{RING}/workspace/{SET}"))
    assert (shown["last_eval_pass_rate"], shown["last_eval_total"]) == (b"1.0", b"10")


def test_drift_against_the_run_before(world: World) -> None:
    world.run()
    world.wrong = {1}
    found = world.run(cache=False)
    assert found.drift_detected
    assert found.drift is not None
    assert (found.drift.direction, found.drift.previous_passed, found.drift.previous_run) == ("down", 10, 1)
    assert [(flip.question, flip.before, flip.now) for flip in found.flips] == [("What is 1?", "passed", "failed")]
    assert (found.drift_comparable, found.drift_significant, found.p_value) == (True, False, 1)
    assert found.questions[1].before == "passed"
    assert found.questions[1].history == ("passed", "failed")
    assert [point.drift for point in found.history] == [False, True]
    assert found.paired is not None
    assert (found.paired.runs, found.paired.questions, found.paired.p_drop) == ((1,), 10, 0.5)
    assert (found.conclusion, found.exit_code(), found.exit_code("drift"), found.exit_code("never")) == (
        "drift",
        0,
        1,
        0,
    )
    again = world.run(cache=False)
    assert (again.drift_detected, again.exit_code()) == (False, 0)


def test_a_rate_that_came_with_an_import(world: World) -> None:
    marks = {"last_eval_pass_rate": 0.5, "last_eval_total": 10, "last_eval_at": "2020-01-01T00:00:00Z", "kept": 1}
    world.build.item(RING, "set", name=SET, content=set_text(), metadata=marks)
    found = world.run()
    assert found.drift is not None
    assert (found.drift_detected, found.drift.direction, found.drift.previous_passed) == (True, "up", 5)
    assert found.drift_comparable is False
    assert found.drift_reasons == ("of the earlier run only the rate is kept",)
    assert world.metadata()["kept"] == 1


def test_importing_the_set_again_keeps_the_rate(world: World) -> None:
    world.run()
    world.rewrite(set_text())
    assert world.metadata()["last_eval_total"] == 10
    world.rewrite(set_text(9))
    assert world.metadata()["last_eval_total"] == 10
    found = world.run()
    assert found.set_change.removed == ("What is 9?",)
    assert found.drift_comparable is False


@pytest.mark.parametrize("value", [{"last_eval_pass_rate": "x", "last_eval_total": 10}, {"last_eval_pass_rate": 7}])
def test_marks_that_no_run_wrote_are_no_rate(world: World, value: dict[str, Any]) -> None:
    world.build.item(RING, "set", name=SET, content=set_text(), metadata=value)
    assert world.run().drift_detected is None


def test_hidden_and_absent_read_the_same(world: World) -> None:
    world.build.item("/ring/secret", "set", name=SET, content=set_text())
    world.build.item("/ring/secret", "other", name="other.md", content=set_text())
    world.build.item(RING, "lost", parent="nowhere", name="lost.md", content=set_text())
    requests: list[tuple[str, str, dict[str, Any]]] = [
        ("/ring/secret", "/ring/secret", {}),
        ("/ring/absent", "/ring/absent", {}),
        ("/ring/secret", "/ring/secret", {"workspace_item_id": "set"}),
        ("/ring/absent", "/ring/absent", {"workspace_item_id": "set"}),
    ]
    errors: list[PathNotFound] = []
    for _, ring, fields in requests:
        with pytest.raises(PathNotFound) as caught:
            world.run(ring=ring, **fields)
        errors.append(caught.value)
    assert len(paths_not_found(errors, [name for name, _, _ in requests])) == 1
    by_id = ["other", "absent"]
    errors = []
    for name in by_id:
        with pytest.raises(PathNotFound) as caught:
            world.run(workspace_item_id=name)
        errors.append(caught.value)
    assert len(paths_not_found(errors, by_id)) == 1
    with pytest.raises(PathNotFound):
        world.run(workspace_item_id="lost")
    assert world.asked == []


def test_an_item_by_its_id(world: World) -> None:
    world.build.item(RING, "small", name="small.md", content=set_text(2))
    found = world.run(workspace_item_id="small")
    assert (found.item_id, found.total, found.path) == ("small", 2, f"{RING}/workspace/small.md")
    assert world.metadata() == {}


def test_an_item_by_its_path(world: World) -> None:
    """The library's, or the one below the workspace; an id goes first. Of another ring it is as an absent one."""
    world.build.item(RING, "folder", name="sets", folder=True)
    world.build.item(RING, "sets-id", name="small.md", parent="folder", content=set_text(2))
    world.build.item(RING, "other.md", name="by-id.md", content=set_text(3))
    world.build.item(RING, "another", name="other.md", content=set_text(4))
    for name in ("sets/small.md", f"{RING}/workspace/sets/small.md", f"{RING}/workspace/sets/small.md/", "sets-id"):
        found = world.run(workspace_item_id=name)
        assert (found.item_id, found.total) == ("sets-id", 2), name
    assert world.run(workspace_item_id="other.md").total == 3
    assert world.run(workspace_item_id=f"{RING}/workspace/other.md").total == 4
    with pytest.raises(EvalSetError, match="is a folder"):
        world.run(workspace_item_id="sets")
    world.build.item("/ring/secret", "set", name=SET, content=set_text())
    world.build.item("/ring/mine", "set", name=SET, content=set_text())
    world.build.namespace("/ring/mine", "alice")
    names = [
        f"/ring/secret/workspace/{SET}",
        f"/ring/mine/workspace/{SET}",
        f"/ring/absent/workspace/{SET}",
        f"{RING}/skills/m1.md",
        f"{RING}/workspace",
        f"../../mine/workspace/{SET}",
        "/",
        "a\0b",
    ]
    errors: list[PathNotFound] = []
    for name in names:
        with pytest.raises(PathNotFound) as caught:
            world.run(workspace_item_id=name)
        errors.append(caught.value)
    words = {str(error).replace(f"item {name} of", "item … of") for error, name in zip(errors, names, strict=True)}
    assert words == {f"workspace item … of {RING}: no such path in the library, or not visible to you"}


def test_a_ring_without_a_set_says_what_to_do(world: World) -> None:
    world.build.namespace("/ring/empty", "alice")
    with pytest.raises(PathNotFound) as caught:
        world.run(ring="/ring/empty")
    assert str(caught.value) == (
        f"/ring/empty/workspace/{SET}: no such path in the library, or not visible to you; put workspace/{SET} into "
        "the ring's folder and import it, or name another set (--item, in .eval workspace_item_id)"
    )


def test_a_folder_is_no_set(world: World) -> None:
    world.build.item(RING, "folder", name="folder", folder=True)
    with pytest.raises(EvalSetError, match="is a folder"):
        world.run(workspace_item_id="folder")


@pytest.mark.parametrize(
    "fields",
    [
        {"default": True, "workspace_item_id": "set"},
        {"default": False},
        {"workspace_item_id": ""},
        {"repeats": 0},
        {"baseline": "last"},
        {"llm_judge": "no"},
        {"judge": True},
    ],
)
def test_requests_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        build(fields)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: no question"),
        ("## a\n- x\n\n## b\n", "line 4: no expected fragment"),
        ("## ???\n- x", "line 1: question: has no letter or digit"),
        ("## a\n- x\n## " + "b" * 8001 + "\n- x", "line 3: question: has 8001 characters"),
        ("## a\n- x\npaths: " + ", ".join(f"/ring/r{n}" for n in range(60)), "line 3: paths: 60 paths given"),
        ("---\nrepeats: 1000\n---\n## a\n- x", "line 2: repeats"),
    ],
)
def test_a_set_that_cannot_be_run_writes_nothing(world: World, text: str, message: str) -> None:
    world.rewrite(text)
    before = world.stored()
    with pytest.raises(EvalSetError) as caught:
        world.run()
    assert str(caught.value).startswith(f"{RING}/workspace/{SET}: {message}")
    assert world.stored() == before
    assert world.asked == []


def test_paths_that_are_hidden_or_absent_are_errors_outside_n(world: World) -> None:
    world.rewrite(
        set_text(3) + "\n## Of what is hidden, 1?\n- value 1\npaths: /ring/secret\n\n"
        "## Of what is absent, 1?\n- value 1\npaths: /ring/absent\n"
    )
    found = world.run()
    assert (found.passed, found.total, found.errors, found.exit_code()) == (3, 3, 2, 2)
    hidden, absent = found.questions[3:]
    assert hidden.error is not None
    assert absent.error is not None
    assert hidden.error.replace("secret", "absent") == absent.error
    assert (hidden.outcome, hidden.miss) == ("error", "error")
    assert found.written


def test_nothing_but_errors_is_a_failed_run(world: World) -> None:
    world.rewrite("## What is 1?\n- value 1\npaths: /ring/absent\n")
    before = world.stored()
    found = world.run()
    assert (found.status, found.total, found.errors, found.pass_rate, found.written) == ("failed", 0, 1, None, False)
    assert found.exit_code() == 2
    assert world.stored() == before


def test_cancelled_at_half_writes_nothing(world: World) -> None:
    cancel = Cancel()
    world.hook = lambda number: cancel.cancel() if number == 5 else None
    before = world.stored()
    with pytest.raises(Cancelled):
        world.run(cancel=cancel)
    assert len(world.asked) == 6
    assert world.stored() == before


class _Dying(FakeLanguageModel):
    """Dies at its n-th call."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self.left = at

    def count_tokens(self, texts: Sequence[str], cancel: Cancel) -> list[int]:
        self.left -= 1
        if self.left == 0:
            raise ModelCrashed("the language model's process died")
        return super().count_tokens(texts, cancel)


def test_the_model_dying_at_question_seven(world: World) -> None:
    ask = world.ask

    def falls_back(*arguments: Any) -> Any:  # as the pipeline does: an answer all the same, by other means
        try:
            return ask(*arguments)
        except LibraryError:
            return ask(arguments[0], Models(None, None), *arguments[2:])

    world.pipeline = falls_back
    before = world.stored()
    found = world.run(models=Models(None, _Dying(7)), llm_judge=False)
    assert (found.status, found.total, len(found.questions)) == ("failed", 6, 6)
    assert found.error == "question 7 of 10: LIBRARY_MODEL_CRASHED: the language model's process died"
    assert (found.written, found.exit_code(), found.drift_detected) == (False, 2, None)
    assert world.stored() == before


def test_the_item_deleted_during_the_run(world: World) -> None:
    ino = world.build.entry(workspace, RING, "set").ino

    def delete(number: int) -> None:
        if number == 4:
            with world.build.snapshot.transaction():
                workspace.delete(world.build.db, ino)

    world.hook = delete
    found = world.run()
    assert (found.passed, found.total, found.written) == (10, 10, False)
    assert found.write_error is not None
    assert found.write_error.startswith(f"LIBRARY_PATH_NOT_FOUND: {RING}/workspace/{SET}")
    assert world.stored()["eval_runs"] == []


def test_access_taken_away_during_the_run(world: World) -> None:
    namespace = world.build.namespace(RING)

    def revoke(number: int) -> None:
        if number == 9:
            with world.build.snapshot.transaction():
                access.revoke(world.build.db, "alice", namespace)

    world.hook = revoke
    with pytest.raises(PathNotFound):  # the fake resolves after the hook: the answer itself is refused
        Library(world.build.snapshot, "bob").resolve(RING)
    found = world.run()
    assert found.questions[9].outcome == "error"
    assert found.write_error is not None
    assert "no such path in the library, or not visible to you" in found.write_error
    assert world.stored()["eval_runs"] == []


def test_two_runs_at_once_follow_one_another(world: World) -> None:
    both = threading.Barrier(2)
    world.hook = lambda number: both.wait(20) if number == 9 else None
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(world.run(cache=False))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    first, second = sorted(found, key=lambda report: report.run)
    assert first.drift is None
    assert second.drift.previous_run == first.run
    assert len(world.stored()["eval_runs"]) == 2


def test_the_clock_going_backwards(world: World) -> None:
    world.run()
    world.now -= 10**15
    found = world.run()
    assert found.run == 2
    assert found.drift is not None
    assert found.drift.previous_at > found.at
    assert any("The clock went backwards" in note for note in found.notes)
    assert world.metadata()["last_eval_at"] == found.at
    assert world.run().drift is not None


def test_the_report_is_the_same_byte_for_byte_but_for_times(world: World) -> None:
    world.wrong = {2}
    first = world.run()
    with world.build.snapshot.transaction():
        world.build.db.execute("DELETE FROM eval_runs; DELETE FROM sqlite_sequence WHERE name = 'eval_runs'")
        workspace.set_metadata(world.build.db, world.build.entry(workspace, RING, "set").ino, {})
    again = world.run(cache=False)
    assert without_times(again) == without_times(first)


def test_the_eval_set_is_no_evidence(world: World) -> None:
    seen: list[bool] = []
    ask = world.ask

    def look(library: Library, *arguments: Any) -> Any:
        try:
            library.resolve(f"{RING}/workspace/{SET}")
            seen.append(True)
        except PathNotFound:
            seen.append(False)
        return ask(library, *arguments)

    world.pipeline = look
    world.run()
    assert seen == [False] * 10


def test_what_degraded_answers_is_told_once() -> None:
    found = grouped(["3 left out", "no model", "5 left out", "no model"])
    assert found == ("3 left out, and the like in 2 answers", "no model")


def test_expected_abstention(world: World) -> None:
    world.rewrite("## What is 1?\n- (not in the library)\n## What is 2?\n- (not in the library)\n")
    world.abstain = {1}
    found = world.run()
    assert [question.outcome for question in found.questions] == ["passed", "failed"]
    assert found.questions[0].fragments[0].how == "abstention"
    assert found.questions[0].message == "not in the library"
