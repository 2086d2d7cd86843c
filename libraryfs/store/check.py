"""What is wrong in a snapshot: rows that no path reaches, names that had to be changed, dangling edges, damage."""

from collections.abc import Iterator

import apsw

from libraryfs.nodes import Kind
from libraryfs.store import check_content, inodes, memory, names, namespaces, workspace
from libraryfs.store.check_content import Report, guarded
from libraryfs.store.namespaces import Namespace
from libraryfs.store.problem import Problem


def check(db: apsw.Connection, *, fast: bool = False, report: Report = lambda done, total: None) -> Iterator[Problem]:
    """All problems of a snapshot; where damage of the file stops the reading, that is last.

    All content is read and compared with its digest, and all indexes with their tables, unless `fast`.
    """
    try:
        yield from _every(db, fast, report)
    except apsw.CorruptError:
        yield Problem("damaged_file", "", "", "SQLite cannot read on: damaged; restore a backup or import again")


def _every(db: apsw.Connection, fast: bool, report: Report) -> Iterator[Problem]:
    for (answer,) in db.execute("PRAGMA quick_check(10)" if fast else "PRAGMA integrity_check(10)").fetchall():
        if answer != "ok":
            yield Problem("damaged_file", "", "", f"SQLite finds: {answer}; restore a backup or import again")
    is_damaged = False
    for problem in check_content.rows(db):
        is_damaged = True
        yield problem
    if not fast:
        yield from check_content.contents(db, report)
    for namespace in namespaces.every(db):
        for part in (_workspace, _charters, _names, _edges):
            yield from guarded(part(db, namespace), is_damaged)


def _workspace(db: apsw.Connection, namespace: Namespace) -> Iterator[Problem]:
    section = inodes.section_ino(namespace.path, "workspace") if namespace.kind == "ring" else 0
    reachable = {
        ino
        for (ino,) in db.execute(
            "WITH RECURSIVE folder (ino) AS (VALUES (?) UNION"
            " SELECT e.ino FROM entries e JOIN folder f ON e.parent = f.ino WHERE e.kind = 3)"
            " SELECT e.ino FROM entries e JOIN folder f ON e.parent = f.ino",
            (section,),
        )
    }
    for item in workspace.every(db, namespace.id):
        if item.ino not in reachable:
            yield _unreachable(db, namespace, item)


def _unreachable(db: apsw.Connection, namespace: Namespace, item: workspace.Item) -> Problem:
    seen: set[str] = set()
    current: workspace.Item | None = item
    while current is not None:
        if current.id in seen:
            message = f"workspace item {item.id!r} is in, or below, a cycle of parents through {current.id!r}"
            return Problem("workspace_cycle", namespace.path, item.id, message + "; give one of them another parent")
        seen.add(current.id)
        above = None if current.parent_id is None else workspace.find(db, namespace.id, current.parent_id)
        if above is not None and not above.is_folder:
            message = f"workspace item {item.id!r} is below {above.id!r}, which is not a folder"
            return Problem("workspace_orphan", namespace.path, item.id, message)
        if above is None:
            message = f"workspace item {item.id!r} has no way to the root: no item {current.parent_id!r}"
            return Problem("workspace_orphan", namespace.path, item.id, message + "; import its parent")
        current = above
    raise AssertionError("the loop ends in a return")


def _charters(db: apsw.Connection, namespace: Namespace) -> Iterator[Problem]:
    if namespace.kind != "ring":
        return
    section = inodes.section_ino(namespace.path, "charter")
    shown = db.execute("SELECT m.id FROM entries e JOIN memories m ON m.ino = e.ino WHERE e.parent = ?", (section,))
    winner = next((row_id for (row_id,) in shown), None)
    rows = db.execute(
        "SELECT m.id FROM entries e JOIN memories m ON m.ino = e.ino WHERE e.parent = ? ORDER BY m.id", (-section,)
    )
    for (row_id,) in rows:
        message = f"charter {row_id!r} is not shown: {winner!r} is newer, and a ring has one"
        yield Problem("shadowed_charter", namespace.path, row_id, message)


def _names(db: apsw.Connection, namespace: Namespace) -> Iterator[Problem]:
    items = db.execute(
        "SELECT i.id, i.name, e.name FROM items i JOIN entries e ON e.ino = i.ino WHERE i.namespace_id = ?",
        (namespace.id,),
    )
    for row_id, name, shown in (*items, *_artifacts(db, namespace)):
        if name != shown:
            yield _changed(namespace, row_id, name, shown)
    for row_id, title, shown in db.execute(
        "SELECT m.id, m.title, e.name FROM memories m JOIN entries e ON e.ino = m.ino"
        " WHERE m.namespace_id = ? AND instr(e.name, '~')",
        (namespace.id,),
    ):
        plain = names.slug(names.from_bytes(title))
        if shown.startswith(plain + b"~"):
            yield _changed(namespace, row_id, plain + b".md", shown)


def _artifacts(db: apsw.Connection, namespace: Namespace) -> Iterator[tuple[str, bytes, bytes]]:
    """(id, filename, path below the section) of a ring's artifacts: a folder's name may be the one that changed."""
    if namespace.kind != "ring":
        return
    yield from db.execute(
        "WITH RECURSIVE folder (ino, path) AS (VALUES (?, x'') UNION ALL"
        " SELECT e.ino, CAST(f.path || e.name || '/' AS BLOB) FROM entries e JOIN folder f ON e.parent = f.ino"
        " WHERE e.kind = ?)"
        " SELECT a.id, a.filename, CAST(f.path || e.name AS BLOB) FROM artifacts a"
        " JOIN entries e ON e.ino = a.ino JOIN folder f ON f.ino = e.parent WHERE a.namespace_id = ?",
        (inodes.section_ino(namespace.path, "artifacts"), int(Kind.PREFIX), namespace.id),
    )


def _changed(namespace: Namespace, row_id: str, wanted: bytes, shown: bytes) -> Problem:
    message = f"{names.from_bytes(wanted)!r} is shown as {names.from_bytes(shown)!r}: taken, or no name for a file"
    return Problem("changed_name", namespace.path, row_id, message)


def _edges(db: apsw.Connection, namespace: Namespace) -> Iterator[Problem]:
    rows = db.execute(
        "SELECT source_id, kind, target_ns, target_id FROM edges WHERE source_ns = ?"
        " ORDER BY source_id, kind, target_id",
        (namespace.id,),
    )
    for source, kind, target_ns, target in rows:
        for end_ns, end in ((namespace.id, source), (target_ns, target)):
            if memory.find(db, end_ns, end) is None:
                message = f"edge {source!r} {kind} {target!r}: no memory {end!r}"
                yield Problem("dangling_edge", namespace.path, source, message)
