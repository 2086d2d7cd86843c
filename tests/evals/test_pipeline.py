"""Runs through the real pipeline: without models by keywords, and with the built-in ones."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from libraryfs.ask.pipeline import Models
from libraryfs.errors import ModelUnavailable
from libraryfs.evals.report import EvalReport
from libraryfs.evals.request import build
from libraryfs.evals.runner import run
from libraryfs.ingest.embed import embed_missing
from libraryfs.models import factory
from libraryfs.models.cancel import Cancel
from libraryfs.settings import settings
from libraryfs.store import keywords
from libraryfs.store.snapshot import Snapshot
from tests.ask.fake_embedder import BrokenEmbedder, WordEmbedder
from tests.evals.world import RING, SET, without_times
from tests.store.build import Builder

TEXT = """## When does the zebra gate open?
- seven

## How much does the walrus pump move a minute?
- 90 litres

## Who replaced the lemur lamp in March?
- Petra Novak

## Which composer wrote the opera about Falstaff?
- (not in the library)
"""


@pytest.fixture
def snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A ring of three facts and a set that asks for them, indexed for keyword search, closed."""
    monkeypatch.setenv("LIBRARYFS_CACHE", str(tmp_path / "cache"))
    build = Builder(tmp_path / "library.db")
    build.namespace(RING, "alice")
    build.memory(RING, "zebra", content="The zebra gate opens at seven in the morning.")
    build.memory(RING, "walrus", content="The walrus pump moves ninety litres a minute.")
    build.memory(RING, "lemur", content="The lemur lamp was replaced in March by Petra Novak.")
    build.item(RING, "set", name=SET, content=TEXT)
    with build.snapshot.transaction():
        keywords.index_queued(build.db)
    yield build.path
    build.snapshot.close()


def _run(path: Path, models: Models) -> EvalReport:
    return run(path, "alice", RING, build({"cache": False}), models)


def test_by_keywords_the_set_is_no_evidence_and_runs_repeat(snapshot: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    shutil.copyfile(snapshot, copy)
    shutil.copyfile(f"{snapshot}-wal", f"{copy}-wal")
    found = _run(snapshot, Models(None, None))
    assert [question.outcome for question in found.questions] == ["passed", "failed", "passed", "passed"]
    assert found.questions[1].miss == "retrieval"  # "ninety" is in the evidence, "90" is not
    assert found.questions[3].fragments[0].how == "abstention"
    assert found.questions[0].citations[0].path == f"{RING}/skills/zebra.md"
    assert not any(SET in path for question in found.questions for path in question.evidence)
    assert without_times(_run(copy, Models(None, None))) == without_times(found)


def test_a_search_by_keywords_is_not_comparable_with_one_by_vectors(snapshot: Path) -> None:
    """A model that is set is not one that was used: without vectors of it in the snapshot, keywords are searched."""
    words = WordEmbedder()
    unreachable = BrokenEmbedder(ModelUnavailable("nobody answers at the endpoint"))
    assert _run(snapshot, Models(unreachable, None)).trace.models["embedding"] == "none"
    found = _run(snapshot, Models(words, None))
    assert (found.trace.models["embedding"], found.drift_comparable) == ("none", True)
    assert any("the library has no vectors yet" in reason for reason in found.trace.degraded)
    assert _run(snapshot, Models(None, None)).drift_comparable  # that is a search by keywords too
    with Snapshot.open(snapshot, write=True) as writer:
        embed_missing(writer, words, Cancel())
    found = _run(snapshot, Models(words, None))
    assert (found.trace.models["embedding"], found.drift_comparable) == ("words@1", False)
    assert found.drift_reasons == ("the embedding model changed: none → words@1",)
    found = _run(snapshot, Models(WordEmbedder("others@1"), None))
    assert (found.trace.models["embedding"], found.drift_comparable) == ("none", False)


@pytest.mark.models
def test_with_the_built_in_models(snapshot: Path, tmp_path: Path) -> None:
    models = Models(factory.embedder(settings()), factory.language_model(settings()))
    try:
        assert models.embedder is not None
        with Snapshot.open(snapshot, write=True) as writer:
            embed_missing(writer, models.embedder, Cancel())
        copy = tmp_path / "copy.db"
        shutil.copyfile(snapshot, copy)
        shutil.copyfile(f"{snapshot}-wal", f"{copy}-wal")
        found = _run(snapshot, models)
        assert [question.outcome for question in found.questions][::2] == ["passed", "passed"]
        judged = found.questions[1].fragments[0]
        assert judged.judge is not None
        assert judged.judge.probability is not None
        assert found.trace.judge_calls >= 1
        assert "built in" in found.foot[0]
        assert without_times(_run(copy, models)) == without_times(found)
    finally:
        factory.close()
