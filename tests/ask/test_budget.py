"""The latency budget: from when the question was asked, and over what cannot be stopped. Nothing here looks at a clock:
what blocks blocks until the test's end, so that an answer at all is one in time."""

import threading
import time
from collections.abc import Iterator
from functools import cached_property

import pytest

from libraryfs.ask import request
from libraryfs.ask.pipeline import Models, ask
from libraryfs.errors import Cancelled, DeadlineExceeded, ModelUnavailable
from libraryfs.models.cancel import Cancel, within
from tests.ask.asking import fill, run
from tests.ask.fake_embedder import WordEmbedder
from tests.ask.fake_model import Scripted
from tests.ask.shelf import Shelf


@pytest.fixture
def never() -> Iterator[threading.Event]:
    """What blocks waits for this; it is set when the test is over."""
    event = threading.Event()
    yield event
    event.set()


class Cold(WordEmbedder):
    """Has its weights checked before it says its name, and is never done with it."""

    never: threading.Event

    def offsets(self, text: str) -> list[tuple[int, int]]:
        self.never.wait()
        return super().offsets(text)


class ColdModel(Scripted):
    """Loads for ever when it is asked how long its context is."""

    def __init__(self, never: threading.Event) -> None:
        super().__init__("anything")
        del self.context
        self._never = never

    @cached_property
    def context(self) -> int:  # type: ignore[override]
        self._never.wait()
        return 8192


def test_a_cold_embedder_costs_the_vectors_not_the_evidence(shelf: Shelf, never: threading.Event) -> None:
    fill(shelf)
    shelf.index()
    cold = Cold()
    cold.never = never
    result = run(shelf, embedder=cold, latency_budget_ms=300)
    assert [item.origin for item in result.evidence] == ["fallback"]
    assert any("searched by keywords" in line for line in result.trace.degraded)


def test_a_cold_language_model_is_not_waited_for(shelf: Shelf, never: threading.Event) -> None:
    """With and without a shape."""
    fill(shelf)
    for shape in (None, {"type": "object"}):
        result = run(shelf, model=ColdModel(never), latency_budget_ms=300, shape=shape)
        assert result.truncated
        assert result.evidence


def test_it_counts_from_the_asking(shelf: Shelf) -> None:
    """A question that was asked a minute ago gets the evidence by keywords, at once."""
    fill(shelf)
    shelf.index()
    model = Scripted("We deploy on Tuesdays.")
    asked = request.build({"question": "When do we deploy?", "paths": ["/ring/dev"], "latency_budget_ms": 500})
    models = Models(shelf.embedder, model)
    shelf.embedder.calls.clear()
    late = ask(shelf.library(), models, asked, since=time.monotonic() - 60)
    assert late.truncated
    assert [item.path for item in late.evidence] == ["/ring/dev/decisions/deploys.md"]
    assert not shelf.embedder.calls
    assert not model.prompts


def test_within(never: threading.Event) -> None:
    """Its result or error; the end of the time or of the asker, though the work goes on."""

    def fail() -> None:
        raise ModelUnavailable("no")

    for cancel in (Cancel(), Cancel.after(60)):
        assert within(cancel, lambda: 5) == 5
        with pytest.raises(ModelUnavailable):
            within(cancel, fail)
    with pytest.raises(DeadlineExceeded):
        within(Cancel.after(0.05), never.wait)
    leaving = Cancel.after(60)
    threading.Timer(0.05, leaving.cancel).start()
    with pytest.raises(Cancelled):
        within(leaving, never.wait)


def test_a_part_ends_sooner_and_with_the_whole() -> None:
    whole = Cancel(time.monotonic() + 60)
    with whole.sooner(10) as part:
        assert whole.deadline is not None
        assert part.deadline == whole.deadline - 10
        whole.cancel()
        assert part.cancelled
    with Cancel().sooner(10) as endless:
        assert endless.deadline is None
