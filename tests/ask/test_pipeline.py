"""One question from the request to the result, with models that a test scripts."""

import time
from typing import Any

import pytest

from libraryfs.ask.result import Event, EvidenceFound, TextPiece
from libraryfs.errors import (
    Cancelled,
    DeadlineExceeded,
    ModelBusy,
    ModelCrashed,
    ModelError,
    ModelFailed,
    ModelUnavailable,
)
from libraryfs.models.cancel import Cancel
from tests.ask.asking import DEPLOY, SHAPE, fill, run
from tests.ask.fake_embedder import BrokenEmbedder
from tests.ask.fake_model import Scripted
from tests.ask.shelf import Shelf


@pytest.fixture
def team(shelf: Shelf) -> Shelf:
    return fill(shelf)


def test_a_model_that_may_write_answers_and_cites(team: Shelf) -> None:
    model = Scripted("You deploy on Tuesdays [E1].")
    events: list[Event] = []
    result = run(team, model=model, events=events)
    assert (result.answer, result.grounding) == ("You deploy on Tuesdays.", "grounded")
    (cited,) = result.citations
    assert (cited.id, cited.quote) == ("deploy", "We deploy on Tuesdays after the stand-up.")
    assert cited.path.startswith("/ring/dev/decisions/")
    assert isinstance(events[0], EvidenceFound)
    assert [one.text for one in events[1:] if isinstance(one, TextPiece)] == ["You deploy on Tuesdays."]
    assert (result.trace.attempts, result.trace.answered_by) == (1, "model")
    assert result.trace.models == {"embedding": "words@1", "language_model": model.model}
    assert {"resolve", "embed", "search", "read", "rank", "exam", "generate"} <= result.trace.steps.keys()
    assert not result.trace.degraded


def test_the_keys_are_the_protocols(team: Shelf) -> None:
    plain = run(team, model=Scripted("You deploy on Tuesdays [E1]."), ground=True).model_dump(mode="json")
    assert list(plain) == [
        "question",
        "answer",
        "grounding",
        "citations",
        "evidence",
        "truncated",
        "rejected_citations",
        "claims",
        "confidence",
        "trace",
    ]
    assert list(plain["citations"][0]) == ["id", "path", "quote", "line", "headings", "lead"]
    kept = {"id", "path", "score", "origin", "similarity", "excerpt", "superseded_by"}
    assert kept <= plain["evidence"][0].keys()
    assert plain["claims"][0]["evidence"][0]["memory_id"] == "deploy"


@pytest.mark.parametrize(
    "said",
    [
        "We deploy on Thursdays [E1].",
        "We deploy on 17 Tuesdays [E1].",
        "Ms. Bond deploys on Tuesdays after the stand-up [E1].",
        "We never deploy on Tuesdays [E1].",
        "On which day do we deploy?",
        "Yes.",
        "The sky is blue, [E1] says so.",
    ],
)
def test_what_the_evidence_does_not_say_is_not_answered(team: Shelf, said: str) -> None:
    result = run(team, model=Scripted(said), ground=True)
    assert result.answer == DEPLOY
    assert result.trace.answered_by == "quote"
    assert any("not in the evidence" in note for note in result.trace.notes)


def test_of_several_claims_those_that_hold_are_kept(team: Shelf) -> None:
    said = "You deploy on Tuesdays [E1]. The moon is made of cheese [E1]. Two people must approve it [E1]."
    result = run(team, model=Scripted(said), ground=True)
    assert result.answer == "You deploy on Tuesdays. Two people must approve it."
    assert result.claims is not None
    assert [(claim.supported, len(claim.evidence)) for claim in result.claims] == [(True, 1), (False, 0), (True, 1)]


@pytest.mark.parametrize(
    "said",
    [
        "You deploy on Tuesdays. [E1] Backups are kept in Graz. [E2]",
        "You deploy on Tuesdays [E1]. Backups are kept in Graz [E2].",
        "- You deploy on Tuesdays. [E1]\n- Backups are kept in Graz. [E2]",
    ],
)
def test_a_handle_after_the_full_stop_is_the_sentences_before_it(team: Shelf, said: str) -> None:
    result = run(team, question="When do we deploy and where are backups kept?", model=Scripted(said), ground=True)
    assert [cited.id for cited in result.citations] == ["deploy", "backup"]
    assert "[E" not in str(result.answer)
    assert str(result.answer).startswith("- ") == said.startswith("- ")
    assert ("\n- " in str(result.answer)) == said.startswith("- ")


