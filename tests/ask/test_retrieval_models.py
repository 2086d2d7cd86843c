"""With the real embedding model."""

from collections.abc import Iterator

import pytest

from libraryfs.ingest import chunker, embed
from libraryfs.models import factory
from libraryfs.models.protocols import Embedder
from libraryfs.settings import Settings
from tests.ask.shelf import Shelf, ids

A = "/ring/a"
FACTS = {
    "deploys": "Releases go out on Tuesday mornings, once the stand-up is over.",
    "holidays": "Everybody has thirty days of paid leave a year.",
    "incidents": "Whoever is on call opens a channel and pages the duty manager.",
    "coffee": "The espresso machine in the kitchen is descaled every Friday.",
    "old-deploys": "Releases go out on Mondays.",
}


@pytest.fixture(scope="module")
def real() -> Iterator[Embedder]:
    made = factory.embedder(Settings())
    assert made is not None
    yield made
    factory.close()


def test_every_chunk_fits_the_real_window(real: Embedder) -> None:
    """The tokenizer alone: no model is loaded."""
    texts = [
        "Größe " * 3000,
        "漢字かな交じり文。" * 800,
        "x" * 9000,
        "a,b;c" * 2000,
        "🐋 mer ك كتاب ไทย " * 500,
        "0123456789" * 900,
    ]
    for text in texts:
        prefix = embed.title_prefix("A rather long title, " * 40, real)
        chunks = chunker.chunk(text, real.offsets, real.window, prefix)
        assert max(len(real.offsets(prefix + text[one.start : one.end])) for one in chunks) <= real.window == 254
        covered = {at for one in chunks for at in range(one.start, one.end)}
        assert {at for at, char in enumerate(text) if not char.isspace()} <= covered


@pytest.mark.models
def test_by_meaning_and_the_current_one_first(shelf: Shelf, real: Embedder) -> None:
    shelf.grant("me", A)
    for name, text in FACTS.items():
        shelf.memory(A, name, "decision", text, title=name.replace("-", " "))
    shelf.edge(f"{A}:deploys", "supersedes", f"{A}:old-deploys")
    shelf.embed(real)  # type: ignore[arg-type]
    found = shelf.ask("How much vacation do I get?", A, embedder=real)
    assert ids(found)[0] == "holidays"
    assert found.evidence[0].similarity is not None
    assert 0.2 < found.evidence[0].similarity < 1
    assert ids(shelf.ask("old deploys: releases on Mondays", A, embedder=real))[:2] == ["deploys", "old-deploys"]
    assert found.degraded == ()
