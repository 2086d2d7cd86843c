"""The default embedder, for real: the same vectors as sentence-transformers gives without us."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from libraryfs.errors import Cancelled, DeadlineExceeded
from libraryfs.models import defaults
from libraryfs.models.cancel import Cancel
from libraryfs.models.local import LocalEmbedder

pytestmark = pytest.mark.models

TEXTS = [
    "We deploy on Tuesdays, after the change board.",
    "部署在星期二进行。",
    "",
    "a",
    "\ud800 a lone surrogate, a NUL \0 and an emoji 😀",
    "The on-call engineer holds the pager for a week. " * 40,  # longer than the window
    *(f"Text number {number}: {'word ' * (number % 37)}" for number in range(90)),
]


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> np.ndarray:
    """The texts' vectors by plain SentenceTransformer, in a process of its own."""
    script = """
import json, sys
import numpy as np
from sentence_transformers import SentenceTransformer
texts = [text.encode("utf-8", "replace").decode() for text in json.loads(sys.argv[2])]
model = SentenceTransformer(sys.argv[1])
np.save(sys.argv[3], model.encode(texts, normalize_embeddings=True, show_progress_bar=False))
"""
    out = tmp_path_factory.mktemp("plain") / "vectors.npy"
    folder = str(defaults.EMBEDDER.find())
    subprocess.run(
        [sys.executable, "-c", script, folder, json.dumps(TEXTS), str(out)],
        check=True,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
    )
    vectors: np.ndarray = np.load(out)
    return vectors


def test_the_vectors_are_those_of_sentence_transformers(embedder: LocalEmbedder, plain: np.ndarray) -> None:
    vectors = embedder.embed(TEXTS, Cancel())
    assert vectors.shape == (len(TEXTS), 384)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, plain, atol=2e-6)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_what_the_folder_says_is_what_the_loaded_model_says(embedder: LocalEmbedder) -> None:
    assert embedder.model == "all-MiniLM-L6-v2@53aa51172d14"
    assert embedder._worker.describe(Cancel()) == {"dimension": embedder.dimension, "max_tokens": embedder.window + 2}


def test_the_window_is_where_the_model_cuts(embedder: LocalEmbedder) -> None:
    full = "word " * embedder.window
    assert len(embedder.offsets(full)) == embedder.window
    inside, cut, shorter = embedder.embed([full, full + "zebra", "word " * (embedder.window - 1) + "zebra"], Cancel())
    np.testing.assert_allclose(inside, cut, atol=1e-6)
    assert not np.allclose(inside, shorter, atol=1e-3)


def test_nothing_to_embed(embedder: LocalEmbedder) -> None:
    assert embedder.embed([], Cancel()).shape == (0, 384)


def test_a_question_does_not_wait_for_a_bulk_job(embedder: LocalEmbedder) -> None:
    embedder.embed(["warm"], Cancel())
    cancel = Cancel()
    ended: list[float] = []

    def bulk() -> None:
        with pytest.raises(Cancelled):
            embedder.embed(["a long text to embed " * 50] * 4000, cancel)
        ended.append(time.monotonic())

    thread = threading.Thread(target=bulk)
    thread.start()
    time.sleep(0.3)
    start = time.monotonic()
    embedder.embed(["When do we deploy?"], Cancel())
    assert time.monotonic() - start < 5  # the whole job takes minutes
    assert thread.is_alive()
    start = time.monotonic()
    cancel.cancel()
    thread.join()
    assert ended[0] - start < 0.5


def test_a_deadline_ends_a_bulk_job(embedder: LocalEmbedder) -> None:
    start = time.monotonic()
    with pytest.raises(DeadlineExceeded):
        embedder.embed(["a long text to embed " * 50] * 4000, Cancel.after(0.3))
    assert time.monotonic() - start < 0.8


def test_a_copied_folder_is_another_model_with_the_same_vectors(tmp_path: Path, embedder: LocalEmbedder) -> None:
    from libraryfs.models.factory import embedder as make
    from libraryfs.settings import Settings

    folder = tmp_path / "my-model"
    folder.symlink_to(defaults.EMBEDDER.find())
    mine = make(Settings(embedder=str(folder)))
    assert mine is not None
    try:
        assert mine.model.startswith("my-model@")
        assert (mine.dimension, mine.window) == (384, 254)
        np.testing.assert_allclose(mine.embed(["a"], Cancel()), embedder.embed(["a"], Cancel()), atol=1e-6)
    finally:
        mine.close()
