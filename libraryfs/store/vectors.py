"""Vectors of passages, and the nearest items to a question. The scope comes before the search, never after it.

`vectors` is a vec0 table of sqlite-vec, one row a passage: its partitions are namespaces, so that asking one ring does
not read the others, and `folder` (the inode number of the parent) picks a section within the search.
"""

import json
from collections.abc import Callable, Iterator, Sequence, Set
from typing import Final, NamedTuple

import apsw

from libraryfs.errors import ModelUnavailable
from libraryfs.store.search_scope import BELOW, SearchScope
from libraryfs.store.texts import TextState

VECTORS_IN_BLOCK: Final = 128
"""vec0's chunk_size: it reserves and reads whole blocks for each namespace. 1024 (its default) is a tenth faster to
search where there are many vectors, and costs an agent of ten memories 1.5 MB instead of 0.2 MB."""

_AND: Final = ", "
"""Between the models of an EmbedderRecord."""

_MOST: Final = 4096
"""The largest k that vec0 takes."""


class EmbedderRecord(NamedTuple):
    """The embedder whose vectors a snapshot holds; of several that may share one, all that made some: "A, B"."""

    model: str
    dimension: int

    def is_of(self, alike: Set[str], dimension: int) -> bool:
        """Whether vectors of one of these models may be added, and questions asked with it."""
        return self.dimension == dimension and alike >= set(self.model.split(_AND))


class Passage(NamedTuple):
    """A chunk of a file, in bytes, and its vector: float32, of length 1."""

    start: int
    length: int
    vector: bytes


class Nearest(NamedTuple):
    """An item near a question: the cosine of its nearest passage, and where that is in the file, in bytes."""

    ino: int
    similarity: float
    start: int
    length: int


def embedder(db: apsw.Connection) -> EmbedderRecord | None:
    """The embedder that the snapshot's vectors come from; None when it has none."""
    row = db.execute("SELECT model, dimension FROM embedder").fetchone()
    return EmbedderRecord(*row) if row else None


def check_embedder(db: apsw.Connection, model: str, dimension: int, alike: Set[str] = frozenset()) -> None:
    """Raises ModelUnavailable, with how to fix it, when the snapshot's vectors come from another model.

    `alike` are the models whose vectors may be searched and stored with this one's.
    """
    stored = embedder(db)
    if stored is not None and not stored.is_of({model, *alike}, dimension):
        raise ModelUnavailable(
            f"the library's vectors come from the embedding model {stored.model} (dimension {stored.dimension}), and"
            f" {model} (dimension {dimension}) is set: set the first again (LIBRARYFS_EMBEDDER), or make all vectors"
            " anew with 'libraryfs embed --all'"
        )


def start(
    db: apsw.Connection, model: str, dimension: int, alike: Set[str] = frozenset(), *, anew: bool = False
) -> None:
    """Makes the snapshot ready for vectors of this model; with `anew`, those that it has are dropped and queued.

    In a transaction. Raises ModelUnavailable when it has another model's, and that is not among those `alike`.
    """
    stored = embedder(db)
    if stored is not None and stored.is_of({model, *alike}, dimension) and not anew:
        made_by = sorted({*stored.model.split(_AND), model})
        db.execute("UPDATE embedder SET model = ?1 WHERE model <> ?1", (_AND.join(made_by),))
        return
    if anew:
        db.execute("DROP TABLE IF EXISTS vectors; DROP TRIGGER IF EXISTS passages_removed")
        db.execute("DROP TRIGGER IF EXISTS passages_moved; DROP TRIGGER IF EXISTS search_moved")
        db.execute("DELETE FROM embedded; DELETE FROM passages; DELETE FROM embedder")
    else:
        check_embedder(db, model, dimension, alike)
    db.execute(
        "CREATE VIRTUAL TABLE vectors USING vec0(namespace_id integer partition key, folder integer,"
        f" embedding float[{int(dimension)}] distance_metric=cosine, chunk_size={VECTORS_IN_BLOCK})"
    )
    # vec0 takes an UPDATE of one rowid only, so a move goes through the passages, row by row.
    db.execute(
        "CREATE TRIGGER passages_removed AFTER DELETE ON passages BEGIN"
        " DELETE FROM vectors WHERE rowid = OLD.pk; END;"
        "CREATE TRIGGER passages_moved AFTER UPDATE OF seq ON passages BEGIN"
        " UPDATE vectors SET folder = (SELECT parent FROM entries WHERE ino = NEW.ino) WHERE rowid = NEW.pk; END;"
        "CREATE TRIGGER search_moved AFTER UPDATE OF parent ON entries WHEN OLD.parent <> NEW.parent BEGIN"
        " UPDATE passages SET seq = seq WHERE ino = NEW.ino; END"
    )
    db.execute("INSERT INTO embedder (id, model, dimension) VALUES (1, ?, ?)", (model, dimension))


