"""The kinds of sources that are known, and the choice of one for a path."""

from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Final

from libraryfs.errors import InvalidRequest
from libraryfs.ingest.kind import Kind, StoreKind, TreeKind
from libraryfs.ingest.kinds import chats, letta, mcp_memory, project, ring, skills, vault

GROUP: Final = "libraryfs.kinds"


_BUILT_IN: Final[tuple[Kind, ...]] = (
    *(letta.KIND, mcp_memory.KIND, chats.CLAUDE, chats.CHATGPT),
    *(vault.KIND, ring.SECTIONS_KIND, skills.KIND, project.KIND, ring.TREE_KIND),
)
"""In the order in which they are asked."""


@cache
def table() -> dict[str, Kind]:
    """All kinds by name, those of other packages first: the first that recognises a source takes it."""
    found: dict[str, Kind] = {}
    for point in entry_points(group=GROUP):
        kind = point.load()
        if isinstance(kind, TreeKind | StoreKind):
            found[kind.name] = kind
    return found | {kind.name: kind for kind in _BUILT_IN}


def choose(path: Path, name: str | None) -> tuple[Kind, str]:
    """The kind of a source, and why: `name` where the user has named one. Raises InvalidRequest for an unknown name."""
    kinds = table()
    if name is not None:
        if name not in kinds:
            raise InvalidRequest(f"--from {name}: no such kind of source; there are {', '.join(kinds)}")
        return kinds[name], "as you said"
    names = frozenset(entry.name for entry in path.iterdir()) if path.is_dir() else frozenset()
    for kind in kinds.values():
        if why := kind.recognise(path, names):
            return kind, why
    return ring.TREE_KIND, ""
