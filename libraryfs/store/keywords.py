"""Keyword search: an FTS5 index of words, and BM25 over it with the figures of the scope's own namespaces.

FTS5's bm25() counts the whole table, so a row that the principal may not see would move the ranking of those that he
may. Here the number of files, their mean length and each word's frequency come from the searched namespaces alone.
"""

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import apsw

from libraryfs import headings
from libraryfs.nodes import Kind
from libraryfs.store import charset, inodes, texts, words
from libraryfs.store.search_scope import BELOW, SearchScope

MAX_TEXT_BYTES: Final = 4 * 1024 * 1024
"""Longer files are found by name only."""

K1: Final = 2.0
B: Final = 0.75
"""The parameters of BM25 (Robertson and Zaragoza 2009, §3.5). K1 is at the upper end of the usual: in long files a word
of the subject comes often, one that is mentioned does not."""
TITLE: Final = 2.0
HEADING: Final = 0.5
"""What a word in the title, or in a heading, counts beside its occurrences in the text (BM25F, same paper, §3.6)."""

SUBJECT: Final = 0.5
"""Weight of how far title and question are the same: the share of the question that the title has, times the share of
the title that the question has. A file about the subject then comes before one that mentions it."""

MAX_TERMS: Final = 64
"""Of a longer question, the first so many different words count."""
RARE_FILES: Final = 2000
"""A word in more files of the scope finds none by itself, while rarer ones find enough: it ranks what they found."""


_SUFFIX: Final = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,7}$")
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
"""Where PumpStalled is two words."""


class Found(NamedTuple):
    """A file that has words of the question.

    `share` is its BM25 score over the most that a file could have, 0 to 1, and up to SUBJECT more for its title.
    """

    ino: int
    share: float


class Findings(NamedTuple):
    """The best files, how many the question's words found, and the share of each of these."""

    best: list[Found]
    matched: int
    shares: Mapping[int, float]


def index_queued(db: apsw.Connection, progress: Callable[[int, int], None] | None = None) -> int:
    """Indexes every file that waits for it, in a transaction of the caller; returns how many."""
    total: int = db.execute("SELECT count(*) FROM unindexed").get
    done, after = 0, -1
    while True:
        batch = [
            ino for (ino,) in db.execute("SELECT ino FROM unindexed WHERE ino > ? ORDER BY ino LIMIT 1000", (after,))
        ]
        if not batch:
            return done
        for ino in batch:
            _index(db, ino)
        after = batch[-1]
        done += len(batch)
        if progress is not None:
            progress(done, total)


def count_queued(db: apsw.Connection, namespaces: tuple[int, ...]) -> int:
    """How many files of these namespaces wait to be indexed."""
    return sum(db.execute("SELECT count(*) FROM unindexed WHERE namespace_id = ?", (one,)).get for one in namespaces)


def _index(db: apsw.Connection, ino: int) -> None:
    text = texts.load(db, ino, MAX_TEXT_BYTES)
    if text is None:
        db.execute("DELETE FROM unindexed WHERE ino = ?", (ino,))
        return
    # A file without text is found by its name.
    top, others = headings.find(text.text)
    name = text.title if text.entry.kind == Kind.MEMORY else _SUFFIX.sub("", text.title)
    title = words.stems(db, f"{name}\n{top}")
    parts = words.stems(db, _HUMP.sub(" ", name))
    body = words.stems(db, f"{text.title}\n{text.text}")
    db.execute(
        "INSERT INTO words (rowid, title, headings, text) VALUES (?, ?, ?, ?)",
        (ino, " ".join((*title, *parts)), " ".join(words.stems(db, "\n".join(others))), " ".join(body)),
    )
    about = len({stem for stem in title if not stem.isdigit()})
    db.execute(
        "INSERT INTO indexed (ino, namespace_id, words, title) VALUES (?, ?, ?, ?)",
        (ino, text.entry.namespace_id, len(body), about),
    )
    if text.encoding != charset.UTF8:
        db.execute("INSERT OR REPLACE INTO charsets (ino, encoding) VALUES (?, ?)", (ino, text.encoding))