def outdate(db: apsw.Connection, chunker: int) -> int:
    """Queues what another version of the chunker cut; returns how many files."""
    db.execute("DELETE FROM embedded WHERE chunker <> ?", (chunker,))
    return db.changes()


def queued(db: apsw.Connection, after: int, limit: int) -> list[tuple[int, int]]:
    """(inode number, words) of up to `limit` files without vectors, above `after`, in order.

    Words are keyword search's count; 0 for what it does not have yet, and for what is no text.
    """
    return list(
        db.execute(
            "SELECT u.ino, ifnull(i.words, 0) FROM unembedded u LEFT JOIN indexed i ON i.ino = u.ino"
            " WHERE u.ino > ? ORDER BY u.ino LIMIT ?",
            (after, limit),
        )
    )


def waiting(db: apsw.Connection) -> dict[int, bytes | None]:
    """The files without vectors: inode number → digest of the content."""
    return dict(db.execute("SELECT u.ino, e.digest FROM unembedded u JOIN entries e ON e.ino = u.ino"))


def count_queued(db: apsw.Connection, namespaces: Sequence[int] | None = None) -> int:
    """How many files wait for vectors, in all or in these namespaces."""
    if namespaces is None:
        number: int = db.execute("SELECT count(*) FROM unembedded").get
        return number
    return sum(db.execute("SELECT count(*) FROM unembedded WHERE namespace_id = ?", (one,)).get for one in namespaces)


def is_queued(db: apsw.Connection, ino: int) -> bool:
    """Whether a file waits for vectors."""
    return db.execute("SELECT 1 FROM unembedded WHERE ino = ?", (ino,)).fetchone() is not None


def put(
    db: apsw.Connection,
    ino: int,
    digest: bytes,
    chunker: int,
    state: TextState,
    passages: Sequence[Passage] = (),
) -> None:
    """Stores the passages of a file, over those it had, and takes it off the queue. In a transaction."""
    parent, namespace_id = db.execute("SELECT parent, namespace_id FROM entries WHERE ino = ?", (ino,)).get
    db.execute("DELETE FROM embedded WHERE ino = ?", (ino,))
    for seq, passage in enumerate(passages):
        db.execute(
            "INSERT INTO passages (ino, seq, start, length) VALUES (?, ?, ?, ?)",
            (ino, seq, passage.start, passage.length),
        )
        db.execute(
            "INSERT INTO vectors (rowid, namespace_id, folder, embedding) VALUES (?, ?, ?, ?)",
            (db.last_insert_rowid(), namespace_id, parent, passage.vector),
        )
    db.execute(
        "INSERT INTO embedded (ino, namespace_id, digest, chunker, state) VALUES (?, ?, ?, ?, ?)",
        (ino, namespace_id, digest, chunker, int(state)),
    )


def counts(db: apsw.Connection) -> dict[TextState, int]:
    """How many files embedding has seen, by what it made of them."""
    rows = db.execute("SELECT state, count(*) FROM embedded GROUP BY state")
    return {TextState(state): number for state, number in rows}


def nearest(
    db: apsw.Connection,
    question: bytes,
    scope: SearchScope,
    wanted: int,
    reachable: Callable[[int], bool],
    enough: int | None = None,
) -> list[Nearest]:
    """Exactly the `wanted` nearest items of the scope that are `reachable`, best first; ties by inode number.

    With `enough`, fewer may do, so many at least: those of the nearest 4 × `wanted` passages are not looked beyond.
    `question` is a float32 vector of length 1. The connection must have sqlite-vec (Snapshot.enable_vectors).
    """
    if embedder(db) is None:
        return []
    found: list[Nearest] = []
    for namespace_id in (None,) if _is_everything(db, scope) else scope.namespaces:
        found += _nearest(db, question, scope, namespace_id, wanted, reachable, enough or wanted)
    found.sort(key=lambda hit: (-hit.similarity, hit.ino))
    return found[:wanted]


def _is_everything(db: apsw.Connection, scope: SearchScope) -> bool:
    """Whether the scope is all namespaces there are, and several: one search is then faster than one for each."""
    if len(scope.namespaces) < 2:
        return False
    others = "SELECT 1 FROM namespaces WHERE id NOT IN (SELECT value FROM json_each(?)) LIMIT 1"
    return db.execute(others, (json.dumps(scope.namespaces),)).fetchone() is None


