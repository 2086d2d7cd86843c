"""Whose vectors a snapshot has: one model's, or those of models that may share it."""

import pytest

from libraryfs.errors import ModelUnavailable
from libraryfs.store import vectors
from libraryfs.store.vectors import EmbedderRecord
from tests.store.build import Builder

ALIKE = frozenset({"small@1", "small-int8@2"})


def test_models_that_are_alike_share_a_snapshot_and_are_both_named(build: Builder) -> None:
    snapshot = build.snapshot
    snapshot.enable_vectors()
    with snapshot.transaction() as db:
        vectors.start(db, "small@1", 8, ALIKE)
        vectors.check_embedder(db, "small-int8@2", 8, ALIKE)
        vectors.start(db, "small-int8@2", 8, ALIKE)
        assert vectors.embedder(db) == EmbedderRecord("small-int8@2, small@1", 8)
        for model in ALIKE:
            vectors.start(db, model, 8, ALIKE)
            vectors.check_embedder(db, model, 8, ALIKE)
        assert vectors.embedder(db) == EmbedderRecord("small-int8@2, small@1", 8)


@pytest.mark.parametrize(("model", "dimension"), [("large@3", 8), ("small@1", 16)])
def test_another_model_is_refused_with_the_cure(build: Builder, model: str, dimension: int) -> None:
    snapshot = build.snapshot
    snapshot.enable_vectors()
    with snapshot.transaction() as db:
        vectors.start(db, "small-int8@2", 8, ALIKE)
        for refuses in (vectors.check_embedder, vectors.start):
            with pytest.raises(ModelUnavailable, match="libraryfs embed --all"):
                refuses(db, model, dimension, ALIKE if model in ALIKE else frozenset())
        vectors.start(db, model, dimension, anew=True)
        assert vectors.embedder(db) == EmbedderRecord(model, dimension)