def search(
    db: apsw.Connection,
    question: str,
    scope: SearchScope,
    wanted: int,
    reachable: Callable[[int], bool],
    enough: int | None = None,
) -> Findings:
    """The `wanted` best files of the scope that are `reachable`, by BM25, ties by inode number.

    Where the question's rarer words find `enough` (else: `wanted`), no file is looked for by those of many files alone.
    The question is data: no character of it is query syntax.
    """
    asked = words.asked(db, question)[:MAX_TERMS]
    if not asked or not scope.namespaces:
        return Findings([], 0, {})
    return _Search(db, asked, scope).run(wanted, reachable, wanted if enough is None else enough)


def spread(db: apsw.Connection, scope: SearchScope, wanted: int) -> list[int]:
    """Up to `wanted` files of the scope's namespaces, evenly over their inode numbers, which are hashes: by chance, and
    the same ones each time."""
    found: list[int] = []
    ranges = sorted({(first, last) for first, last, _ in _ranges(db, scope)})
    for at in range(wanted):
        first, last = ranges[at % len(ranges)]
        step = (last - first) * (at // len(ranges)) // max(1, -(-wanted // len(ranges)))
        row = db.execute(
            "SELECT ino FROM indexed WHERE ino BETWEEN ? AND ? AND words > 0"
            " AND namespace_id IN (SELECT value FROM json_each(?)) ORDER BY ino LIMIT 1",
            (first + step, last, json.dumps(scope.namespaces)),
        ).fetchone()
        found += row or ()
    return list(dict.fromkeys(found))


class _Term(NamedTuple):
    term: str
    files: int
    """How many files of the searched namespaces have it."""

    @property
    def quoted(self) -> str:
        """As a phrase of FTS5's query language."""
        return '"' + self.term.replace('"', '""') + '"'


class _Search:
    """One question's terms in one scope."""

    def __init__(self, db: apsw.Connection, asked: Sequence[str], scope: SearchScope) -> None:
        self.db = db
        self.scope = scope
        self.namespaces = json.dumps(scope.namespaces)
        self.ranges = list(_ranges(db, scope))
        self.files, total = db.execute(
            "SELECT coalesce(sum(files), 0), coalesce(sum(words), 0) FROM indexed_totals"
            " WHERE namespace_id IN (SELECT value FROM json_each(?))",
            (self.namespaces,),
        ).get
        self.mean = max(1.0, total / max(1, self.files))
        self.terms = sorted((_Term(term, self._count(term)) for term in asked), key=lambda one: one.files)

    def run(self, wanted: int, reachable: Callable[[int], bool], enough: int) -> Findings:
        """The best files. Words in many files are looked for only where too few are found without them."""
        held = [one for one in self.terms if one.files]
        finders = sum(one.files <= RARE_FILES for one in held) or min(1, len(held))
        while True:
            shares = self._within(self._shares(held[:finders], held[finders:]))
            best: list[Found] = []
            for ino, share in sorted(shares.items(), key=lambda one: (-one[1], one[0])):
                if len(best) == wanted:
                    break
                if reachable(ino):
                    best.append(Found(ino, share))
            if len(best) >= enough or finders >= len(held):
                return Findings(best, len(shares), shares)
            finders += 1

    def _count(self, term: str) -> int:
        """The files of the searched namespaces that have the term."""
        quoted = _Term(term, 0).quoted
        return sum(
            self.db.execute(
                "SELECT count(*) FROM words(?) w CROSS JOIN indexed i ON i.ino = w.rowid"
                " WHERE w.rowid BETWEEN ? AND ?"
                " AND i.namespace_id IN (SELECT value FROM json_each(?))"
                if shared
                else "SELECT count(*) FROM words WHERE words MATCH ? AND rowid BETWEEN ? AND ?",
                (quoted, first, last, self.namespaces) if shared else (quoted, first, last),
            ).get
            for first, last, shared in self.ranges
        )

    def _idf(self, files: int) -> float:
        """As in Lucene, never negative. A word that no file has counts as one that a single file has: it says that the
        best file does not hold the whole question."""
        files = max(1, files)
        return math.log(1 + max(0, self.files - files + 0.5) / (files + 0.5))

    def _shares(self, finders: Sequence[_Term], others: Sequence[_Term]) -> dict[int, float]:
        """The share of every file that the finders found."""
        most = sum(self._idf(one.files) for one in self.terms) or 1.0
        weights = {one.term: self._idf(one.files) / most for one in self.terms}
        shares: dict[int, float] = {}
        lengths: dict[int, int] = {}
        titles: dict[int, tuple[float, float]] = {}  # weight of the question's words in it, share of its words
        for term, ino, length, body, title, heading, about in self._hits(finders):
            lengths[ino] = length
            shares[ino] = shares.get(ino, 0.0) + weights[term] * self._saturated(body, title, heading, length)
            if title and about:
                asked, held = titles.get(ino, (0.0, 0.0))
                titles[ino] = asked + weights[term], held + 1 / about
        anything = " OR ".join(one.quoted for one in finders)
        for one in others:
            for ino in self._both(one, anything):
                if ino in shares:
                    shares[ino] += weights[one.term] * self._saturated(1, 0, 0, lengths[ino])
        for ino, (asked, held) in titles.items():
            shares[ino] += SUBJECT * asked * min(1.0, held)
        return shares

    def _saturated(self, body: int, title: int, heading: int, length: int) -> float:
        count = body / (1 - B + B * length / self.mean) + TITLE * title + HEADING * heading
        return float(count / (count + K1))

    def _hits(self, terms: Sequence[_Term]) -> Iterator[tuple[str, int, int, int, int, int, int]]:
        """(term, ino, the file's words, times in it, whether in its title, whether in a heading, the title's words)."""
        about = "0" if words.is_old(self.db) else "i.title"
        yield from self.db.execute(
            _HITS.format(about=about), (json.dumps([one.term for one in terms]), self.namespaces)
        )

    def _both(self, term: _Term, anything: str) -> Iterator[int]:
        """The files that have the term and one of the others, and perhaps some of another namespace."""
        for first, last, _ in self.ranges:
            rows = self.db.execute(
                "SELECT rowid FROM words WHERE words MATCH ? AND rowid BETWEEN ? AND ?",
                (f"{term.quoted} AND ({anything})", first, last),
            )
            for (ino,) in rows:
                yield ino

    def _within(self, shares: dict[int, float]) -> dict[int, float]:
        """The same, of the scope's own files."""
        where, value = _narrowed(self.scope)
        if not where:
            return shares
        rows = self.db.execute(f"SELECT value FROM json_each(?) h WHERE {where}", (json.dumps(list(shares)), value))
        return {ino: shares[ino] for (ino,) in rows}


_HITS: Final = """
SELECT f.term, f.doc, i.words, f.body, f.title, f.heading, {about}
FROM (
    SELECT t.value AS term, v.doc AS doc, sum(v.col = 'text') AS body, max(v.col = 'title') AS title,
        max(v.col = 'headings') AS heading
    FROM json_each(?) t CROSS JOIN words_found v ON v.term = t.value GROUP BY t.value, v.doc
) f
CROSS JOIN indexed i ON i.ino = f.doc
WHERE i.namespace_id IN (SELECT value FROM json_each(?))
"""


def _ranges(db: apsw.Connection, scope: SearchScope) -> Iterator[tuple[int, int, bool]]:
    """(first, last inode number, whether rows of other namespaces can be among them) of the scope's namespaces."""
    every = {one: inodes.cluster_of(ino) for one, ino in db.execute("SELECT id, ino FROM namespaces")}
    wanted = {every[one] for one in scope.namespaces if one in every}
    others = {cluster for one, cluster in every.items() if one not in scope.namespaces}
    for first, last in sorted(wanted):
        yield first, last, (first, last) in others


def _narrowed(scope: SearchScope) -> tuple[str, int]:
    if scope.section is not None:
        return "(SELECT parent FROM entries e WHERE e.ino = h.value) = ?", scope.section
    if scope.below is not None:
        return f"h.value IN ({BELOW})", scope.below
    if scope.file is not None:
        return "h.value = ?", scope.file
    return "", 0
