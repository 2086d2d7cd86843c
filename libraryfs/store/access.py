"""Who may see which ring or agent. A grant is all or nothing, for one principal and one namespace."""

import apsw

from libraryfs.store.namespaces import Namespace


def can_access(db: apsw.Connection, principal: str, namespace_id: int) -> bool:
    """Whether the principal may see the namespace."""
    row = db.execute("SELECT 1 FROM grants WHERE principal = ? AND namespace_id = ?", (principal, namespace_id))
    return row.fetchone() is not None


def visible(db: apsw.Connection, principal: str) -> frozenset[int]:
    """The ids of all namespaces that the principal may see."""
    rows = db.execute("SELECT namespace_id FROM grants WHERE principal = ?", (principal,))
    return frozenset(namespace_id for (namespace_id,) in rows if isinstance(namespace_id, int))


def grant(db: apsw.Connection, principal: str, namespace: Namespace) -> bool:
    """Gives access; False when the principal had it."""
    db.execute("INSERT OR IGNORE INTO grants (principal, namespace_id) VALUES (?, ?)", (principal, namespace.id))
    return db.changes() > 0


def revoke(db: apsw.Connection, principal: str, namespace: Namespace) -> bool:
    """Takes access away; False when the principal had none."""
    db.execute("DELETE FROM grants WHERE principal = ? AND namespace_id = ?", (principal, namespace.id))
    return db.changes() > 0


def every(db: apsw.Connection) -> list[tuple[str, Namespace]]:
    """All grants: (principal, namespace), by principal and path."""
    rows = db.execute(
        "SELECT g.principal, n.id, n.kind, n.name FROM grants g JOIN namespaces n ON n.id = g.namespace_id"
        " ORDER BY g.principal, n.kind DESC, n.name"
    )
    return [(principal, Namespace(number, kind, name)) for principal, number, kind, name in rows]
