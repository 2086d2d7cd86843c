"""Paths and inode numbers → entries and bytes, as one principal sees them. All that is shown goes through here."""

import json
from collections.abc import Callable
from typing import Any, TypeVar

from libraryfs import paths
from libraryfs.errors import PathNotFound, SnapshotDamaged
from libraryfs.nodes import AGENTS_INO, RINGS_INO, ROOT_INO, Entry, Kind
from libraryfs.rows import iso
from libraryfs.store import (
    access,
    artifacts,
    bodies,
    edges,
    entries,
    memory,
    names,
    namespaces,
    prefixes,
    texts,
    workspace,
)
from libraryfs.store.snapshot import Snapshot

_BUILT_IN = ("id", "type", "namespace", "name", "title", "media_type", "confidence", "created_at", "updated_at")
_RESERVED = frozenset({*_BUILT_IN, "supersedes", "superseded_by", "derives_from", "derived_by"})
_BACKWARD = {"supersedes": "superseded_by", "derives_from": "derived_by"}
Read = TypeVar("Read")
MAX_ATTRIBUTE_NAME = 255 - len("user.library.")
MAX_ATTRIBUTE_BYTES = 64 * 1024


class Library:
    """What one principal sees of a snapshot. As its Snapshot, not to be shared between threads."""

    def __init__(self, snapshot: Snapshot, principal: str) -> None:
        self.snapshot = snapshot
        self.principal = principal
        self._db = snapshot.db
        self._version: int | None = None
        self._visible: frozenset[int] = frozenset()
        self._touched: Callable[[frozenset[int]], None] | None = None
        self._told: set[int] = set()

    def tell_touched(self, touched: Callable[[frozenset[int]], None] | None) -> None:
        """Has `touched` called with ids of namespaces before anything of them is given, each once; None ends that."""
        self._touched = touched
        self._told = set()

    def visible(self) -> frozenset[int]:
        """The ids of the namespaces that the principal may see, as of the latest commit."""
        visible = self._visible_now()
        if self._touched is not None and not visible <= self._told:
            self._tell(visible)
            return self._visible_now()
        return visible

    def sees(self, namespace_id: int) -> bool:
        """Whether the principal may see this namespace."""
        is_seen = namespace_id in self._visible_now()
        if is_seen and self._touched is not None and namespace_id not in self._told:
            self._tell(frozenset((namespace_id,)))
            return namespace_id in self._visible_now()  # it may have been revoked before it was told
        return is_seen

    def _tell(self, namespaces: frozenset[int]) -> None:
        assert self._touched is not None, "the caller has looked"
        self._told |= namespaces
        self._touched(namespaces)

    def _visible_now(self) -> frozenset[int]:
        version = self.snapshot.data_version()
        if version != self._version or self.snapshot.write:
            self._visible = access.visible(self._db, self.principal)
            self._version = version
        return self._visible

    def may_see(self, entry: Entry) -> bool:
        """Whether the entry is nobody's (/, /ring, /agent) or in a namespace that the principal may see."""
        return entry.namespace_id is None or self.sees(entry.namespace_id)

    def entry(self, ino: int) -> Entry:
        """The entry of an inode number. Raises PathNotFound when it is gone or hidden."""
        found = entries.get(self._db, ino)
        if found is None or not self.may_see(found):
            raise PathNotFound(f"inode {ino}")
        return found

    def lookup(self, folder: Entry, name: bytes) -> Entry:
        """The entry of a name in a folder. Raises PathNotFound, for absent and hidden after the same statements."""
        found = self._named(folder, name)
        if found is None or not self.may_see(found) or not self.may_see(folder):
            raise PathNotFound(names.from_bytes(name))
        return found

    def _named(self, folder: Entry, name: bytes) -> Entry | None:
        if folder.ino in (RINGS_INO, AGENTS_INO):
            return entries.lookup_granted(self._db, self.principal, folder.ino, name)
        return entries.lookup(self._db, folder.ino, name)

    def children(self, folder: Entry, after: int = 0, limit: int = 1000) -> list[Entry]:
        """Up to `limit` entries of a folder with inode numbers above `after`, in their order; [] at the end."""
        if folder.ino in (RINGS_INO, AGENTS_INO):
            found = entries.granted(self._db, self.principal, folder.ino, after, limit)
            return [entry for entry in found if self.may_see(entry)]
        return entries.children(self._db, folder.ino, after, limit) if self.may_see(folder) else []

    def listing(self, folder: Entry, after: int, limit: int) -> tuple[list[entries.Listed], bool]:
        """As `children`, as plain tuples of what a listing shows; and whether damaged rows were left out."""
        if folder.ino in (RINGS_INO, AGENTS_INO):
            found = self.children(folder, after, limit)
            return [(one.ino, one.name, one.kind, one.size, one.mtime_ns, one.ctime_ns) for one in found], False
        return entries.listing(self._db, folder.ino, after, limit) if self.may_see(folder) else ([], False)

    def children_by_name(self, folder: Entry, after: bytes = b"", limit: int = 1000) -> list[Entry]:
        """Up to `limit` entries of a folder with names above `after`: sections in their order, others in byte order."""
        if folder.kind == Kind.NAMESPACE:
            return [entry for entry in self.children(folder) if not after or entry.name > after]
        if folder.ino in (RINGS_INO, AGENTS_INO):
            found = entries.granted_by_name(self._db, self.principal, folder.ino, after, limit)
            return [entry for entry in found if self.may_see(entry)]
        return entries.children_by_name(self._db, folder.ino, after, limit) if self.may_see(folder) else []

    def count(self, folder: Entry) -> int:
        """How many entries of a folder the principal sees."""
        if folder.ino in (RINGS_INO, AGENTS_INO):
            kind = "ring" if folder.ino == RINGS_INO else "agent"
            return sum(1 for namespace in self.namespaces() if namespace.kind == kind)
        return entries.count(self._db, folder.ino) if self.may_see(folder) else 0

    def namespaces(self) -> list[namespaces.Namespace]:
        """The rings, then the agents, that the principal may see, by name."""
        found = namespaces.granted(self._db, self.principal)
        return [namespace for namespace in found if self.sees(namespace.id)]

    def resolve(self, path: str) -> Entry:
        """The entry of a library path. Raises InvalidPath for bad grammar, PathNotFound for absent and hidden alike."""
        paths.parse(path)
        entry = self.entry(ROOT_INO)
        for part in paths.segments(path):
            found = self._named(entry, names.to_bytes(part)) if entry.is_folder else None
            if found is None or not self.may_see(found):
                raise PathNotFound(path, self._meant(entry, part))
            entry = found
        return entry

    def _meant(self, folder: Entry, part: str) -> str | None:
        """The path of the entry whose name is most like `part`, of those that the principal sees in the folder."""
        if not folder.is_folder:
            return None
        seen = [names.from_bytes(child.name) for child in self.children_by_name(folder)]
        meant = paths.nearest(part, seen) or paths.nearest(f"{part}.md", seen)
        return None if meant is None else f"{self.path_of(folder).rstrip('/')}/{meant}"

    def path_of(self, entry: Entry) -> str:
        """The library path of an entry. Raises PathNotFound when it is hidden or not reachable from the root."""
        links = entries.chain(self._db, entry) if self.may_see(entry) else None
        if links is None:
            raise PathNotFound(f"inode {entry.ino}")
        return "/" + "/".join(names.from_bytes(link.name) for link in links[1:])

    def read(self, entry: Entry, offset: int, size: int) -> bytes:
        """Up to `size` bytes of a file's content from `offset`; b"" at the end.

        Raises SnapshotDamaged where the content is missing, short or changed, PathNotFound where it is gone or hidden.
        """
        return self._as_stored(entry, lambda now: bodies.read(self._db, now, offset, size))

    def read_into(self, entry: Entry, offset: int, buffer: bytearray) -> int:
        """Fills `buffer` from `offset` of a file of more than `bodies.CHUNK` bytes; how many bytes there were.

        Raises as `read`.
        """
        return self._as_stored(entry, lambda now: bodies.read_into(self._db, now, offset, buffer))

    def check_content(self, entry: Entry) -> None:
        """Reads a large file whose parts have no sums to its end. Raises as `read`."""
        self._as_stored(entry, lambda now: bodies.check_whole(self._db, now))

    def has_sums(self, entry: Entry) -> bool:
        """Whether each part of a file can be checked as it is read: false for large ones of an earlier version."""
        return entry.size <= bodies.CHUNK or bodies.is_summed(self._db, entry)

    def _as_stored(self, entry: Entry, read: Callable[[Entry], Read]) -> Read:
        if not self.may_see(entry):
            raise PathNotFound(f"inode {entry.ino}")
        try:
            return read(entry)
        except SnapshotDamaged:
            now = self.entry(entry.ino)
            if now.digest == entry.digest and now.size == entry.size:
                raise
        return read(now)  # it was changed since the entry was read

    def content(self, entry: Entry) -> bytes:
        """The whole content of a file."""
        return self.read(entry, 0, entry.size)

    def utf8(self, entry: Entry, start: int, length: int) -> bytes:
        """A part of a file's text in UTF-8, whatever coding the file is in."""
        return texts.utf8(self._db, entry, start, length) if self.may_see(entry) else b""

    def has_folders(self, section: Entry) -> bool:
        """Whether a section of memories has sub-folders."""
        return prefixes.has_any(self._db, section.ino)

    def attributes(self, entry: Entry) -> dict[str, bytes]:
        """The metadata of an entry: names without the prefix `user.library.`, values as text in UTF-8.

        Edges are ids, one a line, of both directions; an id of a namespace that the principal may not see is left out.
        A metadata key that a built-in name has becomes `metadata.<key>`; values that are not text are JSON.
        """
        values = self._attributes(entry)
        return {
            name: data
            for name, value in values.items()
            if value is not None and len(data := names.to_bytes(value)) <= MAX_ATTRIBUTE_BYTES
        }

    def _attributes(self, entry: Entry) -> dict[str, str | None]:
        if entry.namespace_id is None or not self.may_see(entry):
            return {}
        namespace = namespaces.by_id(self._db, entry.namespace_id).path
        charset = texts.encoding(self._db, entry.ino) if entry.kind >= Kind.MEMORY else "utf-8"
        known = {} if charset in ("", "utf-8") else {"charset": charset}
        return {**known, **self._of_row(entry, namespace)}

    def _of_row(self, entry: Entry, namespace: str) -> dict[str, str | None]:
        if entry.kind == Kind.MEMORY and (row := memory.get(self._db, entry.ino)):
            values = {"id": row.id, "type": row.memory_type, "namespace": namespace, "title": row.title}
            confidence = None if row.confidence is None else format(row.confidence, "g")
            return {
                **_custom(row.metadata),
                **values,
                "confidence": confidence,
                **_times(row.created_ns, row.updated_ns),
                **self._edges(row),
            }
        if entry.kind in (Kind.ITEM, Kind.FOLDER) and (item := workspace.get(self._db, entry.ino)):
            kind = "folder" if item.is_folder else "item"
            values = {"id": item.id, "type": kind, "namespace": namespace, "name": names.from_bytes(item.name)}
            times = _times(item.created_ns, item.updated_ns)
            return {**_custom(item.metadata), **values, "media_type": item.media_type, **times}
        if entry.kind == Kind.ARTIFACT and (file := artifacts.get(self._db, entry.ino)):
            values = {
                "id": file.id,
                "type": "artifact",
                "namespace": namespace,
                "name": names.from_bytes(file.filename),
            }
            times = _times(file.created_ns, file.updated_ns)
            return {**_custom(file.metadata), **values, "media_type": file.media_type, **times}
        return {"namespace": namespace, "type": Kind(entry.kind).name.lower()}

    def _edges(self, row: memory.Memory) -> dict[str, str | None]:
        found: dict[str, list[str]] = {}
        for edge in edges.declared(self._db, row.namespace_id, row.id):
            if edge.target_ns == row.namespace_id or self._sees_memory(edge.target_ns, edge.target_id):
                found.setdefault(edge.kind, []).append(edge.target_id)
        for edge in edges.pointing(self._db, row.namespace_id, row.id):
            if self._sees_memory(edge.source_ns, edge.source_id):
                name = _BACKWARD.get(edge.kind, f"{edge.kind}_by")
                found.setdefault(name, []).append(edge.source_id)
        return {kind[:MAX_ATTRIBUTE_NAME]: "\n".join(dict.fromkeys(ids)) for kind, ids in found.items()}

    def _sees_memory(self, namespace_id: int, row_id: str) -> bool:
        return self.sees(namespace_id) and memory.find(self._db, namespace_id, row_id) is not None


def _times(created_ns: int, updated_ns: int) -> dict[str, str | None]:
    return {"created_at": iso(created_ns), "updated_at": iso(updated_ns)}


def _custom(metadata: dict[str, Any]) -> dict[str, str | None]:
    values: dict[str, str | None] = {}
    for key, value in metadata.items():
        name = f"metadata.{key}" if key in _RESERVED else key
        raw = names.to_bytes(name)
        if raw and b"\0" not in raw and len(raw) <= MAX_ATTRIBUTE_NAME:
            values[name] = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return values
