"""Runs of eval sets: the verdicts and the summary of the last 50 of each set, and the rate in its metadata."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import apsw

from libraryfs.rows import iso
from libraryfs.store import workspace

DEFAULT_NAME: Final = "eval-set.md"
"""The set of a ring, at the root of its workspace."""
KEPT_RUNS: Final = 50
RATE, TOTAL, AT = workspace.EVAL_KEYS

_COLUMNS = "at_ns, passed, total, errors, pinned, fingerprint"
_NUMBER = "coalesce((SELECT number FROM eval_numbers WHERE run_id = id), id)"


class Run(NamedTuple):
    """A stored run. `id` grows from run to run, `number` from run to run of a set; `fingerprint` is JSON."""

    id: int
    number: int
    at_ns: int
    passed: int
    total: int
    errors: int
    pinned: bool
    fingerprint: str


class StoredVerdict(NamedTuple):
    """One question of a run: its definition as JSON, passed, failed or error, and its share of matched fragments.

    `share` is (matched, possible, draw); None for an error, and in runs of versions that did not keep it.
    """

    definition: str
    outcome: str
    share: tuple[int, int, str] | None


class NewRun(NamedTuple):
    """A run to store. `verdicts` are in the set's order."""

    at_ns: int
    passed: int
    total: int
    errors: int
    fingerprint: str
    verdicts: Sequence[StoredVerdict]


class Rate(NamedTuple):
    """The rate that an item's metadata holds, as counts."""

    passed: int
    total: int
    at: str


class Stored(NamedTuple):
    """What a new run is called."""

    id: int
    number: int


def _run(row: tuple[Any, ...]) -> Run:
    return Run._make((*row[:6], bool(row[6]), row[7]))


def _columns(db: apsw.Connection) -> str:
    return f"id, {_number(db)}, {_COLUMNS}"


def _number(db: apsw.Connection) -> str:
    """The expression of a run's number; of an older snapshot that is opened for reading, the id."""
    return _NUMBER if _has(db, "eval_numbers") else "id"


def _has(db: apsw.Connection, table: str) -> bool:
    return db.execute("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?", (table,)).get is not None


def is_default(path: str) -> bool:
    """Whether this is the library path of a ring's own eval set."""
    return path.split("/")[3:] == ["workspace", DEFAULT_NAME]


def with_runs(db: apsw.Connection) -> frozenset[int]:
    """Inode numbers of the items that were run as eval sets."""
    return frozenset(ino for (ino,) in db.execute("SELECT DISTINCT ino FROM eval_runs"))


def latest(db: apsw.Connection, ino: int) -> Run | None:
    """The last run of an eval set."""
    row = db.execute(f"SELECT {_columns(db)} FROM eval_runs WHERE ino = ? ORDER BY id DESC LIMIT 1", (ino,)).fetchone()
    return _run(row) if row else None


def pinned(db: apsw.Connection, ino: int) -> Run | None:
    """The run that is the set's baseline."""
    row = db.execute(
        f"SELECT {_columns(db)} FROM eval_runs WHERE ino = ? AND pinned ORDER BY id DESC LIMIT 1", (ino,)
    ).fetchone()
    return _run(row) if row else None


def find(db: apsw.Connection, ino: int, number: int) -> Run | None:
    """A kept run of this set by its number."""
    where = f"ino = ? AND {_number(db)} = ?"
    row = db.execute(f"SELECT {_columns(db)} FROM eval_runs WHERE {where}", (ino, number)).fetchone()
    return _run(row) if row else None


def every(db: apsw.Connection, ino: int) -> list[Run]:
    """The kept runs of a set, oldest first."""
    return [_run(row) for row in db.execute(f"SELECT {_columns(db)} FROM eval_runs WHERE ino = ? ORDER BY id", (ino,))]


def verdicts(db: apsw.Connection, run_id: int) -> list[StoredVerdict]:
    """The verdict on each question of a run, in the order of the set."""
    rows = db.execute(
        "SELECT position, definition, outcome FROM eval_verdicts JOIN eval_questions ON eval_questions.id = question_id"
        " WHERE run_id = ? ORDER BY position",
        (run_id,),
    )
    shares = _shares(db, run_id)
    return [StoredVerdict(definition, outcome, shares.get(position)) for position, definition, outcome in rows]


