"""Models for the tests: made once, ended after each module; no worker may outlive it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from libraryfs.models import factory
from libraryfs.models.local import LocalEmbedder, LocalLanguageModel
from libraryfs.settings import Settings


def workers(parent: int | None = None) -> set[int]:
    """Process ids of the living model workers that a process (default: this one) started."""
    found = set()
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            command = (folder / "cmdline").read_bytes()
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if b"libraryfs.models.worker" in command and int(fields[1]) == (parent or os.getpid()) and fields[0] != "Z":
            found.add(int(folder.name))
    return found


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
