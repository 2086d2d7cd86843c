"""Small snapshots for tests, through the store's own functions."""

from pathlib import Path
from typing import Any

import apsw

from libraryfs.nodes import Entry
from libraryfs.rows import ArtifactRow, MemoryRow, WorkspaceRow
from libraryfs.store import access, artifacts, bodies, entries, memory, namespaces, workspace
from libraryfs.store.outcome import Outcome
from libraryfs.store.snapshot import Snapshot

NOW = 1_700_000_000_000_000_000


class Builder:
    """Writes rows to one new snapshot."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.snapshot = Snapshot.open(path, create=True)
        self.now = NOW

    @property
    def db(self) -> apsw.Connection:
        return self.snapshot.db

    def namespace(self, path: str, *principals: str) -> namespaces.Namespace:
        with self.snapshot.transaction():
            namespace = namespaces.ensure(self.db, path)
            for principal in principals:
                access.grant(self.db, principal, namespace)
        return namespace

    def memory(self, namespace: str, row_id: str, kind: str = "skill", content: str = "", **fields: Any) -> Outcome:
        row = MemoryRow(
            namespace=namespace,
            id=row_id,
            memory_type=kind,
            title=fields.pop("title", row_id),
            content=content,
            **fields,
        )
        return self._store(memory.upsert, row)

    def item(self, namespace: str, row_id: str, parent: str | None = None, content: str = "", **fields: Any) -> Outcome:
        name = fields.pop("name", row_id)
        row = WorkspaceRow(namespace=namespace, id=row_id, parent_id=parent, name=name, content=content, **fields)
        return self._store(workspace.upsert, row)

    def artifact(self, namespace: str, row_id: str, filename: str | None = None, content: str = "") -> Outcome:
        row = ArtifactRow(
            namespace=namespace, id=row_id, filename=row_id if filename is None else filename, content=content
        )
        return self._store(artifacts.upsert, row)

    def entry(self, table: Any, namespace: str, row_id: str) -> Entry:
        found = namespaces.find_path(self.db, namespace)
        assert found is not None
        entry = entries.get(self.db, table.find(self.db, found.id, row_id).ino)
        assert entry is not None
        return entry

    def _store(self, upsert: Any, row: Any) -> Outcome:
        self.now += 1_000_000_000
        with self.snapshot.transaction():
            namespace = namespaces.ensure(self.db, row.namespace)
            outcome: Outcome = upsert(self.db, namespace, row, bodies.of_bytes(row.data()), None, self.now)
        return outcome
