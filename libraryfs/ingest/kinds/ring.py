"""A folder that is laid out in a ring's sections, and any other folder as the tree that it is."""

from pathlib import Path
from typing import Final

from libraryfs.ingest.kind import TreeKind
from libraryfs.ingest.layout import as_tree, in_sections
from libraryfs.paths import SECTIONS

_SHOWN: Final = 3


def _has_sections(path: Path, names: frozenset[str]) -> str | None:
    found = [name for name in SECTIONS if name in names and (path / name).is_dir() and not (path / name).is_symlink()]
    charter = [name for name in ("charter.md", "charter.markdown") if name in {one.lower() for one in names}]
    shown = [*charter[:1], *(f"{name}/" for name in found)]
    more = f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
    return ", ".join(shown[:_SHOWN]) + more if shown else None


def _never(_path: Path, _names: frozenset[str]) -> str | None:
    return None


SECTIONS_KIND: Final = TreeKind("sections", "a folder laid out in a ring's sections", _has_sections, in_sections)
TREE_KIND: Final = TreeKind("tree", "any folder, as the tree that it is, in workspace/", _never, as_tree)
