"""Another program's store as a source: its records become memories, each a Markdown file."""

import json
import tempfile
from collections.abc import Iterator
from typing import Any, Final

from libraryfs.errors import InvalidSource
from libraryfs.ingest import credentials
from libraryfs.ingest.files import show
from libraryfs.ingest.folder import SECRET
from libraryfs.ingest.kind import Opening, Record, StoreKind
from libraryfs.ingest.source import Census, Loaded, Scanned, path_id
from libraryfs.paths import AGENT_SECTION, TYPE_OF_SECTION
from libraryfs.rows import EdgeRow, MemoryRow
from libraryfs.store.bodies import of_bytes

_TOLD_EVERY: Final = 500


class RecordsSource:
    """The records of a store. They are read once, and wait in a temporary file for the second pass."""

    may_repeat = True

    def __init__(self, opening: Opening, kind: StoreKind, uri: str) -> None:
        self.uri = uri
        self._opening = opening
        self._kind = kind
        self._spool = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()

    def scan(self) -> Iterator[Scanned]:
        """Every record and edge. Raises InvalidSource when the store cannot be read."""
        report, options = self._opening.report, self._opening.options
        shown = show(self._opening.path)
        ids: set[str] = set()
        edges: list[tuple[str, str, str]] = []
        for count, one in enumerate(self._kind.read(self._opening.path, self._warn)):
            if count % _TOLD_EVERY == 0:
                self._opening.progress("read", count, 0)
            if not isinstance(one, Record):
                edges.append(one)
                continue
            where = f"{shown}:{one.where}" if one.where else shown
            if not options.allow_secrets and (secret := credentials.find(one.text)):
                report.skip(f"{where}: {secret.what} in {one.title!r}", SECRET)
                continue
            row = self._row(one)
            ids.add(row.id)
            yield Scanned(row, self._put(row, one.text), where)
        for source, kind, target in edges:
            source, target = path_id(source), path_id(target)
            if source in ids and target in ids and source != target:
                edge = EdgeRow.model_construct(
                    namespace=self._opening.namespace, source=source, kind=kind, target=target, target_namespace=None
                )
                yield Scanned(edge, "", shown)

    def census(self) -> Census | None:
        """A store is read whole each time."""
        return None

    def load(self, locator: str) -> Loaded:
        """A record again."""
        offset, length = (int(text) for text in locator.split(":"))
        self._spool.seek(offset)
        fields, text = json.loads(self._spool.read(length))
        row: Any = MemoryRow.model_construct(**fields)
        return Loaded(row, of_bytes(text.encode("utf-8", "surrogatepass")))

    def again(self, locator: str) -> Scanned | None:
        """Nothing changes between the passes."""
        return None

    def close(self) -> None:
        """Removes the temporary file."""
        self._spool.close()

    def _row(self, one: Record) -> MemoryRow:
        section = self._section()
        memory_type = one.memory_type if section in ("memories", AGENT_SECTION) else TYPE_OF_SECTION[section]
        return MemoryRow.model_construct(
            namespace=self._opening.namespace,
            id=path_id(one.id),
            memory_type=memory_type,
            title=one.title,
            confidence=one.confidence,
            metadata=one.metadata,
            created_at=one.created_ns,
            updated_at=one.updated_ns,
            name=None,
            shown_folder=one.folder or None,
        )

    def _section(self) -> str:
        if not self._opening.namespace.startswith("/ring/"):
            return AGENT_SECTION
        section = (self._opening.options.section or self._kind.section).partition("/")[0]
        if section in ("workspace", "artifacts"):
            raise InvalidSource(f"--section {section}: the memories of a store go to a section of memories")
        return section

    def _put(self, row: MemoryRow, text: str) -> str:
        data = json.dumps(({"store": "memory", **row.__dict__}, text)).encode()
        offset = self._spool.seek(0, 2)
        self._spool.write(data)
        return f"{offset}:{len(data)}"

    def _warn(self, text: str) -> None:
        message = f"{show(self._opening.path)}:{text}"
        if self._opening.strict:
            raise InvalidSource(f"{message}. Nothing was imported")
        self._opening.report.warn(message)
