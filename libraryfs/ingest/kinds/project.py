"""A project's repository: what it says to agents, its decision records, its rules; the rest is its workspace."""

import re
from pathlib import Path
from typing import Any, Final

from libraryfs.ingest.document import Document
from libraryfs.ingest.kind import TreeKind
from libraryfs.ingest.layout import Place, is_document
from libraryfs.ingest.links import Link, numbered

_INSTRUCTIONS: Final = frozenset(
    ("agents.md", "claude.md", "gemini.md", ".cursorrules", ".windsurfrules", ".clinerules", "copilot-instructions.md")
)
_POLICIES: Final = frozenset(("security", "code_of_conduct", "code-of-conduct"))
_PROTOCOLS: Final = frozenset(("governance", "contributing"))
_WANTED: Final = frozenset(
    [
        ".cursorrules",
        ".windsurfrules",
        ".clinerules",
        ".github/copilot-instructions.md",
        ".github/SECURITY.md",
        ".github/CONTRIBUTING.md",
        ".github/CODE_OF_CONDUCT.md",
    ]
)
_RECORDS: Final = re.compile(
    r"(?i)(?:^|/)(?:adrs?|decisions|decision[-_]?records|architecture[-_]decisions?|architectural[-_]decisions)/(.+)$"
)
_RUNBOOKS: Final = re.compile(r"(?i)(?:^|/)(?:runbooks?|playbooks?)/(.+)$")
_DATA: Final = re.compile(
    r"(?i).*\.(?:png|jpe?g|gif|webp|svg|ico|bmp|tiff?|pdf|docx?|pptx?|xlsx?|odt|ods|odp|epub|zip|gz|tgz|tar|7z|mp[34]|wav"
    r"|webm|mov|avi|csv|tsv|parquet|sqlite|db|npy|npz|woff2?|ttf|otf|eot|drawio|fig)"
)
_FOLDERS: Final = [
    "docs/adr",
    "docs/adrs",
    "docs/decisions",
    "docs/architecture/decisions",
    "docs/architecture-decisions",
    "doc/adr",
    "doc/architecture/decisions",
    "adr",
    "adrs",
]
_LOOKED_AT: Final = 16 * 1024
_TARGET: Final = r"(?:ADR[-_ ]?)?\[[^\]]*\]\(([^)\s]+)\)|(ADR[-_ ]?\d+)"
_BY: Final = re.compile(rf"(?i)supers?[ce]+ded[-_ ]by[:\s]*(?:{_TARGET})")
_OVER: Final = re.compile(rf"(?i)supers?[ce]+des[:\s]*(?:{_TARGET})")
_STATUS: Final = re.compile(
    r"(?im)^(?:#+[ \t]*status[ \t]*\n+|[*-]?[ \t]*\*{0,2}status\*{0,2}:\*{0,2}[ \t]*)([^\n]{1,200})"
)
_DATE: Final = re.compile(r"(?im)^[*-]?[ \t]*\*{0,2}date\*{0,2}:\*{0,2}[ \t]*([\d-]{8,10})")


def _recognise(path: Path, names: frozenset[str]) -> str | None:
    told = sorted(name for name in names if name.lower() in _INSTRUCTIONS)
    records = [folder for folder in _FOLDERS if names and (path / folder).is_dir()]
    shown = [*told[:2], *(f"{folder}/" for folder in records[:1])]
    if not shown and ".git" in names and any(name.lower().startswith("readme") for name in names):
        shown = [".git"]
    return ", ".join(shown) if shown else None


def _place(path: str, _is_folder: bool) -> Place:
    if _is_folder:
        return Place("artifacts" if _records(path + "/x") else "workspace", path)
    name = path.rpartition("/")[2].lower()
    stem = name.rpartition(".")[0] or name
    if name in _INSTRUCTIONS:
        return Place("instructions", path)
    if _DATA.fullmatch(name):
        return Place("artifacts", path)
    if is_document(path):
        if found := _records(path):
            return Place("decisions", found)
        if runbook := _RUNBOOKS.search(path):
            return Place("protocols", runbook[1])
        if path.count("/") <= 1 and stem in _POLICIES:
            return Place("policies", path)
        if path.count("/") <= 1 and stem in _PROTOCOLS:
            return Place("protocols", path)
    return Place("workspace", path)


def _records(path: str) -> str | None:
    found = _RECORDS.search(path)
    return found[1] if found else None


def _links(document: Document) -> list[Link]:
    """What a decision record says of its successors and predecessors, in front matter, status or body."""
    if not _records(document.path) or not document.text:
        return []
    head = document.text[:_LOOKED_AT]
    found = [Link("supersedes", _target(match), is_back=True) for match in _BY.finditer(head)]
    found += [Link("supersedes", _target(match)) for match in _OVER.finditer(head)]
    by = document.reading.front.metadata.get("superseded_by") or document.reading.front.metadata.get("superseded-by")
    for one in by if isinstance(by, list) else [by] if by else []:
        found.append(Link("supersedes", numbered(str(one)) or str(one), is_back=True))
    return list(dict.fromkeys(found))


def _target(match: re.Match[str]) -> str:
    return match[1].partition("#")[0] if match[1] else numbered(match[2]) or match[2]


def _describe(document: Document) -> dict[str, Any]:
    """The status and the date that a record has in its body."""
    if not _records(document.path) or not document.text:
        return {}
    body = document.text[document.reading.end :][:_LOOKED_AT]
    found = {"status": _STATUS.search(body), "date": _DATE.search(body)}
    return {name: match[1].strip() for name, match in found.items() if match}


KIND: Final = TreeKind(
    "project",
    "a project: instructions, decision records, rules, and the rest",
    _recognise,
    _place,
    _WANTED,
    _links,
    _describe,
)
