"""Settings → the models they name. One instance a process for each setting, so that callers share connections."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from libraryfs.models import defaults
from libraryfs.models.client import Worker
from libraryfs.models.embedders import DefaultSource, FolderSource
from libraryfs.models.local import LocalEmbedder, LocalLanguageModel, threads
from libraryfs.models.protocols import Embedder, LanguageModel
from libraryfs.settings import Settings, expanded, is_url

_Model = TypeVar("_Model", bound=Embedder | LanguageModel)
_lock = threading.Lock()
_made: dict[tuple[Any, ...], Any] = {}


def embedder(settings: Settings) -> Embedder | None:
    """The embedder that LIBRARYFS_EMBEDDER names; None for `none`. Starts and loads nothing.

    One that cannot work (package missing, no such file) is returned too: it raises `ModelUnavailable` when used.
    """
    if settings.embedder == "none":
        return None
    return _shared("embedder", settings, _embedder)


def language_model(settings: Settings) -> LanguageModel | None:
    """The language model that LIBRARYFS_LLM names; None for `none`. Like `embedder`."""
    if settings.llm == "none":
        return None
    return _shared("language model", settings, _language_model)


def close() -> None:
    """Close every connection that this process's models hold; workers stay for others, until they are idle."""
    with _lock:
        models = list(_made.values())
        _made.clear()
    for model in models:
        model.close()


# A fork has its parent's connections, which cannot be shared: it opens its own.
os.register_at_fork(after_in_child=_made.clear)


def _embedder(settings: Settings) -> Embedder:
    name = settings.embedder
    if is_url(name):
        from libraryfs.models.endpoint import EndpointEmbedder

        return EndpointEmbedder(
            name, model=settings.embedder_model, key=settings.embedder_key, window=settings.embedder_window
        )
    source = DefaultSource() if name == "default" else FolderSource(expanded(Path(name), "embedder"))
    return LocalEmbedder(source, _worker("embedder", settings))


def _language_model(settings: Settings) -> LanguageModel:
    name = settings.llm
    if is_url(name):
        from libraryfs.models.endpoint import EndpointLanguageModel

        return EndpointLanguageModel(name, model=settings.llm_model, key=settings.llm_key, context=settings.llm_context)
    source = defaults.LANGUAGE_MODEL if name == "default" else expanded(Path(name), "llm")
    return LocalLanguageModel(source, _worker("language model", settings))


def _worker(kind: str, settings: Settings) -> Worker:
    order = {
        "kind": kind,
        "threads": threads(settings.model_threads),
        "context": settings.llm_context,
        "memory_bytes": settings.model_memory_mb << 20,
    }
    return Worker(order, idle_seconds=settings.model_idle_seconds, waiting=settings.model_queue)


def _shared(kind: str, settings: Settings, make: Callable[[Settings], _Model]) -> _Model:
    prefix = "embedder" if kind == "embedder" else "llm"
    named = [name for name in Settings.model_fields if name.startswith((prefix, "model_"))]
    key = (kind, *(getattr(settings, name) for name in named))
    with _lock:
        if key not in _made:
            _made[key] = make(settings)
        model: _Model = _made[key]
        return model
