"""Settings → the models they name. One instance a process for each setting, so that callers share workers."""

from __future__ import annotations

from libraryfs.models.protocols import Embedder, LanguageModel
from libraryfs.settings import Settings


def embedder(settings: Settings) -> Embedder | None:
    """The embedder that LIBRARYFS_EMBEDDER names; None for `none`. Starts and loads nothing.

    One that cannot work (package missing, no such file) is returned too: it raises `ModelUnavailable` when used.
    """
    raise NotImplementedError


def language_model(settings: Settings) -> LanguageModel | None:
    """The language model that LIBRARYFS_LLM names; None for `none`. Like `embedder`."""
    raise NotImplementedError


def close() -> None:
    """End every worker process and connection that this process's models hold."""
