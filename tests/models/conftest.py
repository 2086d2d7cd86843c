"""Models for the tests: made once; no worker outlives a module."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from libraryfs.models import factory
from libraryfs.models.local import LocalEmbedder, LocalLanguageModel
from libraryfs.settings import Settings
from tests.conftest import end_workers, workers


def eventually(true: Callable[[], bool], seconds: float = 5) -> bool:
    """Whether it becomes true in that time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if true():
            return True
        time.sleep(0.02)
    return true()


@pytest.fixture(autouse=True, scope="module")
def no_worker_left() -> Iterator[None]:
    """Ends the workers of a module's tests, and looks that they end."""
    yield
    factory.close()
    end_workers()
    assert eventually(lambda: not workers())


@pytest.fixture(scope="module")
def language_model() -> LocalLanguageModel:
    """The default language model."""
    model = factory.language_model(Settings())
    assert isinstance(model, LocalLanguageModel)
    return model


@pytest.fixture(scope="module")
def embedder() -> LocalEmbedder:
    """The default embedder."""
    model = factory.embedder(Settings())
    assert isinstance(model, LocalEmbedder)
    return model
