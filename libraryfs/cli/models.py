"""The models that the settings name, for the commands that use them."""

from collections.abc import Iterator
from contextlib import contextmanager

from libraryfs.ask.pipeline import Models
from libraryfs.models import factory
from libraryfs.models.cancel import Cancel
from libraryfs.settings import settings

__all__ = ["Cancel", "models"]


@contextmanager
def models() -> Iterator[Models]:
    """The embedder and the language model. Nothing loads before it is used; their workers stay for the next command."""
    chosen = settings()
    try:
        yield Models(factory.embedder(chosen), factory.language_model(chosen))
    finally:
        factory.close()
