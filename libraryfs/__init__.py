"""libraryfs: what a team knows, mounted as plain files and able to answer.

In Python: `libraryfs.open(snapshot, principal=…)` (see api.py). What `__all__` names is public, and nothing else is.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from libraryfs.api import Library
    from libraryfs.api import open_library as open
    from libraryfs.ask.request import AskRequest
    from libraryfs.ask.result import AskResult, EvidenceFound, TextPiece
    from libraryfs.errors import (
        EvalSetError,
        InvalidPath,
        InvalidRequest,
        LibraryError,
        LimitExceeded,
        ModelError,
        PathNotFound,
        SnapshotError,
        SnapshotMissing,
    )
    from libraryfs.evals.report import EvalReport
    from libraryfs.evals.request import EvalRequest
    from libraryfs.library.drilldown import Drilldown, DrilldownRequest
    from libraryfs.library.stat import Listed, Stat
    from libraryfs.library.tree import TreeNode

__version__ = "0.1.0"

_HOMES = {
    "open": "api",
    "Library": "api",
    "AskRequest": "ask.request",
    "AskResult": "ask.result",
    "EvidenceFound": "ask.result",
    "TextPiece": "ask.result",
    "EvalReport": "evals.report",
    "EvalRequest": "evals.request",
    "Drilldown": "library.drilldown",
    "DrilldownRequest": "library.drilldown",
    "Listed": "library.stat",
    "Stat": "library.stat",
    "TreeNode": "library.tree",
    "EvalSetError": "errors",
    "InvalidPath": "errors",
    "InvalidRequest": "errors",
    "LibraryError": "errors",
    "LimitExceeded": "errors",
    "ModelError": "errors",
    "PathNotFound": "errors",
    "SnapshotError": "errors",
    "SnapshotMissing": "errors",
}

__all__ = [
    "AskRequest",
    "AskResult",
    "Drilldown",
    "DrilldownRequest",
    "EvalReport",
    "EvalRequest",
    "EvalSetError",
    "EvidenceFound",
    "InvalidPath",
    "InvalidRequest",
    "Library",
    "LibraryError",
    "LimitExceeded",
    "Listed",
    "ModelError",
    "PathNotFound",
    "SnapshotError",
    "SnapshotMissing",
    "Stat",
    "TextPiece",
    "TreeNode",
    "open",
]


def __getattr__(name: str) -> Any:
    """The public names, each loaded when it is used: `import libraryfs` itself loads nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module 'libraryfs' has no attribute {name!r}")
    return getattr(import_module(f"libraryfs.{_HOMES[name]}"), "open_library" if name == "open" else name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