def _nearest(
    db: apsw.Connection,
    question: bytes,
    scope: SearchScope,
    namespace_id: int | None,
    wanted: int,
    reachable: Callable[[int], bool],
    enough: int,
) -> list[Nearest]:
    """Of one namespace, or of all (None).

    Passages are fetched until enough items are among them; past vec0's limit, without the items already known.
    """
    best: dict[int, tuple[float, int]] = {}
    accepted: dict[int, bool] = {}
    k, known = wanted * 4, tuple[int, ...]()
    while True:
        rows = _passages(db, question, scope, namespace_id, k, known)
        for pk, distance, ino in rows:
            if ino not in best:
                best[ino] = (distance, pk)
                accepted[ino] = reachable(ino)
        if len(rows) < k or sum(accepted.values()) >= enough:
            break
        if k == _MOST:
            known = tuple(best)
        k = min(k * 8, _MOST)
    hits = sorted((distance, ino, pk) for ino, (distance, pk) in best.items() if accepted[ino])[:wanted]
    return [Nearest(ino, 1.0 - distance, *_place(db, pk)) for distance, ino, pk in hits]


def _passages(
    db: apsw.Connection, question: bytes, scope: SearchScope, namespace_id: int | None, k: int, known: Sequence[int]
) -> list[tuple[int, float, int]]:
    where: list[str] = ["embedding MATCH ?", "k = ?"]
    values: list[bytes | int | str] = [question, k]
    if namespace_id is not None:
        where.append("namespace_id = ?")
        values.append(namespace_id)
    if scope.section is not None:
        where.append("folder = ?")
        values.append(scope.section)
    if scope.below is not None:
        where.append(f"rowid IN (SELECT pk FROM passages WHERE ino IN ({BELOW}))")
        values.append(scope.below)
    elif scope.file is not None:
        where.append("rowid IN (SELECT pk FROM passages WHERE ino = ?)")
        values.append(scope.file)
    if known:
        where.append("rowid IN (SELECT pk FROM passages WHERE ino NOT IN (SELECT value FROM json_each(?)))")
        values.append(json.dumps(known))
    # CROSS JOIN: vec0 must be the outer loop. Inner subquery and not a join, so that its LIMIT is the search's own.
    rows = db.execute(
        f"SELECT v.rowid, v.distance, p.ino FROM (SELECT rowid, distance FROM vectors WHERE {' AND '.join(where)}) v"
        " CROSS JOIN passages p ON p.pk = v.rowid ORDER BY v.distance, p.ino, p.seq",
        values,
    )
    return list(rows)


def _place(db: apsw.Connection, pk: int) -> tuple[int, int]:
    start, length = db.execute("SELECT start, length FROM passages WHERE pk = ?", (pk,)).get
    return start, length


def near_passages(db: apsw.Connection, question: bytes, inos: Sequence[int], wanted: int) -> dict[int, list[Nearest]]:
    """Of each of these items the `wanted` passages nearest to the question, the nearest first; none without vectors."""
    if embedder(db) is None or not inos:
        return {}
    rows = db.execute(
        "SELECT p.ino, 1.0 - vec_distance_cosine(v.embedding, ?), p.start, p.length"
        " FROM passages p CROSS JOIN vectors v ON v.rowid = p.pk"
        " WHERE p.ino IN (SELECT value FROM json_each(?))",
        (question, json.dumps(list(inos))),
    )
    found: dict[int, list[Nearest]] = {}
    for row in rows:
        found.setdefault(row[0], []).append(Nearest(*row))
    return {ino: sorted(some, key=lambda one: (-one.similarity, one.start))[:wanted] for ino, some in found.items()}


def similarities(db: apsw.Connection, question: bytes, inos: Sequence[int]) -> dict[int, Nearest]:
    """The nearest passage of each of these items to the question; items without vectors are left out."""
    return {ino: some[0] for ino, some in near_passages(db, question, inos, 1).items()}


def middles(db: apsw.Connection, question: bytes, inos: Sequence[int]) -> list[float]:
    """The cosine of the question and the passage in the middle of each of these items; none for those without."""
    if embedder(db) is None or not inos:
        return []
    rows = db.execute(
        "SELECT 1.0 - vec_distance_cosine(v.embedding, ?) FROM passages p CROSS JOIN vectors v ON v.rowid = p.pk"
        " WHERE p.ino IN (SELECT value FROM json_each(?))"
        " AND p.seq = (SELECT max(o.seq) / 2 FROM passages o WHERE o.ino = p.ino)",
        (question, json.dumps(list(inos))),
    )
    return [cosine for (cosine,) in rows]


def passages_of(db: apsw.Connection, ino: int) -> Iterator[tuple[int, int]]:
    """(start, length) of the passages of a file, in bytes, in order."""
    yield from db.execute("SELECT start, length FROM passages WHERE ino = ? ORDER BY seq", (ino,))
