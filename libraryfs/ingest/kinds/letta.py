"""A Letta agent file (`.af`): its memory blocks, and what was said as one conversation an agent."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from libraryfs.errors import InvalidSource
from libraryfs.ingest.files import show
from libraryfs.ingest.kind import Record, StoreKind

_SAID: Final = ("user", "assistant")


def _recognise(path: Path, _names: frozenset[str]) -> str | None:
    return "an agent file" if path.is_file() and path.suffix.lower() == ".af" else None


def _read(path: Path, warn: Callable[[str], None]) -> Iterator[Record | tuple[str, str, str]]:
    try:
        data = json.loads(path.read_bytes())
    except OSError as error:
        raise InvalidSource(f"{show(path)}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise InvalidSource(f"{show(path)}: not JSON: {error}") from None
    blocks = data.get("blocks", data.get("core_memory")) if isinstance(data, dict) else None
    if not isinstance(blocks, list):
        raise InvalidSource(f"{show(path)}: no blocks: an agent file of a version that is not known")
    for number, block in enumerate(blocks):
        record = _block(block, number) if isinstance(block, dict) else None
        if record is None:
            warn(f" block {number}: without a label or a value; left out")
        else:
            yield record
    agents = data.get("agents")
    for agent in agents if isinstance(agents, list) else [data]:
        if isinstance(agent, dict) and (record := _conversation(agent)):
            yield record


def _block(block: dict[str, Any], number: int) -> Record | None:
    label, value = block.get("label"), block.get("value")
    if not isinstance(label, str) or not isinstance(value, str) or not label:
        return None
    kept = ("description", "limit", "read_only", "metadata")
    metadata = {key: block[key] for key in kept if block.get(key) not in (None, {}, "")}
    return Record(str(block.get("id") or f"block-{number}"), label, value, metadata=metadata, where=f"block {number}")


def _conversation(agent: dict[str, Any]) -> Record | None:
    turns = []
    for message in agent.get("messages") or []:
        if isinstance(message, dict) and message.get("role") in _SAID and (text := _text(message.get("content"))):
            turns.append(f"**{message['role']}:** {text}")
    name = str(agent.get("name") or "agent")
    row_id = f"{agent.get('id') or name}/messages"
    text = "\n\n".join((f"# Conversation with {name}", *turns)) + "\n"
    return Record(row_id, f"Conversation with {name}", text, "episodic", {"turns": len(turns)}) if turns else None


def _text(content: object) -> str:
    if isinstance(content, str):
        return content.strip()
    parts = [part.get("text") for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    return "\n\n".join(part for part in parts if isinstance(part, str)).strip()


KIND: Final = StoreKind("letta", "a Letta agent file", _recognise, _read)
