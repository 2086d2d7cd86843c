"""Conversations as their services export them: a `conversations.json` of Claude or of ChatGPT. One file each."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from libraryfs.errors import InvalidSource
from libraryfs.ingest.files import show
from libraryfs.ingest.front_matter import nanoseconds
from libraryfs.ingest.kind import Record, StoreKind

_NAME: Final = "conversations.json"
_LOOKED_AT: Final = 256 * 1024

Read = Callable[[dict[str, Any]], Record | None]


def _recognises(mark: bytes) -> Callable[[Path, frozenset[str]], str | None]:
    def recognise(path: Path, names: frozenset[str]) -> str | None:
        file = path / _NAME if _NAME in names else path
        if not file.is_file() or file.suffix.lower() != ".json":
            return None
        with file.open("rb") as opened:
            head = opened.read(_LOOKED_AT).lstrip()
        return _NAME if head.startswith(b"[") and mark in head else None

    return recognise


def _reads(read: Read) -> Callable[[Path, Callable[[str], None]], Iterator[Record | tuple[str, str, str]]]:
    def records(path: Path, warn: Callable[[str], None]) -> Iterator[Record | tuple[str, str, str]]:
        file = path / _NAME if path.is_dir() else path
        try:
            found = json.loads(file.read_bytes())
        except OSError as error:
            raise InvalidSource(f"{show(file)}: cannot be read: {error.strerror}") from None
        except (ValueError, RecursionError) as error:
            raise InvalidSource(f"{show(file)}: not JSON: {error}") from None
        for number, one in enumerate(found if isinstance(found, list) else [], 1):
            record = read(one) if isinstance(one, dict) else None
            if record is None:
                warn(f" conversation {number}: empty, or of a form that is not known; left out")
            else:
                yield record

    return records


def _conversation(
    row_id: object, title: object, turns: list[tuple[str, str]], created: int | None, updated: int | None
) -> Record | None:
    said = [(who, text) for who, text in turns if text.strip()]
    if not isinstance(row_id, str) or not row_id or not said:
        return None
    name = str(title or "").strip() or " ".join(said[0][1].split())[:80]
    text = "\n\n".join((f"# {name}", *(f"**{who}:** {text.strip()}" for who, text in said))) + "\n"
    return Record(row_id, name, text, "episodic", {"turns": len(said)}, None, created, updated)


def _claude(one: dict[str, Any]) -> Record | None:
    turns = []
    for message in one.get("chat_messages") or []:
        if isinstance(message, dict):
            parts = [part.get("text") for part in message.get("content") or [] if isinstance(part, dict)]
            text = message.get("text") or "\n\n".join(part for part in parts if isinstance(part, str))
            turns.append((str(message.get("sender") or "?"), str(text or "")))
    times = (nanoseconds(one.get("created_at")), nanoseconds(one.get("updated_at")))
    return _conversation(one.get("uuid"), one.get("name"), turns, *times)


def _chatgpt(one: dict[str, Any]) -> Record | None:
    """The branch that ends in the current node: what the user sees."""
    mapping, node = one.get("mapping") or {}, one.get("current_node")
    turns: list[tuple[str, str]] = []
    seen: set[str] = set()
    while isinstance(node, str) and node in mapping and node not in seen:
        seen.add(node)
        message = mapping[node].get("message") or {}
        role = (message.get("author") or {}).get("role")
        parts = (message.get("content") or {}).get("parts") or []
        text = "\n\n".join(part for part in parts if isinstance(part, str))
        if role in ("user", "assistant"):
            turns.append((role, text))
        node = mapping[node].get("parent")
    times = [one.get("create_time"), one.get("update_time")]
    created, updated = (int(t * 1_000_000_000) if isinstance(t, int | float) else None for t in times)
    row_id = one.get("conversation_id") or one.get("id")
    return _conversation(row_id, one.get("title"), turns[::-1], created, updated)


CLAUDE: Final = StoreKind(
    "claude", "conversations exported from Claude", _recognises(b'"chat_messages"'), _reads(_claude)
)
CHATGPT: Final = StoreKind(
    "chatgpt", "conversations exported from ChatGPT", _recognises(b'"mapping"'), _reads(_chatgpt)
)
