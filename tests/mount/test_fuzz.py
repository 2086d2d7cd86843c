"""The corpus of the fuzz target, and a second of mutations; `scripts/fuzz 60` does more of them."""

import random
from pathlib import Path

import pytest

from tests.mount import fuzz
from tests.mount.live import Live
from tests.mount.test_ask import NO_MODELS, fill
from tests.store.build import Builder


@pytest.mark.slow
def test_the_corpus_and_a_second_more(build: Builder, tmp_path: Path) -> None:
    """No input gets an answer or an errno that none may get; the daemon lives and has nothing to log."""
    fill(build)
    with Live(build.path, tmp_path / "mount", environment=NO_MODELS) as live:
        sent, found, harm = fuzz.run(live, 1, random.Random())
    assert (found, harm) == (None, "")
    assert sent >= len(fuzz.corpus()) > 50


def test_a_fault_is_found(monkeypatch: pytest.MonkeyPatch, build: Builder, tmp_path: Path) -> None:
    """Were ENOENT one that nothing may get, the first absent name would be it."""
    monkeypatch.setattr(fuzz, "NEVER", {2})
    monkeypatch.setattr(fuzz, "corpus", lambda: [fuzz.Input("name", b"absent")])
    fill(build)
    with Live(build.path, tmp_path / "mount", environment=NO_MODELS) as live:
        sent, found, harm = fuzz.run(live, 1, random.Random())
    assert (sent, found) == (0, fuzz.Input("name", b"absent"))
    assert harm.startswith("ENOENT for the name b'absent' in ")
