"""request → retrieval → sentences → answer → grounding and shape → result. The one way to ask, for every surface."""

from collections.abc import Callable
from typing import NamedTuple

from libraryfs.ask.request import AskRequest
from libraryfs.ask.result import AskResult, Event
from libraryfs.library.resolver import Library
from libraryfs.models.cancel import Cancel
from libraryfs.models.protocols import Embedder, LanguageModel


class Models(NamedTuple):
    """The models to ask with; None where none is set. `Models(factory.embedder(s), factory.language_model(s))`."""

    embedder: Embedder | None
    language_model: LanguageModel | None


def ask(
    library: Library,
    models: Models,
    request: AskRequest,
    cancel: Cancel | None = None,
    on_event: Callable[[Event], None] | None = None,
) -> AskResult:
    """The answer, checked against its evidence. Blocks: call it in a thread, with a Library of that thread.

    `on_event` is called in this thread: EvidenceFound once, then TextPiece for each checked piece of the answer.
    Raises PathNotFound, InvalidPath, SnapshotError, Cancelled. Models that fail raise nothing: the result says so.
    """
    raise NotImplementedError
