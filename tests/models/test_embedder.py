"""The default embedder, for real: the same vectors as sentence-transformers gives without us."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from libraryfs.errors import Cancelled, DeadlineExceeded
from libraryfs.models import defaults
from libraryfs.models.cancel import Cancel
from libraryfs.models.factory import embedder as make
from libraryfs.models.local import LocalEmbedder
from libraryfs.settings import Settings

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
    folder = str(defaults.RELEASED_EMBEDDER.find())
    subprocess.run(
        [sys.executable, "-c", script, folder, json.dumps(TEXTS), str(out)],
        check=True,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
    )
    vectors: np.ndarray = np.load(out)
    return vectors


@pytest.fixture(scope="module")
def released() -> Iterator[LocalEmbedder]:
    """The released model by sentence-transformers, as a user sets it: by its folder."""
    model = make(Settings(embedder=str(defaults.RELEASED_EMBEDDER.find())))
    assert isinstance(model, LocalEmbedder)
    yield model
    model.close()


def cosines(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    result: np.ndarray = (one * other).sum(axis=1)
    return result


def test_a_folder_is_embedded_by_sentence_transformers(released: LocalEmbedder, plain: np.ndarray) -> None:
    """One text at a time in float32; a bulk job in bfloat16 where the processor can."""
    one_by_one = np.concatenate([released.embed([text], Cancel()) for text in TEXTS[:8]])
    np.testing.assert_allclose(one_by_one, plain[:8], atol=2e-6)
    vectors = released.embed(TEXTS, Cancel())
    assert vectors.shape == (len(TEXTS), 384)
    assert vectors.dtype == np.float32
    assert cosines(vectors, plain).min() > 0.9995
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-3)


def test_what_a_folder_says_is_what_its_loaded_model_says(released: LocalEmbedder) -> None:
    assert released.model == "all-MiniLM-L6-v2@53aa51172d14"
    assert (released.dimension, released.window) == (384, 254)
    assert released._describe() == {"dimension": 384, "max_tokens": 256}


def test_the_default_gives_nearly_the_released_models_vectors(embedder: LocalEmbedder, plain: np.ndarray) -> None:
    vectors = embedder.embed(TEXTS, Cancel())
    assert vectors.shape == (len(TEXTS), 384)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    found = cosines(vectors, plain)
    assert found.mean() > 0.998
    assert found.min() > 0.99


def test_a_text_has_one_vector_whatever_is_embedded_with_it(embedder: LocalEmbedder) -> None:
    alone = np.concatenate([embedder.embed([text], Cancel()) for text in TEXTS[:10]])
    np.testing.assert_allclose(embedder.embed(TEXTS, Cancel())[:10], alone, atol=1e-3)


def test_the_default_splits_a_text_as_the_released_tokeniser_does(
    embedder: LocalEmbedder, released: LocalEmbedder
) -> None:
    for text in (*TEXTS, "Ünïcode naïve café", "[SEP] [CLS] ##ing", "x" * 200, "a\u200bb\u0301 – “quoted”"):
        assert embedder.offsets(text) == released.offsets(text)


def test_the_default_is_who_it_says_it_is(embedder: LocalEmbedder) -> None:
    assert embedder.model == "all-MiniLM-L6-v2-int8@8199be6f699a"
    assert embedder._describe() == {"dimension": embedder.dimension, "max_tokens": embedder.window + 2}


def test_the_default_loads_no_torch(embedder: LocalEmbedder) -> None:
    embedder.embed(["a"], Cancel())
    maps = Path(f"/proc/{embedder._worker.pid}/maps").read_text()
    assert "onnxruntime" in maps
    assert "torch" not in maps


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
    assert time.monotonic() - start < 5  # else minutes


def test_a_linked_folder_is_known_by_its_weights(tmp_path: Path) -> None:
    folder = tmp_path / "my-model"
    folder.symlink_to(defaults.RELEASED_EMBEDDER.find())
    mine = make(Settings(embedder=str(folder)))
    assert mine is not None
    assert mine.model == defaults.RELEASED_EMBEDDER.model
    assert mine.model in defaults.alike(defaults.EMBEDDER.model)


def test_a_folder_of_other_weights_is_another_model(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(b"other weights")
    mine = make(Settings(embedder=str(tmp_path)))
    assert mine is not None
    assert mine.model.startswith(f"{tmp_path.name}@")
    assert defaults.alike(mine.model) == {mine.model}
