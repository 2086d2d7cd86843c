"""Asking from a process that lives on, as the mount's does: the models are made once and shared by all questions."""

from collections.abc import Callable

from libraryfs.ask.pipeline import Models, ask
from libraryfs.ask.request import AskRequest
from libraryfs.ask.result import AskResult, Event
from libraryfs.library.resolver import Library
from libraryfs.models import factory
from libraryfs.models.cancel import Cancel
from libraryfs.settings import settings


def models() -> Models:
    """The models of this process's settings. Nothing loads before it is used."""
    chosen = settings()
    return Models(factory.embedder(chosen), factory.language_model(chosen))


def ask_until(
    on_stop: Callable[[Callable[[], None]], None],
    library: Library,
    request: AskRequest,
    on_event: Callable[[Event], None] | None,
    since: float | None = None,
) -> AskResult:
    """The answer, cancelled when `on_stop` calls what it is given. `since` and what it raises: as `pipeline.ask`."""
    cancel = Cancel()
    on_stop(cancel.cancel)
    return ask(library, models(), request, cancel, on_event, since)
