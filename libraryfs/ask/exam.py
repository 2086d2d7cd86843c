"""May this language model write answers, or are sentences to be quoted? Each model sits a short reading test, once.

No model is assumed to be weak or strong. The test has the form of every other request: the same prompt, the same
claim check. A model that misses more than MAX_MISSED of its questions does not write: on real questions, a quoted
sentence then holds the answer more often (see the decision record on answers). It stops at the miss that decides.
"""

import json
import threading
from contextlib import closing
from hashlib import blake2b
from typing import Final, NamedTuple

from libraryfs.ask import answer, prompt
from libraryfs.ask.evidence import Evidence
from libraryfs.ask.passages import Passage, of_text
from libraryfs.models.cancel import Cancel
from libraryfs.models.defaults import LANGUAGE_MODEL
from libraryfs.models.protocols import LanguageModel
from libraryfs.settings import settings
from libraryfs.store.answers import Answers

MAX_MISSED: Final = 1


class Question(NamedTuple):
    """A reading question over a few texts, and the words that a right answer has; None: the texts do not say."""

    texts: tuple[str, ...]
    question: str
    expected: str | None


# What the texts do not say comes first: a model that makes things up is known by it soonest.
QUESTIONS: Final = (
    Question(
        ("The pump was installed in 1987 by a firm from Lund. It moves 340 litres a minute.",),
        "What does the pump's yearly service cost?",
        None,
    ),
    Question(
        ("Our Lisbon office has twelve desks and a terrace. The Porto office is larger, with forty desks.",),
        "Which office has a canteen?",
        None,
    ),
    Question(
        (
            "The north gate is locked at nine in the evening. The guard, Marta Ruiz, keeps the only key.",
            "The south gate stays open until midnight. Its lamp was replaced in March.",
        ),
        "Who has the key of the north gate?",
        "Marta Ruiz",
    ),
    Question(
        (
            "Release branches are cut on Mondays. A branch is frozen for two days before it is tagged.",
            "Hot fixes skip the freeze, but two reviewers must approve them.",
        ),
        "How many reviewers does a hot fix need?",
        "two",
    ),
    Question(
        ("The old boiler burned coal. In 1996 it was replaced by a heat pump that draws from the lake.",),
        "When was the boiler replaced?",
        "1996",
    ),
    Question(
        (
            "Invoices are archived for ten years. They are kept in the vault in Graz.",
            "Contracts are archived for fifteen years, and drafts are deleted at once.",
        ),
        "For how long are contracts kept?",
        "fifteen years",
    ),
)


class Result(NamedTuple):
    """How the test went. `writes`: whether the model writes answers."""

    writes: bool
    asked: int
    missed: int


MEASURED: Final = {(LANGUAGE_MODEL.model, 2): Result(writes=False, asked=2, missed=2)}
"""The results of models that we ship, by model and `prompt.VERSION`: they need not sit the test on each machine, and a
model that does not write is not even started. A test of ours takes it again."""

_results: dict[str, Result] = {}
_lock = threading.Lock()


def known(model: LanguageModel) -> Result | None:
    """The result of this model's test if it is known: it is not started for that.

    Known for the life of the process, and of a model that runs here, whose name has its weights' checksum, from one
    process to the next: a command line that starts anew for each question would else sit it each time.
    """
    with _lock:
        found = _results.get(model.model) or MEASURED.get((model.model, prompt.VERSION))
    if found is None and model.supports_likelihoods:
        found = _kept(model)
    if found is not None:
        _remember(model, found)
    return found


def sit(model: LanguageModel, cancel: Cancel) -> Result:
    """The result of this model's test, taken now if none is known. Raises ModelError."""
    found = known(model)
    if found is None:
        found = take(model, cancel)
        _remember(model, found)
        if model.supports_likelihoods:
            _keep(model, found)
    return found


def _remember(model: LanguageModel, result: Result) -> None:
    with _lock:
        _results[model.model] = result


def _kept(model: LanguageModel) -> Result | None:
    answers = _answers()
    if answers is None:
        return None
    with closing(answers):
        found = answers.get(_key(model))
        return None if found is None else Result(*json.loads(found))


def _keep(model: LanguageModel, result: Result) -> None:
    answers = _answers()
    if answers is not None:
        with closing(answers):
            answers.put(_key(model), json.dumps(result))


def _answers() -> Answers | None:
    return Answers.open(settings().cache_path / "reading-tests.db")


def _key(model: LanguageModel) -> bytes:
    return blake2b(json.dumps([model.model, prompt.VERSION, MAX_MISSED, QUESTIONS]).encode()).digest()


def take(model: LanguageModel, cancel: Cancel) -> Result:
    """The model sits the test. Raises ModelError."""
    missed = 0
    for asked, question in enumerate(QUESTIONS, 1):
        missed += not _right(model, question, cancel)
        if missed > MAX_MISSED:
            return Result(False, asked, missed)
    return Result(True, len(QUESTIONS), missed)


def _right(model: LanguageModel, question: Question, cancel: Cancel) -> bool:
    passages = [_passage(number, text) for number, text in enumerate(question.texts)]
    shown = prompt.answer(question.question, passages, model.context)
    draft = answer.written(model, question.question, passages, shown, cancel, lambda text: None)
    if question.expected is None:
        return draft.refused
    return draft.text is not None and question.expected.casefold() in draft.text.casefold()


def _passage(number: int, text: str) -> Passage:
    item = Evidence(
        id=f"exam-{number}",
        path="/",
        score=1.0,
        origin="vector",
        excerpt=text,
        superseded_by=None,
        ino=0,
        namespace_id=0,
    )
    return of_text(item, text)
