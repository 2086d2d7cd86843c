"""The whole way with the two real default models."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from libraryfs.ask import exam, prompt, request
from libraryfs.ask.pipeline import Models, ask
from libraryfs.ask.result import AskResult, Event, EvidenceFound
from libraryfs.ingest.embed import embed_missing
from libraryfs.models import factory
from libraryfs.models.cancel import Cancel
from libraryfs.settings import Settings
from tests.ask.shelf import Shelf

pytestmark = pytest.mark.models

FILES = {
    "deploys": "Deploys happen on Tuesdays after the stand-up. Two people must approve each deploy before it starts.",
    "backups": "Backups run every night at two. They are kept for ninety days in a vault in the town of Graz.",
    "gate": "The north gate is locked at nine in the evening. Marta Ruiz, the guard, keeps its only key.",
    "pump": "The pump was installed in 1987 by a firm from Lund. It moves 340 litres a minute.",
    "zh": "我们每周二部署新版本。每次部署需要两个人批准。",
    "ru": "Резервные копии хранятся девяносто дней. Их проверяют каждую пятницу.",
    "hi": "हम हर मंगलवार को तैनात करते हैं। दो लोगों को अनुमति देनी होती है।",
    "qz": "Zlorp vex kwintal mubra. Snar tek blovin drast.",
}


@pytest.fixture(scope="module")
def models() -> Iterator[Models]:
    settings = Settings()
    yield Models(factory.embedder(settings), factory.language_model(settings))
    factory.close()


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory, models: Models) -> Iterator[Shelf]:
    shelf = Shelf(Path(tmp_path_factory.mktemp("models")) / "library.db")
    for name, content in FILES.items():
        shelf.memory("/ring/dev", name, "decision", content, title=name)
    shelf.grant("me", "/ring/dev")
    assert models.embedder is not None
    embed_missing(shelf.snapshot, models.embedder, Cancel())
    yield shelf
    shelf.snapshot.close()


def run(shelf: Shelf, models: Models, question: str, **options: object) -> AskResult:
    result = ask(shelf.library(), models, request.build({"question": question, "paths": ["/ring/dev"], **options}))
    for cited in result.citations:
        library = shelf.library()
        assert cited.quote.encode() in library.content(library.resolve(cited.path))
    return result


@pytest.mark.parametrize(
    ("question", "expected", "cited"),
    [
        ("When do deploys happen?", "Tuesdays", "deploys"),
        ("For how long are backups kept?", "ninety days", "backups"),
        ("Who keeps the key of the north gate?", "Marta Ruiz", "gate"),
        ("In which year was the pump installed?", "1987", "pump"),
    ],
)
def test_questions_are_answered_from_the_right_file(
    filled: Shelf, models: Models, question: str, expected: str, cited: str
) -> None:
    result = run(filled, models, question, ground=True)
    assert expected in str(result.answer)
    assert result.citations[0].id == cited
    assert result.grounding == "grounded"
    assert result.claims is not None
    assert all(claim.supported for claim in result.claims)
    assert not result.trace.degraded


@pytest.mark.parametrize(
    "question", ["我们什么时候部署新版本？", "Где хранятся резервные копии и кто их проверяет?", "हम कब तैनात करते हैं?"]
)
def test_other_scripts_are_quoted_in_their_own(filled: Shelf, models: Models, question: str) -> None:
    result = run(filled, models, question, retrieval="hybrid")
    assert result.evidence
    if result.answer is not None:  # the default embedder reads English: it may refuse, it may not make things up
        assert str(result.answer) in FILES[result.citations[0].id]


def test_what_is_not_there_is_not_answered(filled: Shelf, models: Models) -> None:
    for question in ("Who won the world cup in 1998?", "How do I cook a risotto with saffron?"):
        result = run(filled, models, question)
        assert (result.answer, result.message) == (None, "not in the library")
        assert result.evidence


def test_evidence_comes_first_and_soon(filled: Shelf, models: Models) -> None:
    events: list[Event] = []
    asked = request.build({"question": "When do deploys happen?", "paths": ["/ring/dev"]})
    ask(filled.library(), models, asked, None, events.append)
    assert isinstance(events[0], EvidenceFound)
    assert len(events) > 1


def test_a_shape_gives_that_shape_or_an_error_with_evidence(filled: Shelf, models: Models) -> None:
    schema = {"type": "object", "properties": {"day": {"enum": ["Monday", "Tuesday"]}}, "required": ["day"]}
    result = run(filled, models, "On which day do deploys happen?", shape=schema)
    if result.error is None:
        assert isinstance(result.answer, dict)
        assert result.answer["day"] in ("Monday", "Tuesday")
    assert result.evidence


def test_the_tiny_default_model_does_not_pass_the_reading_test(models: Models) -> None:
    assert models.language_model is not None
    result = exam.take(models.language_model, Cancel())
    assert not result.writes
    assert result.missed > exam.MAX_MISSED


def test_the_language_model_that_we_ship_does_as_measured(models: Models) -> None:
    model = models.language_model
    assert model is not None
    assert exam.take(model, Cancel()) == exam.MEASURED[model.model, prompt.VERSION]
