"""Question and scope → evidence: nearest items, expanded over edges, merged, current before superseded."""

from collections.abc import Sequence
from typing import Literal

from libraryfs.ask.evidence import Evidence, Retrieval
from libraryfs.library.resolver import Library
from libraryfs.models.cancel import Cancel
from libraryfs.models.protocols import Embedder
from libraryfs.nodes import Entry

__all__ = ["NEAREST", "Evidence", "Retrieval", "retrieve"]

NEAREST = 5
"""Items that a vector search gives for each path (fixed)."""


def retrieve(
    library: Library,
    embedder: Embedder | None,
    question: str,
    scopes: Sequence[Entry],
    *,
    retrieval: Literal["vector", "hybrid"] = "vector",
    cancel: Cancel | None = None,
) -> Retrieval:
    """The evidence for `question` in the folders and files `scopes`, as the library's principal sees it.

    Without an embedder, with one that fails, or without vectors in the scopes, keywords are searched and `degraded`
    says so. Raises Cancelled, DeadlineExceeded, SnapshotError; a failing model raises nothing.
    """
    raise NotImplementedError
