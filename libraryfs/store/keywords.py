"""Keyword search: an FTS5 index of words, and BM25 over it with the figures of the scope's own namespaces.

FTS5's bm25() counts the whole table, so a row that the principal may not see would move the ranking of those that he
may. Here the number of files, their mean length and each word's frequency come from the searched namespaces alone.

Scripts without spaces (Chinese, Japanese, Thai, …) are indexed as overlapping pairs of characters. On xquad-zh that
finds the evidence of 99.3 % of the questions in the top 5, FTS5's trigram tokenizer 93.2 %, its words 12.8 %.
"""

import json
import re
from collections.abc import Callable
from typing import Final, NamedTuple

import apsw

from libraryfs.store import charset, texts
from libraryfs.store.search_scope import BELOW, SearchScope
from libraryfs.store.texts import TextState

MAX_TEXT_BYTES: Final = 4 * 1024 * 1024
"""Longer files are found by name only."""

K1: Final = 1.2
B: Final = 0.75
"""The usual parameters of BM25 (Robertson and Zaragoza 2009, §3.5), and FTS5's."""

MAX_TERMS: Final = 64
"""Of a longer question, the first so many different words count."""

PASSAGE_CHARACTERS: Final = 1000
"""Length of an excerpt that keywords chose."""
_CUTS: Final = ("\n", ". ", "! ", "? ", "。", "！", "？")

_UNSPACED: Final = re.compile(
    "[\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]+"
)
"""Thai, Lao, Tibetan, Burmese, Khmer, kana, Han."""

_WORD: Final = re.compile(r"\w+")

# Words that ask or bind and say nothing of the subject; English, the language of the stemmer.
_STOP: Final = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at be been by can did do does for from had has have how i in is it its me my of on or our"
        " shall should that the their them then there these they this those to was we were what when where which who"
        " whom whose why will with would you your",
    )
)


class Found(NamedTuple):
    """A file that has words of the question. `share`: its BM25 score over the most that a file could have, 0 to 1."""

    ino: int
    share: float


class Findings(NamedTuple):
    """The best files, and how many have at least one word of the question."""

    best: list[Found]
    matched: int


def analyse(text: str) -> str:
    """The text as it is indexed: unspaced scripts cut into pairs of characters, all else as it is."""
    return _UNSPACED.sub(lambda run: " " + " ".join(_pairs(run[0])) + " ", text)


def _pairs(run: str) -> list[str]:
    return [run] if len(run) == 1 else [run[i : i + 2] for i in range(len(run) - 1)]


def terms(db: apsw.Connection, question: str) -> list[str]:
    """The index's terms in a question, without repeats; words that only bind are left out when others remain."""
    words = list(dict.fromkeys(word.casefold() for word in _WORD.findall(analyse(question))))
    kept = [word for word in words if word not in _STOP] or words
    tokenizer = db.fts5_tokenizer("porter", ["unicode61", "remove_diacritics", "2"])
    found = tokenizer(
        " ".join(kept).encode(), apsw.FTS5_TOKENIZE_QUERY, None, include_offsets=False, include_colocated=False
    )
    return list(dict.fromkeys(map(str, found)))[:MAX_TERMS]


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
    words = analyse(f"{text.title}\n{text.text}" if text.state is TextState.TEXT else text.title)
    db.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (ino, words))
    db.execute(
        "INSERT INTO indexed (ino, namespace_id, words) VALUES (?, ?, ?)",
        (ino, text.entry.namespace_id, len(words.split())),
    )
    if text.encoding != charset.UTF8:
        db.execute("INSERT OR REPLACE INTO charsets (ino, encoding) VALUES (?, ?)", (ino, text.encoding))


