"""The MCP memory server's file: entities with observations, and relations between them.

Three dialects: lines with `type`, lines without it, and one JSON object of `entities` and `relations`.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from libraryfs.errors import InvalidSource
from libraryfs.ingest.files import show
from libraryfs.ingest.kind import Record, StoreKind

_LOOKED_AT: Final = 64 * 1024
_LONGEST: Final = 64 * 1024 * 1024


def _recognise(path: Path, _names: frozenset[str]) -> str | None:
    if not path.is_file() or path.suffix.lower() not in (".json", ".jsonl", ".ndjson"):
        return None
    with path.open("rb") as file:
        head = file.read(_LOOKED_AT).lstrip()
    try:
        first = json.loads(head.partition(b"\n")[0])
    except ValueError:
        is_graph = head.startswith(b"{") and b'"entities"' in head and b'"observations"' in head
        return "entities and relations" if is_graph else None
    if not isinstance(first, dict):
        return None
    is_one = "entityType" in first or "relationType" in first or isinstance(first.get("entities"), list)
    return "entities and relations" if is_one else None


def _read(path: Path, warn: Callable[[str], None]) -> Iterator[Record | tuple[str, str, str]]:
    seen: dict[str, int] = {}
    for number, one in _objects(path, warn):
        entity, source, target = one.get("name"), one.get("from"), one.get("to")
        if isinstance(entity, str) and entity:
            if entity in seen:
                warn(f"{number}: the entity {entity!r} stands in line {seen[entity]} too; the first is taken")
                continue
            seen[entity] = number
            yield _record(entity, one, number)
        elif isinstance(source, str) and isinstance(target, str):
            yield source, str(one.get("relationType") or "related_to")[:255], target
        else:
            warn(f"{number}: neither an entity nor a relation; left out")


def _objects(path: Path, warn: Callable[[str], None]) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line, object) of each entity, then each relation as they come."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InvalidSource(f"{show(path)}: cannot be read: {error.strerror}") from None
    if len(data) > _LONGEST:
        raise InvalidSource(f"{show(path)}: over {_LONGEST >> 20} MiB; a memory file holds less")
    try:
        whole = json.loads(data)
    except (ValueError, RecursionError):
        whole = None
    if isinstance(whole, dict) and isinstance(whole.get("entities"), list):
        rows = [*whole["entities"], *(whole.get("relations") or [])]
        yield from ((number, one) for number, one in enumerate(rows, 1) if isinstance(one, dict))
        return
    for number, line in enumerate(data.splitlines(), 1):
        if not line.strip():
            continue
        try:
            one = json.loads(line)
        except (ValueError, RecursionError) as error:
            warn(f"{number}: not JSON: {error}; left out")
            continue
        if isinstance(one, dict):
            yield number, one
        else:
            warn(f"{number}: not a JSON object; left out")


def _record(entity: str, one: dict[str, Any], number: int) -> Record:
    given = one.get("observations")
    observations = [str(text) for text in given] if isinstance(given, list) else []
    kind = str(one.get("entityType") or "")
    lines = [f"# {entity}", "", *([f"{kind}", ""] if kind else []), *(f"- {text}" for text in observations)]
    rest = {key: value for key, value in one.items() if key not in ("type", "name", "observations")}
    return Record(entity, entity, "\n".join(lines) + "\n", metadata=rest, where=str(number))


KIND: Final = StoreKind("mcp-memory", "the memory file of an MCP server", _recognise, _read)
