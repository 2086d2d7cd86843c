-- The snapshot. Every statement here is idempotent: opening an older snapshot for writing brings it up to date.
--
-- Invariants
--   * `entries` holds every visible thing, keyed by inode; memories, items and artifacts share the key of their entry.
--   * an inode number is computed (store/inodes.py) and never changes while the row lives.
--   * a folder's entries have its inode as `parent`. An entry whose chain of parents does not end at 1 is unreachable
--     (a workspace orphan, a cycle). A charter that a newer one shadows has parent = -(inode of the charter section).
--   * a name is given once (store/names.py) and is unique in its folder.
--   * content of at most 128 KiB is one row of `bodies`; more is `chunks` of 128 KiB, so a read never walks a long row.

CREATE TABLE IF NOT EXISTS settings (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS namespaces (
    id   INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL CHECK (kind IN ('ring', 'agent')),
    name TEXT NOT NULL,
    ino  INTEGER NOT NULL,
    UNIQUE (kind, name)
);

CREATE TABLE IF NOT EXISTS grants (
    principal    TEXT NOT NULL,
    namespace_id INTEGER NOT NULL REFERENCES namespaces (id) ON DELETE CASCADE,
    PRIMARY KEY (principal, namespace_id)
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS sources (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    uri          TEXT NOT NULL,
    namespace    TEXT NOT NULL,   -- '/ring/dev', or '' where the rows name their own
    imported_ns  INTEGER NOT NULL,
    UNIQUE (uri, namespace)
);

CREATE TABLE IF NOT EXISTS entries (
    ino          INTEGER PRIMARY KEY,
    parent       INTEGER NOT NULL,
    name         BLOB NOT NULL,
    kind         INTEGER NOT NULL,       -- nodes.Kind
    namespace_id INTEGER,
    size         INTEGER NOT NULL,
    mtime_ns     INTEGER NOT NULL,
    ctime_ns     INTEGER NOT NULL,
    digest       BLOB,                   -- blake2b-128 of the content; files only
    UNIQUE (parent, name)
);
CREATE INDEX IF NOT EXISTS entries_listing ON entries (parent, ino);

CREATE TABLE IF NOT EXISTS bodies (ino INTEGER PRIMARY KEY, data BLOB NOT NULL);

CREATE TABLE IF NOT EXISTS chunks (
    pk   INTEGER PRIMARY KEY,
    ino  INTEGER NOT NULL,
    seq  INTEGER NOT NULL,
    data BLOB NOT NULL,
    UNIQUE (ino, seq)
);

CREATE TABLE IF NOT EXISTS memories (
    ino          INTEGER PRIMARY KEY,
    namespace_id INTEGER NOT NULL,
    id           TEXT NOT NULL,
    memory_type  TEXT NOT NULL,
    title        BLOB NOT NULL,
    confidence   REAL,
    metadata     TEXT NOT NULL,          -- a JSON object
    created_ns   INTEGER NOT NULL,
    updated_ns   INTEGER NOT NULL,
    source_id    INTEGER,
    UNIQUE (namespace_id, id)
);
CREATE INDEX IF NOT EXISTS memories_source ON memories (source_id);

CREATE TABLE IF NOT EXISTS items (
    ino          INTEGER PRIMARY KEY,
    namespace_id INTEGER NOT NULL,
    id           TEXT NOT NULL,
    parent_id    TEXT,
    is_folder    INTEGER NOT NULL,
    name         BLOB NOT NULL,          -- as its store has it; entries.name is what the filesystem shows
    media_type   TEXT,
    metadata     TEXT NOT NULL,
    created_ns   INTEGER NOT NULL,
    updated_ns   INTEGER NOT NULL,
    source_id    INTEGER,
    UNIQUE (namespace_id, id)
);
CREATE INDEX IF NOT EXISTS items_source ON items (source_id);

CREATE TABLE IF NOT EXISTS artifacts (
    ino          INTEGER PRIMARY KEY,
    namespace_id INTEGER NOT NULL,
    id           TEXT NOT NULL,
    filename     BLOB NOT NULL,
    media_type   TEXT,
    metadata     TEXT NOT NULL,
    created_ns   INTEGER NOT NULL,
    updated_ns   INTEGER NOT NULL,
    source_id    INTEGER,
    UNIQUE (namespace_id, id)
);
CREATE INDEX IF NOT EXISTS artifacts_source ON artifacts (source_id);

-- Edges are kept by id, as their store declares them: one may point to a memory that is not here (yet).
CREATE TABLE IF NOT EXISTS edges (
    source_ns INTEGER NOT NULL,
    source_id TEXT NOT NULL,
    kind      TEXT NOT NULL,
    target_ns INTEGER NOT NULL,
    target_id TEXT NOT NULL,
    origin_id INTEGER,                   -- sources.id
    PRIMARY KEY (source_ns, source_id, kind, target_ns, target_id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS edges_back ON edges (target_ns, target_id, kind);

-- What a mount must tell the kernel. op: 1 added, 2 changed, 3 removed, 4 granted, 5 revoked (4, 5: the namespace's folder).
CREATE TABLE IF NOT EXISTS changes (
    seq          INTEGER PRIMARY KEY AUTOINCREMENT,
    op           INTEGER NOT NULL,
    ino          INTEGER NOT NULL,
    parent       INTEGER NOT NULL,
    name         BLOB NOT NULL,
    namespace_id INTEGER
);

CREATE TRIGGER IF NOT EXISTS entry_added AFTER INSERT ON entries BEGIN
    INSERT INTO changes (op, ino, parent, name, namespace_id)
    VALUES (1, NEW.ino, NEW.parent, NEW.name, NEW.namespace_id);
    UPDATE entries SET mtime_ns = NEW.mtime_ns WHERE ino = NEW.parent AND mtime_ns < NEW.mtime_ns;
END;
CREATE TRIGGER IF NOT EXISTS entry_removed AFTER DELETE ON entries BEGIN
    INSERT INTO changes (op, ino, parent, name, namespace_id)
    VALUES (3, OLD.ino, OLD.parent, OLD.name, OLD.namespace_id);
    UPDATE entries SET mtime_ns = max(mtime_ns, CAST(unixepoch('subsec') * 1000 AS INTEGER) * 1000000)
    WHERE ino = OLD.parent;
END;
CREATE TRIGGER IF NOT EXISTS entry_moved AFTER UPDATE OF parent, name ON entries
WHEN OLD.parent <> NEW.parent OR OLD.name <> NEW.name BEGIN
    INSERT INTO changes (op, ino, parent, name, namespace_id)
    VALUES (3, OLD.ino, OLD.parent, OLD.name, OLD.namespace_id), (1, NEW.ino, NEW.parent, NEW.name, NEW.namespace_id);
    UPDATE entries SET mtime_ns = max(mtime_ns, CAST(unixepoch('subsec') * 1000 AS INTEGER) * 1000000)
    WHERE ino IN (OLD.parent, NEW.parent);
END;
CREATE TRIGGER IF NOT EXISTS entry_changed AFTER UPDATE OF size, mtime_ns, ctime_ns, digest ON entries
WHEN NEW.digest IS NOT NULL BEGIN
    INSERT INTO changes (op, ino, parent, name, namespace_id)
    VALUES (2, NEW.ino, NEW.parent, NEW.name, NEW.namespace_id);
END;
CREATE TRIGGER IF NOT EXISTS granted AFTER INSERT ON grants BEGIN
    INSERT INTO changes (op, ino, parent, name, namespace_id)
    SELECT 4, ino, parent, name, namespace_id FROM entries
    WHERE ino = (SELECT ino FROM namespaces WHERE id = NEW.namespace_id);
END;
CREATE TRIGGER IF NOT EXISTS revoked AFTER DELETE ON grants BEGIN
    INSERT INTO changes (op, ino, parent, name, namespace_id)
    SELECT 5, ino, parent, name, namespace_id FROM entries
    WHERE ino = (SELECT ino FROM namespaces WHERE id = OLD.namespace_id);
END;

INSERT OR IGNORE INTO entries (ino, parent, name, kind, namespace_id, size, mtime_ns, ctime_ns, digest) VALUES
    (1, 0, CAST('/' AS BLOB), 0, NULL, 0, 0, 0, NULL),
    (2, 1, CAST('ring' AS BLOB), 0, NULL, 0, 0, 0, NULL),
    (3, 1, CAST('agent' AS BLOB), 0, NULL, 0, 0, 0, NULL);
