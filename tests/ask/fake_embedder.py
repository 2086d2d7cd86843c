"""Embedders whose vectors a test can foresee."""

import re
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b

import numpy as np

from libraryfs.errors import ModelError
from libraryfs.models.cancel import Cancel
from libraryfs.models.protocols import Vectors

_TOKEN = re.compile(r"[A-Za-z0-9]{1,6}|[^\sA-Za-z0-9]")


class WordEmbedder:
    """A text's vector is the sum of its words' random ones, so texts with words in common are near each other."""

    def __init__(self, model: str = "words@1", dimension: int = 32, window: int = 64) -> None:
        self.model = model
        self.dimension = dimension
        self.window = window
        self.calls: list[list[str]] = []
        self.before: Callable[[], None] = lambda: None
        """Called at each call for vectors; may raise."""

    @property
    def texts(self) -> list[str]:
        return [text for call in self.calls for text in call]

    def embed(self, texts: Sequence[str], cancel: Cancel) -> Vectors:
        cancel.check()
        self.before()
        assert all(len(self.offsets(text)) <= self.window for text in texts), "cut by the model"
        self.calls.append(list(texts))
        return np.stack([_unit(self.vector(text)) for text in texts]).astype(np.float32)

    def vector(self, text: str) -> Vectors:
        words = re.findall(r"\w+", text.lower()) or [text]
        total: Vectors = np.sum([_random(word, self.dimension) for word in words], axis=0, dtype=np.float32)
        return total

    def offsets(self, text: str) -> list[tuple[int, int]]:
        return [found.span() for found in _TOKEN.finditer(text)]

    def close(self) -> None:
        return None


class PlacedEmbedder(WordEmbedder):
    """A text that holds one of the given marks has that mark's vector; any other, the opposite of the first."""

    def __init__(self, places: Mapping[str, Sequence[float]], **options: int) -> None:
        super().__init__("placed@1", dimension=len(next(iter(places.values()))), **options)
        self.places = places

    def vector(self, text: str) -> Vectors:
        for mark, place in self.places.items():
            if mark in text:
                return np.array(place, dtype=np.float32)
        return -np.array(next(iter(self.places.values())), dtype=np.float32)


class BrokenEmbedder(WordEmbedder):
    """Fails whenever it is asked for a vector."""

    def __init__(self, error: ModelError) -> None:
        super().__init__()
        self._error = error

    def embed(self, texts: Sequence[str], cancel: Cancel) -> Vectors:
        raise self._error


def _random(word: str, dimension: int) -> Vectors:
    seed = int.from_bytes(blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest())
    return np.random.default_rng(seed).standard_normal(dimension).astype(np.float32)


def _unit(vector: Vectors) -> Vectors:
    length = float(np.linalg.norm(vector))
    return vector / length if length else np.eye(1, len(vector), dtype=np.float32)[0]