def test_a_handle_that_is_not_there_is_told_and_does_not_erase_the_answer(team: Shelf) -> None:
    result = run(team, model=Scripted("You deploy on Tuesdays [E7], [E1; E99]."))
    assert result.answer is not None
    assert "Tuesdays" in str(result.answer)
    assert result.rejected_citations == ("E7", "E99")
    assert [cited.id for cited in result.citations] == ["deploy"]


def test_a_claim_with_the_wrong_handle_cites_what_says_it(team: Shelf) -> None:
    result = run(team, question="Where are backups kept and when do we deploy?", model=Scripted("Kept in Graz [E1]."))
    assert [cited.id for cited in result.citations] == ["backup"]


def test_the_model_may_say_that_it_is_not_there(team: Shelf) -> None:
    result = run(team, model=Scripted("NOT FOUND."))
    assert (result.answer, result.grounding, result.message) == (None, "missing", "not in the library")
    assert result.evidence


def test_a_model_that_fails_its_reading_test_does_not_write(team: Shelf) -> None:
    model = Scripted("You deploy on Tuesdays [E1].", capable=False)
    result = run(team, model=model)
    assert (result.answer, result.trace.answered_by) == (DEPLOY, "quote")
    assert (model.examined, model.prompts) == (2, [])
    assert "missed 2 of 2" in result.trace.notes[0]
    run(team, model=model)
    assert model.examined == 2  # once a process


def test_what_is_asked_of_nothing_like_it_is_not_in_the_library(team: Shelf) -> None:
    model = Scripted("It is Paris [E1].", capable=False)
    result = run(team, question="Who won the chess olympiad held in Tromsø?", model=model)
    assert (result.answer, result.grounding) == (None, "missing")
    assert result.evidence
    assert not result.citations


def test_no_evidence_no_model_call(team: Shelf) -> None:
    model = Scripted("Anything.")
    result = run(team, model=model, paths=["/ring/dev/skills"])
    assert (result.answer, result.evidence, model.prompts, model.examined) == (None, (), [], 0)
    assert result.message == "not in the library"


def test_an_empty_library(shelf: Shelf) -> None:
    result = run(shelf, model=Scripted("Anything."), paths=["/"])
    assert (result.answer, result.grounding, result.truncated) == (None, "missing", False)


def test_without_a_language_model_blocks_are_quoted_and_it_says_so(team: Shelf) -> None:
    result = run(team)
    assert result.answer == DEPLOY
    assert result.trace.degraded == ("no language model is set: the best blocks are quoted",)


def test_the_sentence_that_answers_comes_first_and_its_block_after_it(team: Shelf) -> None:
    text = "# Printer\n\nIt is grey and was bought in May. The printer stands in the long corridor.\n"
    team.memory("/ring/dev", "printer", "resource", text, title="Printer")
    team.embed()
    result = run(team, question="Where does the printer stand?", embedder=None)
    (cited,) = result.citations
    assert (cited.quote, cited.line, cited.headings) == (text[11:-1], 3, ("Printer",))
    assert result.sentence == "The printer stands in the long corridor."
    assert result.answer == f"{result.sentence}\n\n{cited.quote}"
    assert result.confidence is not None


def test_without_an_embedder_keywords_search_and_it_says_so(team: Shelf) -> None:
    result = run(team, embedder=None)
    assert result.answer == DEPLOY
    assert {one.origin for one in result.evidence} == {"fallback"}
    assert {one.score for one in result.evidence} == {0.5}
    assert any("no embedding model" in reason for reason in result.trace.degraded)


@pytest.mark.parametrize("error", [ModelUnavailable("no such file"), ModelCrashed("it died"), ModelBusy("queue full")])
def test_an_embedder_that_fails_is_told(team: Shelf, error: ModelError) -> None:
    result = run(team, embedder=BrokenEmbedder(error))
    assert result.answer == DEPLOY
    assert any(str(error) in reason for reason in result.trace.degraded)


