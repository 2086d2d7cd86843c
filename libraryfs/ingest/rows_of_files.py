"""From a file and its place to the row of it."""

import mimetypes
import os
from typing import Any, Final

from libraryfs.ingest.document import Document
from libraryfs.ingest.layout import Place, is_document
from libraryfs.ingest.source import path_id
from libraryfs.paths import AGENT_SECTION, SECTION_OF_TYPE, TYPE_OF_SECTION
from libraryfs.rows import ArtifactRow, MemoryRow, WorkspaceRow
from libraryfs.store.names import from_bytes

DEFAULT_TYPE: Final = "semantic"

_MEDIA_TYPES: Final = mimetypes.MimeTypes()  # the built-in table: the machine's own would differ from the next one's
for _media_type, _suffix in (
    ("application/yaml", ".yaml"),
    ("application/yaml", ".yml"),
    ("application/jsonl", ".jsonl"),
):
    _MEDIA_TYPES.add_type(_media_type, _suffix)
for _suffix in (".md", ".markdown", ".mdx"):
    _MEDIA_TYPES.add_type("text/markdown", _suffix)


def folder_row(namespace: str, place: Place) -> WorkspaceRow:
    """The row of a workspace folder."""
    return _item(namespace, place, is_folder=True, metadata={})


def row_of(
    namespace: str, place: Place, document: Document, *, by_title: bool, by_path: bool = False
) -> tuple[MemoryRow | WorkspaceRow | ArtifactRow, str | None]:
    """The row of a file at its place, and what of it is not as its front matter says.

    `by_title`: a memory's file name is made from its title. `by_path`: its id is its path, whatever it says.
    """
    if place.section == "artifacts":
        return _artifact(namespace, place, document), None
    if place.section == "workspace":
        return _item(namespace, place, is_folder=False, metadata=_with_source(document, place)), None
    return _memory(namespace, place, document, by_title=by_title, by_path=by_path)


def row_id(place: Place) -> str:
    """The id of what has none of its own: its place."""
    return path_id(f"{place.section}/{place.path}")


def _memory(
    namespace: str, place: Place, document: Document, *, by_title: bool, by_path: bool
) -> tuple[MemoryRow, str | None]:
    front = document.reading.front
    memory_type, metadata, remark = _type(place, document)
    folder, _, name = place.path.rpartition("/")
    is_flat = place.section in ("charter", AGENT_SECTION)
    if is_flat:
        name = place.path.replace("/", "-")
    row = MemoryRow.model_construct(
        namespace=namespace,
        id=(None if by_path else front.id) or _memory_id(place, document.path),
        memory_type=memory_type,
        title=document.title,
        confidence=front.confidence,
        metadata={**metadata, "source_path": _text(document.path)},
        created_at=front.created_ns,
        updated_at=front.updated_ns,
        name=None if by_title else _text(name),
        shown_folder=None if by_title or is_flat or not folder else _text(folder),
    )
    return row, remark


def _memory_id(place: Place, path: str) -> str:
    if place.section == AGENT_SECTION:
        return path_id(path)
    return path_id(place.path) if place.section == "charter" and "/" not in place.path else row_id(place)


def _type(place: Place, document: Document) -> tuple[str, dict[str, Any], str | None]:
    """In a ring the folder decides, since that is where the user has put the file."""
    front = document.reading.front
    if place.section == AGENT_SECTION:
        return front.memory_type or DEFAULT_TYPE, front.metadata, None
    if place.section == "memories":
        if not front.memory_type or front.memory_type not in SECTION_OF_TYPE:
            return front.memory_type or DEFAULT_TYPE, front.metadata, None
        memory_type = DEFAULT_TYPE
    else:
        memory_type = TYPE_OF_SECTION[place.section]
    if front.memory_type in (None, memory_type):
        return memory_type, front.metadata, None
    remark = f"memory_type {front.memory_type} does not belong in {place.section}/; imported as {memory_type}"
    return memory_type, {**front.metadata, "memory_type": front.memory_type}, remark


def _item(namespace: str, place: Place, *, is_folder: bool, metadata: dict[str, Any]) -> WorkspaceRow:
    parent, _, name = place.path.rpartition("/")
    return WorkspaceRow.model_construct(
        namespace=namespace,
        id=row_id(place),
        parent_id=row_id(Place(place.section, parent)) if parent else None,
        folder=is_folder,
        name=_text(name),
        media_type=None if is_folder else _MEDIA_TYPES.guess_type(name)[0],
        metadata=metadata,
    )


def _artifact(namespace: str, place: Place, document: Document) -> ArtifactRow:
    return ArtifactRow.model_construct(
        namespace=namespace,
        id=row_id(place),
        filename=_text(place.path),
        media_type=_MEDIA_TYPES.guess_type(place.path)[0],
        metadata=_with_source(document, place),
    )


def _with_source(document: Document, place: Place) -> dict[str, Any]:
    """What the front matter says, and where the file was when that is not where it is now."""
    metadata = dict(document.reading.front.values)
    if is_document(document.path) and document.reading.front.title is None and document.text:
        title = document.title
        if title != os.path.splitext(document.path.rpartition("/")[2])[0]:
            metadata["title"] = title
    if document.path not in (place.path, f"{place.section}/{place.path}"):
        metadata["source_path"] = _text(document.path)
    return metadata


def _text(path: str) -> str:
    return from_bytes(os.fsencode(path))
