"""A folder of skills: in each folder a SKILL.md, with its scripts and references beside it."""

from pathlib import Path
from typing import Final

from libraryfs.ingest.kind import TreeKind
from libraryfs.ingest.layout import Place

_SKILL: Final = "SKILL.md"


def _recognise(path: Path, names: frozenset[str]) -> str | None:
    if _SKILL in names:
        return _SKILL
    found = [name for name in sorted(names) if not name.startswith(".") and (path / name / _SKILL).is_file()]
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    return f"{found[0]}/{_SKILL}{more}" if found else None


def _place(path: str, _is_folder: bool) -> Place:
    return Place("skills", path)


KIND: Final = TreeKind("skills", "skills, each folder whole", _recognise, _place)
