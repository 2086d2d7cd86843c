"""A model's worker, killed at 25 random points while it is asked: one answer is lost at most, and none is wrong."""

import os
import random
import signal
import threading
import time
from contextlib import suppress

import numpy as np
import pytest

from libraryfs.errors import ModelCrashed
from libraryfs.models.cancel import Cancel
from libraryfs.models.local import LocalEmbedder
from tests.conftest import workers
from tests.models.conftest import eventually

pytestmark = [pytest.mark.models, pytest.mark.slow]

KILLS = 25
TEXTS = ["We deploy on Tuesdays.", "Backups are kept for ninety days.", "A ring is seen by those who were granted it."]


def test_worker(embedder: LocalEmbedder) -> None:
    """Each call gives the right vectors, or says that the worker died; the next one starts another."""
    right = embedder.embed(TEXTS, Cancel())
    stop, answered, crashed = threading.Event(), list[float](), list[str]()

    def kill() -> None:
        killed = seen = 0
        chance = random.Random()
        try:
            while killed < KILLS:
                # One that dies twice before it answers is left alone for a while. The first may be of before the kill.
                assert eventually(lambda seen=seen: len(answered) > seen + 1, 120)  # type: ignore[misc]
                time.sleep(chance.uniform(0, 0.8))
                for pid in workers():
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                        killed += 1
                seen = len(answered)
        finally:
            stop.set()

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        while not stop.is_set():
            try:
                assert np.allclose(embedder.embed(TEXTS, Cancel()), right, atol=1e-4)
                answered.append(time.monotonic())
            except ModelCrashed as error:
                crashed.append(str(error))
    finally:
        killer.join(120)
    assert len(crashed) <= KILLS
    assert np.allclose(embedder.embed(TEXTS, Cancel()), right, atol=1e-4)