def test_an_embedder_that_dies_after_the_search_is_told(team: Shelf) -> None:
    calls = []

    def second_fails() -> None:
        calls.append(1)
        if len(calls) > 1:
            raise ModelCrashed("it died")

    team.embedder.before = second_fails
    result = run(team)
    assert result.answer == DEPLOY
    assert "it died: blocks were ranked by their words" in result.trace.degraded


@pytest.mark.parametrize(
    "error", [ModelUnavailable("not GGUF"), ModelCrashed("killed"), ModelFailed("500"), ModelBusy("full")]
)
def test_a_language_model_that_fails_is_never_nothing_found(team: Shelf, error: ModelError) -> None:
    result = run(team, model=Scripted(error))
    assert result.answer == DEPLOY
    assert result.trace.degraded == (f"{error}: the best blocks are quoted",)


def test_a_language_model_that_dies_half_way_keeps_what_was_said(team: Shelf) -> None:
    class Dying(Scripted):
        def generate(self, *arguments: Any, **options: Any) -> Any:
            made = super().generate(*arguments, **options)
            if self.prompts:
                raise ModelCrashed("killed")
            return made

    events: list[Event] = []
    result = run(team, model=Dying("You deploy on Tuesdays [E1]. Two people must app"), events=events)
    assert result.answer == "You deploy on Tuesdays."
    assert result.trace.degraded == ("killed: the answer's end is missing",)
    assert "".join(one.text for one in events if isinstance(one, TextPiece)) == result.answer


def test_an_empty_reply_is_never_nothing_found(team: Shelf) -> None:
    assert run(team, model=Scripted("")).answer == DEPLOY


def test_a_budget_of_one_millisecond(team: Shelf) -> None:
    team.embedder.before = lambda: time.sleep(0.005)
    model = Scripted("You deploy on Tuesdays [E1].")
    result = run(team, model=model, latency_budget_ms=1)
    assert (result.answer, result.truncated, result.grounding) == (None, True, "missing")
    assert result.evidence
    assert model.prompts == []


def test_one_deadline_for_both_attempts(team: Shelf) -> None:
    def half(cancel: Cancel) -> None:
        time.sleep(0.2)
        cancel.check()

    model = Scripted("not json")
    model.before = half
    result = run(team, model=model, latency_budget_ms=300, shape=SHAPE)
    assert result.truncated
    assert result.error is None


def test_who_goes_away_stops_it(team: Shelf) -> None:
    cancel = Cancel()
    model = Scripted("You deploy on Tuesdays [E1].")

    def gone(inner: Cancel) -> None:
        cancel.cancel()
        inner.check()

    model.before = gone
    with pytest.raises(Cancelled):
        run(team, model=model, cancel=cancel)


def test_a_callers_deadline_is_kept_too(team: Shelf) -> None:
    model = Scripted(DeadlineExceeded())
    assert run(team, model=model, cancel=Cancel.after(60), latency_budget_ms=1000).truncated


def test_the_second_attempt_carries_the_validators_errors(team: Shelf) -> None:
    model = Scripted('{"date": "Tuesdays"}', '{"day": "Tuesdays"}')
    result = run(team, model=model, shape=SHAPE)
    assert (result.answer, result.trace.attempts) == ({"day": "Tuesdays"}, 2)
    assert "'day' is a required property" in model.prompts[1]


def test_a_text_that_is_not_there_gives_way_to_the_best_sentence(team: Shelf) -> None:
    model = Scripted('{"day": "Fridays"}')
    result = run(team, model=model, shape=SHAPE, ground=True)
    assert (result.answer, result.grounding) == ({"day": "We deploy on Tuesdays after the stand-up."}, "grounded")
    assert "'Fridays' is not in the evidence" in model.prompts[1]
    assert result.trace.answered_by == "quote"
    assert [cited.id for cited in result.citations] == ["deploy"]


def test_what_the_schema_lists_needs_no_evidence(team: Shelf) -> None:
    shape = {"type": "object", "properties": {"known": {"enum": ["certain", "unclear"]}, "ok": {"type": "boolean"}}}
    result = run(team, model=Scripted('{"known": "certain", "ok": true}'), shape=shape)
    assert (result.grounding, result.trace.attempts) == ("grounded", 1)
