"""Snapshot → `.jsonl` rows: the lossless form (see rows.py)."""

import base64
import json
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from libraryfs.errors import InvalidSource, PathNotFound
from libraryfs.ingest.report import ExportReport, Progress, Writable, no_progress
from libraryfs.nodes import Entry, Kind
from libraryfs.paths import parse_namespace
from libraryfs.rows import iso
from libraryfs.store import access, artifacts, bodies, edges, entries, memory, namespaces, workspace
from libraryfs.store.names import from_bytes
from libraryfs.store.namespaces import Namespace
from libraryfs.store.snapshot import Snapshot

if TYPE_CHECKING:
    import apsw

PART: Final = 3 * bodies.CHUNK
"""Bytes of a content in one line; a longer one has part rows. A multiple of 3, so that base 64 needs no padding."""

_TOLD_EVERY: Final = 500

Json = dict[str, Any]


def export(
    snapshot: Snapshot, out: Writable, namespace: str | None = None, progress: Progress = no_progress
) -> ExportReport:
    """Write the snapshot, or one `/ring/NAME` or `/agent/NAME`, as `.jsonl` to `out`; an import of it is equal.

    All rows are of one moment, whatever others write meanwhile. Raises PathNotFound.
    """
    started = time.monotonic()
    report = ExportReport()
    with snapshot.reading() as db:
        chosen = _chosen(db, namespace)
        for one in chosen:
            _write(out, {"store": "namespace", "path": one.path})
        report.namespaces = len(chosen)
        for one in chosen:
            for line in _rows(db, one):
                _write(out, line)
                if line["store"] != "part":
                    report.rows += 1
                    if report.rows % _TOLD_EVERY == 0:
                        progress("write", report.rows, 0)
        for line in _edges(db, chosen):
            _write(out, line)
            report.edges += 1
        for principal, granted in access.every(db):
            if granted in chosen:
                _write(out, {"store": "grant", "principal": principal, "path": granted.path})
                report.grants += 1
    report.seconds = time.monotonic() - started
    return report


def _chosen(db: "apsw.Connection", path: str | None) -> list[Namespace]:
    if path is None:
        return namespaces.every(db)
    found = namespaces.find(db, *parse_namespace(path))
    if found is None:
        raise PathNotFound(path)
    return [found]


def _rows(db: "apsw.Connection", namespace: Namespace) -> Iterator[Json]:
    row: Json
    folders = _PrefixNames(db)
    for one in memory.every(db, namespace.id):
        entry = _entry(db, one.ino)
        row = {"store": "memory", "namespace": namespace.path, "id": one.id, "memory_type": one.memory_type}
        row |= {"title": one.title, "name": from_bytes(entry.name), "confidence": one.confidence}
        if folder := folders.of(abs(entry.parent)):
            row["shown_folder"] = from_bytes(folder)
        yield from _with_content(db, row | _common(one), entry)
    for item in workspace.every(db, namespace.id):
        entry = _entry(db, item.ino)
        row = {"store": "workspace", "namespace": namespace.path, "id": item.id, "parent_id": item.parent_id}
        row |= {"folder": item.is_folder, "name": from_bytes(item.name), "media_type": item.media_type}
        yield from _with_content(db, row | _shown(entry, item.name) | _common(item), entry)
    for artifact in artifacts.every(db, namespace.id):
        entry = _entry(db, artifact.ino)
        folder, _, leaf = artifact.filename.rpartition(b"/")
        row = {"store": "artifact", "namespace": namespace.path, "id": artifact.id}
        row |= {"filename": from_bytes(artifact.filename), "media_type": artifact.media_type}
        shown = folders.of(entry.parent)
        if shown != folder:
            row["shown_folder"] = from_bytes(shown)
        yield from _with_content(db, row | _shown(entry, leaf) | _common(artifact), entry)


def _common(row: memory.Memory | workspace.Item | artifacts.Artifact) -> Json:
    common: Json = {"metadata": row.metadata} if row.metadata else {}
    return common | {"created_at": iso(row.created_ns), "updated_at": iso(row.updated_ns)}


def _shown(entry: Entry, true_name: bytes) -> Json:
    return {} if entry.name == true_name else {"shown_name": from_bytes(entry.name)}


def _entry(db: "apsw.Connection", ino: int) -> Entry:
    entry = entries.get(db, ino)
    if entry is None:
        raise InvalidSource(f"the row with inode number {ino} has no entry; 'libraryfs check' says what else is wrong")
    return entry


class _PrefixNames:
    """The paths below their section that prefix folders are shown under."""

    def __init__(self, db: "apsw.Connection") -> None:
        self._db = db
        self._known: dict[int, bytes] = {}

    def of(self, ino: int) -> bytes:
        """The shown path of the prefix folder `ino`; empty for the section itself."""
        if ino not in self._known:
            entry = _entry(self._db, ino)
            if entry.kind != Kind.PREFIX:
                return b""
            above = self.of(entry.parent)
            self._known[ino] = above + b"/" + entry.name if above else entry.name
        return self._known[ino]


def _with_content(db: "apsw.Connection", row: Json, entry: Entry) -> Iterator[Json]:
    """The row, with its content as text where it is that, and its further parts."""
    if row.get("folder"):
        yield row
        return
    first = bodies.read(db, entry, 0, PART)
    if entry.size <= PART:
        try:
            yield row | {"content": first.decode()}
            return
        except UnicodeDecodeError:
            pass
    yield row | {"content_base64": base64.b64encode(first).decode()}
    for offset in range(PART, entry.size, PART):
        piece = bodies.read(db, entry, offset, PART)
        yield {"store": "part", "content_base64": base64.b64encode(piece).decode()}


def _edges(db: "apsw.Connection", chosen: list[Namespace]) -> Iterator[Json]:
    paths = {one.id: one.path for one in namespaces.every(db)}
    for one in chosen:
        found = edges.of_namespace(db, one.id)
        # by path: the numbers of namespaces differ between two equal snapshots
        found.sort(key=lambda edge: (edge.source_id, edge.kind, paths[edge.target_ns], edge.target_id))
        for edge in found:
            line = {"store": "edge", "namespace": one.path, "source": edge.source_id, "kind": edge.kind}
            line["target"] = edge.target_id
            if edge.target_ns != one.id:
                line["target_namespace"] = paths[edge.target_ns]
            yield line


def _write(out: Writable, line: Json) -> None:
    try:
        text = json.dumps(line, ensure_ascii=False).encode()
    except UnicodeEncodeError:  # lone surrogates: JSON can escape them, UTF-8 cannot hold them
        text = json.dumps(line).encode()
    out.write(text + b"\n")
