"""Where each file of a source folder goes in a ring or an agent: by the user's word, else by the kind of source."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from libraryfs.ingest.options import SourceOptions
from libraryfs.paths import AGENT_SECTION, SECTIONS

DOCUMENTS: Final = frozenset(
    [
        ".md",
        ".markdown",
        ".mdown",
        ".mkd",
        ".mdx",
        ".qmd",
        ".rmd",
        ".org",
        ".rst",
        ".txt",
        ".text",
        ".adoc",
        ".asciidoc",
        ".mediawiki",
        ".wiki",
        ".textile",
    ]
)
"""Suffixes of the files that are a memory each, in a section of memories."""
MARKDOWN: Final = frozenset([".md", ".markdown", ".mdown", ".mkd", ".mdx", ".qmd", ".rmd"])
"""Suffixes of the files that may have front matter."""

_DOCUMENT_NAMES: Final = frozenset((".cursorrules", ".windsurfrules", ".clinerules"))
"""Documents that have no suffix."""

NO_DOCUMENT: Final = "not a document, and an agent has memory only"
TWICE: Final = "not in a section, and the section workspace has one of this name"
_NO_MEMORY: Final = ("workspace", "artifacts")
_SKILL: Final = "SKILL.md"


class Place(NamedTuple):
    """A section (of an agent, "memory"), and the path below it."""

    section: str
    path: str

    @property
    def is_memory(self) -> bool:
        """Whether a file here is a memory."""
        return self.section not in _NO_MEMORY


Placing = Callable[[str, bool], Place]
"""The place of a path, and whether it is a folder, as a kind of source sees it."""


class Layout:
    """The places of one source's files."""

    def __init__(self, root: Path, options: SourceOptions, placing: Placing, *, is_ring: bool) -> None:
        self._root = root
        self._placing = placing
        self._is_ring = is_ring
        self._section = options.section
        self._maps = sorted(
            ((path, target) for path, _, target in (one.rpartition("=") for one in options.maps)),
            key=lambda pair: -len(pair[0]),
        )
        self._skills: set[str] = set()

    def enter(self, folder: str, names: frozenset[str]) -> None:
        """Hears of each folder before its files are placed: one with a SKILL.md is a skill, whole."""
        if _SKILL in names:
            self._skills.add(folder)

    def place(self, path: str, *, is_folder: bool) -> Place | str | None:
        """The place of a file; a reason when it has none. Of a folder: None where folders have no row."""
        if not self._is_ring:
            if is_folder:
                return None
            below = path.removeprefix(AGENT_SECTION + "/")
            return Place(AGENT_SECTION, below) if is_document(path) else NO_DOCUMENT
        place = self._chosen(path, is_folder)
        if is_folder:
            return place if place.section == "workspace" and place.path else None
        if place.is_memory and not is_document(path) and not self._in_skill(path):
            return Place("artifacts", f"{place.section}/{place.path}")
        if place.section == "workspace" and not path.startswith("workspace/") and self._is_taken(path, place):
            return TWICE
        return place

    def _chosen(self, path: str, is_folder: bool) -> Place:
        for prefix, target in self._maps:
            if prefix in (".", path) or path.startswith(prefix + "/"):
                below = path if prefix == "." else path[len(prefix) + 1 :]
                return _below(target, below if below or is_folder else path.rpartition("/")[2])
        if self._section is not None:
            return _below(self._section, path)
        return self._placing(path, is_folder)

    def _is_taken(self, path: str, place: Place) -> bool:
        """Whether a file at the top goes where the folder `workspace` has one: two files of one path."""
        return place.path == path and os.path.lexists(self._root / "workspace" / path)

    def _in_skill(self, path: str) -> bool:
        folder = path.rpartition("/")[0]
        while folder:
            if folder in self._skills:
                return True
            folder = folder.rpartition("/")[0]
        return "" in self._skills


def _below(target: str, path: str) -> Place:
    section, _, folder = target.partition("/")
    return Place(section, "/".join(part for part in (folder, path) if part))


def is_document(path: str) -> bool:
    """Whether a path's suffix, or its name, is that of a document."""
    return os.path.splitext(path)[1].lower() in DOCUMENTS or path.rpartition("/")[2] in _DOCUMENT_NAMES


def in_sections(path: str, is_folder: bool) -> Place:
    """The place in a source that is laid out in sections; what is in none goes to the workspace."""
    section, _, rest = path.partition("/")
    if section in SECTIONS and (rest or is_folder):
        return Place(section, rest)
    if not is_folder and path.lower() in ("charter.md", "charter.markdown"):
        return Place("charter", path)
    return Place("workspace", path)


def as_tree(path: str, _is_folder: bool) -> Place:
    """The place in a source that is just a tree."""
    return Place("workspace", path)
