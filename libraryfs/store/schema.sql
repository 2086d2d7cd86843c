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

-- How a source is read, and what its files were at its last import: what is as it was is not read again. Derived, but
-- for the options: without a row here a file is read.
CREATE TABLE IF NOT EXISTS source_options (
    source_id INTEGER PRIMARY KEY REFERENCES sources (id) ON DELETE CASCADE,
    path      BLOB NOT NULL,            -- absolute, as its file system has it
    options   TEXT NOT NULL,            -- JSON
    principal TEXT,                     -- who is granted what it brings; NULL: nobody
    rules     BLOB                      -- digest of what decides which files are wanted
);
CREATE TABLE IF NOT EXISTS source_files (
    source_id INTEGER NOT NULL REFERENCES sources (id) ON DELETE CASCADE,
    path      BLOB NOT NULL,            -- in the source
    size      INTEGER NOT NULL,
    mtime_ns  INTEGER NOT NULL,
    inode     INTEGER NOT NULL,         -- of the source's file system
    ino       INTEGER NOT NULL,         -- of the row; 0: it has none
    note      TEXT NOT NULL,
    PRIMARY KEY (source_id, path)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS source_files_row ON source_files (ino);

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

-- xxh3-128 of each chunk, so that a read of a part checks just that part. Chunks of an earlier version get theirs when
-- it is upgraded (store/bodies.py).
CREATE TABLE IF NOT EXISTS chunk_sums (pk INTEGER PRIMARY KEY, sum BLOB NOT NULL);

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

-- Eval runs: at most 50 of each eval set (an item), and the pinned one. A set's own rows are kept once, whatever the runs.
CREATE TABLE IF NOT EXISTS eval_runs (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,   -- the order of runs; the clock may go backwards
    ino         INTEGER NOT NULL,
    at_ns       INTEGER NOT NULL,
    passed      INTEGER NOT NULL,
    total       INTEGER NOT NULL,                    -- passed and failed, without errors
    errors      INTEGER NOT NULL,
    pinned      INTEGER NOT NULL DEFAULT 0,
    fingerprint TEXT NOT NULL,                       -- JSON: what the rate depends on besides the content
    summary     BLOB                                 -- two lines of text: the rate, and how it compares
);
CREATE INDEX IF NOT EXISTS eval_runs_item ON eval_runs (ino, id);

-- A run's number in its own set, from 1. Not there for runs before this table was: their id stands for it.
CREATE TABLE IF NOT EXISTS eval_numbers (
    run_id INTEGER PRIMARY KEY REFERENCES eval_runs (id) ON DELETE CASCADE,
    number INTEGER NOT NULL
);

CREATE TABLE IF NOT EXISTS eval_questions (
    id         INTEGER PRIMARY KEY,
    ino        INTEGER NOT NULL,
    definition TEXT NOT NULL,                        -- JSON: the question, its fragments and its paths
    UNIQUE (ino, definition)
);

CREATE TABLE IF NOT EXISTS eval_verdicts (
    run_id      INTEGER NOT NULL REFERENCES eval_runs (id) ON DELETE CASCADE,
    position    INTEGER NOT NULL,
    question_id INTEGER NOT NULL REFERENCES eval_questions (id),
    outcome     TEXT NOT NULL,                       -- passed, failed or error
    PRIMARY KEY (run_id, position)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS eval_verdicts_question ON eval_verdicts (question_id);

-- A question's share of matched fragments over its repeats. Not there for errors, and for runs before this table was.
CREATE TABLE IF NOT EXISTS eval_shares (
    run_id   INTEGER NOT NULL REFERENCES eval_runs (id) ON DELETE CASCADE,
    position INTEGER NOT NULL,                       -- as in eval_verdicts
    matched  INTEGER NOT NULL,
    possible INTEGER NOT NULL,
    draw     TEXT NOT NULL,                          -- names the answers; runs that reuse answers share it
    PRIMARY KEY (run_id, position)
) WITHOUT ROWID;

CREATE TRIGGER IF NOT EXISTS eval_set_removed AFTER DELETE ON items BEGIN
    DELETE FROM eval_runs WHERE ino = OLD.ino;
    DELETE FROM eval_questions WHERE ino = OLD.ino;
END;

-- What a mount must tell the kernel. op: 1 added, 2 changed, 3 removed, 4 granted, 5 revoked (4, 5: the namespace's folder).
CREATE TABLE IF NOT EXISTS changes (
    seq          INTEGER PRIMARY KEY AUTOINCREMENT,
    op           INTEGER NOT NULL,
    ino          INTEGER NOT NULL,
    parent       INTEGER NOT NULL,
    name         BLOB NOT NULL,
    namespace_id INTEGER
);

-- Made anew by every version: earlier ones left a folder's ctime behind its mtime.
DROP TRIGGER IF EXISTS entry_added;
DROP TRIGGER IF EXISTS entry_removed;
DROP TRIGGER IF EXISTS entry_moved;
UPDATE entries SET ctime_ns = mtime_ns WHERE kind <= 4 AND ctime_ns < mtime_ns;

CREATE TRIGGER IF NOT EXISTS entry_added AFTER INSERT ON entries BEGIN
    INSERT INTO changes (op, ino, parent, name, namespace_id)
    VALUES (1, NEW.ino, NEW.parent, NEW.name, NEW.namespace_id);
    UPDATE entries SET mtime_ns = NEW.mtime_ns, ctime_ns = max(ctime_ns, NEW.mtime_ns)
    WHERE ino = NEW.parent AND mtime_ns < NEW.mtime_ns;
END;
CREATE TRIGGER IF NOT EXISTS entry_removed AFTER DELETE ON entries BEGIN
    INSERT INTO changes (op, ino, parent, name, namespace_id)
    VALUES (3, OLD.ino, OLD.parent, OLD.name, OLD.namespace_id);
    UPDATE entries SET
        mtime_ns = max(mtime_ns, CAST(unixepoch('subsec') * 1000 AS INTEGER) * 1000000),
        ctime_ns = max(ctime_ns, mtime_ns, CAST(unixepoch('subsec') * 1000 AS INTEGER) * 1000000)
    WHERE ino = OLD.parent;
END;
CREATE TRIGGER IF NOT EXISTS source_file_removed AFTER DELETE ON entries WHEN OLD.digest IS NOT NULL BEGIN
    DELETE FROM source_files WHERE ino = OLD.ino;
END;
CREATE TRIGGER IF NOT EXISTS entry_moved AFTER UPDATE OF parent, name ON entries
WHEN OLD.parent <> NEW.parent OR OLD.name <> NEW.name BEGIN
    INSERT INTO changes (op, ino, parent, name, namespace_id)
    VALUES (3, OLD.ino, OLD.parent, OLD.name, OLD.namespace_id), (1, NEW.ino, NEW.parent, NEW.name, NEW.namespace_id);
    -- A charter that is elected comes from the hidden side of its own section: its folder then has its time, so that a
    -- rebuilt snapshot is the same.
    UPDATE entries SET
        mtime_ns = max(mtime_ns, CASE WHEN OLD.parent = -NEW.parent THEN NEW.mtime_ns
            ELSE CAST(unixepoch('subsec') * 1000 AS INTEGER) * 1000000 END),
        ctime_ns = max(ctime_ns, mtime_ns, CASE WHEN OLD.parent = -NEW.parent THEN NEW.mtime_ns
            ELSE CAST(unixepoch('subsec') * 1000 AS INTEGER) * 1000000 END)
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

-- What search needs, all of it derived: dropping it costs time, not knowledge.
--
-- Invariants
--   * `unindexed` and `unembedded` are the queues: every file is in the queue, or in `indexed` (`embedded`), never in both.
--   * taking a file out of `indexed` (`embedded`) takes its words (passages and vectors) away and queues it again, if it
--     is still there. A change of content or title does so in its own transaction, so nothing derived outlives its source.
--   * the table `vectors` (sqlite-vec) and its triggers are made with the first vector: only then is the length known.

-- Holds stems (store/words.py), so the tokenizer only has to leave them as they are. `title`: the title and the heading
-- above all others, `headings`: the rest of them, both again in `text`.
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5 (
    title, headings, text, content = '', contentless_delete = 1,
    tokenize = "unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'"
);
INSERT INTO words (words, rank) VALUES ('hashsize', 16777216);  -- bytes that a writer collects before it writes them out
CREATE VIRTUAL TABLE IF NOT EXISTS words_found USING fts5vocab (words, instance);

CREATE TABLE IF NOT EXISTS unindexed (ino INTEGER PRIMARY KEY, namespace_id INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS unindexed_namespace ON unindexed (namespace_id);
CREATE TABLE IF NOT EXISTS indexed (
    ino          INTEGER PRIMARY KEY,
    namespace_id INTEGER NOT NULL,
    words        INTEGER NOT NULL,       -- the file's length for BM25; 0: no text
    title        INTEGER NOT NULL        -- different words of its title
);
-- Files that are not UTF-8; '' where a file should be text and is in no coding that is known. Found when it is indexed.
CREATE TABLE IF NOT EXISTS charsets (ino INTEGER PRIMARY KEY, encoding TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS indexed_totals (
    namespace_id INTEGER PRIMARY KEY,
    files        INTEGER NOT NULL,
    words        INTEGER NOT NULL
);

CREATE TABLE IF NOT EXISTS embedder (
    id        INTEGER PRIMARY KEY CHECK (id = 1),
    model     TEXT NOT NULL,
    dimension INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS unembedded (ino INTEGER PRIMARY KEY, namespace_id INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS unembedded_namespace ON unembedded (namespace_id);
CREATE TABLE IF NOT EXISTS embedded (
    ino          INTEGER PRIMARY KEY,
    namespace_id INTEGER NOT NULL,
    digest       BLOB NOT NULL,          -- of the title and the content that were embedded
    chunker      INTEGER NOT NULL,       -- version of the chunker
    state        INTEGER NOT NULL        -- texts.TextState: only TEXT has vectors
);
CREATE TABLE IF NOT EXISTS passages (
    pk     INTEGER PRIMARY KEY,          -- rowid in `vectors`
    ino    INTEGER NOT NULL,
    seq    INTEGER NOT NULL,
    start  INTEGER NOT NULL,             -- byte offset in the file
    length INTEGER NOT NULL,             -- bytes
    UNIQUE (ino, seq)
);

CREATE TRIGGER IF NOT EXISTS search_added AFTER INSERT ON entries WHEN NEW.kind >= 5 BEGIN
    INSERT OR IGNORE INTO unindexed (ino, namespace_id) VALUES (NEW.ino, NEW.namespace_id);
    INSERT OR IGNORE INTO unembedded (ino, namespace_id) VALUES (NEW.ino, NEW.namespace_id);
END;
CREATE TRIGGER IF NOT EXISTS search_changed AFTER UPDATE OF digest ON entries
WHEN NEW.kind >= 5 AND OLD.digest IS NOT NEW.digest BEGIN
    DELETE FROM indexed WHERE ino = NEW.ino;
    DELETE FROM embedded WHERE ino = NEW.ino;
END;
CREATE TRIGGER IF NOT EXISTS search_removed AFTER DELETE ON entries WHEN OLD.kind >= 5 BEGIN
    DELETE FROM indexed WHERE ino = OLD.ino;
    DELETE FROM embedded WHERE ino = OLD.ino;
    DELETE FROM unindexed WHERE ino = OLD.ino;
    DELETE FROM unembedded WHERE ino = OLD.ino;
END;
CREATE TRIGGER IF NOT EXISTS search_memory_title AFTER UPDATE OF title ON memories WHEN OLD.title IS NOT NEW.title BEGIN
    DELETE FROM indexed WHERE ino = NEW.ino;
    DELETE FROM embedded WHERE ino = NEW.ino;
END;
CREATE TRIGGER IF NOT EXISTS search_item_name AFTER UPDATE OF name ON items WHEN OLD.name IS NOT NEW.name BEGIN
    DELETE FROM indexed WHERE ino = NEW.ino;
    DELETE FROM embedded WHERE ino = NEW.ino;
END;
CREATE TRIGGER IF NOT EXISTS search_artifact_name AFTER UPDATE OF filename ON artifacts
WHEN OLD.filename IS NOT NEW.filename BEGIN
    DELETE FROM indexed WHERE ino = NEW.ino;
    DELETE FROM embedded WHERE ino = NEW.ino;
END;
CREATE TRIGGER IF NOT EXISTS indexed_added AFTER INSERT ON indexed BEGIN
    DELETE FROM unindexed WHERE ino = NEW.ino;
    INSERT INTO indexed_totals (namespace_id, files, words) VALUES (NEW.namespace_id, NEW.words > 0, NEW.words)
    ON CONFLICT DO UPDATE SET files = files + (NEW.words > 0), words = words + NEW.words;
END;
CREATE TRIGGER IF NOT EXISTS indexed_removed AFTER DELETE ON indexed BEGIN
    DELETE FROM words WHERE rowid = OLD.ino;
    UPDATE indexed_totals SET files = files - (OLD.words > 0), words = words - OLD.words
    WHERE namespace_id = OLD.namespace_id;
    INSERT OR IGNORE INTO unindexed (ino, namespace_id)
    SELECT ino, namespace_id FROM entries WHERE ino = OLD.ino AND kind >= 5;
END;
CREATE TRIGGER IF NOT EXISTS charset_removed AFTER DELETE ON indexed BEGIN
    DELETE FROM charsets WHERE ino = OLD.ino;
END;
CREATE TRIGGER IF NOT EXISTS embedded_added AFTER INSERT ON embedded BEGIN
    DELETE FROM unembedded WHERE ino = NEW.ino;
END;
CREATE TRIGGER IF NOT EXISTS embedded_removed AFTER DELETE ON embedded BEGIN
    DELETE FROM passages WHERE ino = OLD.ino;
    INSERT OR IGNORE INTO unembedded (ino, namespace_id)
    SELECT ino, namespace_id FROM entries WHERE ino = OLD.ino AND kind >= 5;
END;

INSERT OR IGNORE INTO unindexed (ino, namespace_id)
SELECT ino, namespace_id FROM entries WHERE kind >= 5 AND ino NOT IN (SELECT ino FROM indexed);
INSERT OR IGNORE INTO unembedded (ino, namespace_id)
SELECT ino, namespace_id FROM entries WHERE kind >= 5 AND ino NOT IN (SELECT ino FROM embedded);