def search(
    db: apsw.Connection, question: str, scope: SearchScope, wanted: int, reachable: Callable[[int], bool]
) -> Findings:
    """The `wanted` best files of the scope that are `reachable`, by BM25, ties by inode number.

    The question is data: no character of it is query syntax.
    """
    asked = terms(db, question)
    if not asked or not scope.namespaces:
        return Findings([], 0)
    namespaces = json.dumps(scope.namespaces)
    files, words = db.execute(
        "SELECT coalesce(sum(files), 0), coalesce(sum(words), 0) FROM indexed_totals"
        " WHERE namespace_id IN (SELECT value FROM json_each(?))",
        (namespaces,),
    ).get
    if not files:
        return Findings([], 0)
    where, values = _within(scope)
    rows = db.execute(
        _SEARCH.format(within=where),
        {
            "terms": json.dumps(asked),
            "namespaces": namespaces,
            "files": files,
            "mean": max(1.0, words / files),
            "k1": K1,
            "b": B,
            **values,
        },
    )
    best: list[Found] = []
    matched = 0
    for ino, share, number in rows:
        matched = number
        if len(best) == wanted:
            break
        if reachable(ino):
            best.append(Found(ino, min(1.0, share)))
    rows.close()
    return Findings(best, matched)


# idf as in Lucene: ln(1 + (N - df + 0.5) / (df + 0.5)), never negative. A word that no file has counts in `most` as one
# that a single file has: it says that the best file does not hold the whole question.
_SEARCH: Final = """
WITH hits (term, ino, words, tf) AS MATERIALIZED (
    SELECT f.term, i.ino, i.words, f.tf
    FROM (
        SELECT t.value AS term, v.doc AS doc, count(*) AS tf
        FROM json_each(:terms) t CROSS JOIN words_found v ON v.term = t.value GROUP BY t.value, v.doc
    ) f
    CROSS JOIN indexed i ON i.ino = f.doc
    WHERE i.namespace_id IN (SELECT value FROM json_each(:namespaces))
),
weights (term, idf) AS MATERIALIZED (
    SELECT t.value, ln(1 + (:files - max(1, count(h.ino)) + 0.5) / (max(1, count(h.ino)) + 0.5))
    FROM json_each(:terms) t LEFT JOIN hits h ON h.term = t.value GROUP BY t.value
),
scores (ino, score) AS (
    SELECT h.ino, sum(w.idf * h.tf * (:k1 + 1) / (h.tf + :k1 * (1 - :b + :b * h.words / :mean)))
    FROM hits h JOIN weights w ON w.term = h.term WHERE {within} GROUP BY h.ino
)
SELECT ino, score / (SELECT sum(idf) * (:k1 + 1) FROM weights), count(*) OVER () FROM scores ORDER BY score DESC, ino
"""


def _within(scope: SearchScope) -> tuple[str, dict[str, int]]:
    if scope.section is not None:
        return "(SELECT parent FROM entries e WHERE e.ino = h.ino) = :section", {"section": scope.section}
    if scope.below is not None:
        return f"h.ino IN ({BELOW.replace('?', ':below')})", {"below": scope.below}
    if scope.file is not None:
        return "h.ino = :file", {"file": scope.file}
    return "1", {}


def best_passages(db: apsw.Connection, text: str, question: str, wanted: int) -> list[tuple[int, int]]:
    """(start, end) in characters of the passages of a text that have most different words of the question, best first,
    of several the first. Passages are whole lines or sentences of together about PASSAGE_CHARACTERS. Those without any
    word of it are left out; but the first passage is given where there is no other."""
    asked = set(terms(db, question))
    tokenizer = db.fts5_tokenizer("porter", ["unicode61", "remove_diacritics", "2"])
    counted: list[tuple[int, int, int]] = []
    for start, end in _passages(text):
        data = analyse(text[start:end]).encode()
        found = tokenizer(data, apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False, include_colocated=False)
        counted.append((-len(asked.intersection(map(str, found))), start, end))
    best = sorted(one for one in counted if one[0]) or counted[:1]
    return [(start, end) for _, start, end in best[:wanted]]


def _passages(text: str) -> list[tuple[int, int]]:
    passages: list[tuple[int, int]] = []
    start = 0
    while start < len(text):
        end = min(len(text), start + PASSAGE_CHARACTERS)
        if end < len(text):
            cut = max(text.rfind(mark, start, end - len(mark)) + len(mark) for mark in _CUTS)
            end = cut if cut > start + PASSAGE_CHARACTERS // 2 else end
        body = text[start:end]
        if body.strip():
            passages.append((start + len(body) - len(body.lstrip()), end - len(body) + len(body.rstrip())))
        start = end
    return passages or [(0, 0)]