def _shares(db: apsw.Connection, run_id: int) -> dict[int, tuple[int, int, str]]:
    if not _has(db, "eval_shares"):
        return {}  # an older snapshot, opened for reading
    rows = db.execute("SELECT position, matched, possible, draw FROM eval_shares WHERE run_id = ?", (run_id,))
    return {position: (matched, possible, draw) for position, matched, possible, draw in rows}


def latest_summary(db: apsw.Connection, ino: int) -> str | None:
    """The summary of a set's last run."""
    row = db.execute("SELECT summary FROM eval_runs WHERE ino = ? ORDER BY id DESC LIMIT 1", (ino,)).fetchone()
    return None if row is None or row[0] is None else str(row[0], "utf-8", "surrogateescape")


def stored_rate(metadata: dict[str, Any]) -> Rate | None:
    """The rate in an item's metadata; None where there is none, or something that a run did not write."""
    rate, total = metadata.get(RATE), metadata.get(TOTAL)
    if not isinstance(rate, int | float) or not isinstance(total, int) or isinstance(rate, bool) or total < 1:
        return None
    passed = round(rate * total)
    if not 0 <= passed <= total or abs(passed / total - rate) > 0.5 / total:
        return None
    return Rate(passed, total, str(metadata.get(AT, "")))


def add(db: apsw.Connection, item: workspace.Item, run: NewRun) -> Stored:
    """Stores a run and its rate in the item's metadata, lets the oldest fall off, and gives the run's id and number.

    Writes nothing else: the item's content, size and times stay. To be called inside a transaction.
    """
    last: int = db.execute(f"SELECT coalesce(max({_NUMBER}), 0) FROM eval_runs WHERE ino = ?", (item.ino,)).get
    db.execute(
        "INSERT INTO eval_runs (ino, at_ns, passed, total, errors, fingerprint) VALUES (?, ?, ?, ?, ?, ?)",
        (item.ino, run.at_ns, run.passed, run.total, run.errors, run.fingerprint),
    )
    run_id = db.last_insert_rowid()
    db.execute("INSERT INTO eval_numbers (run_id, number) VALUES (?, ?)", (run_id, last + 1))
    db.executemany(
        "INSERT OR IGNORE INTO eval_questions (ino, definition) VALUES (?, ?)",
        [(item.ino, verdict.definition) for verdict in run.verdicts],
    )
    db.executemany(
        "INSERT INTO eval_verdicts (run_id, position, question_id, outcome)"
        " SELECT ?, ?, id, ? FROM eval_questions WHERE ino = ? AND definition = ?",
        [
            (run_id, position, verdict.outcome, item.ino, verdict.definition)
            for position, verdict in enumerate(run.verdicts)
        ],
    )
    db.executemany(
        "INSERT INTO eval_shares (run_id, position, matched, possible, draw) VALUES (?, ?, ?, ?, ?)",
        [(run_id, position, *verdict.share) for position, verdict in enumerate(run.verdicts) if verdict.share],
    )
    written = {RATE: run.passed / run.total, TOTAL: run.total, AT: iso(run.at_ns)}
    workspace.set_metadata(db, item.ino, {**item.metadata, **written})
    _let_go(db, item.ino)
    return Stored(run_id, last + 1)


def summarize(db: apsw.Connection, run_id: int, summary: str) -> None:
    """Keeps a run's summary."""
    db.execute("UPDATE eval_runs SET summary = ? WHERE id = ?", (summary.encode("utf-8", "surrogateescape"), run_id))


def pin(db: apsw.Connection, ino: int, number: int) -> None:
    """Makes the run of this number the set's baseline, in place of an earlier one."""
    db.execute(f"UPDATE eval_runs SET pinned = ({_NUMBER} = ?) WHERE ino = ?", (number, ino))


def _let_go(db: apsw.Connection, ino: int) -> None:
    db.execute(
        "DELETE FROM eval_runs WHERE ino = ?1 AND NOT pinned AND id NOT IN"
        " (SELECT id FROM eval_runs WHERE ino = ?1 ORDER BY id DESC LIMIT ?2)",
        (ino, KEPT_RUNS),
    )
    db.execute(
        "DELETE FROM eval_questions WHERE ino = ? AND NOT EXISTS"
        " (SELECT 1 FROM eval_verdicts WHERE question_id = eval_questions.id)",
        (ino,),
    )
