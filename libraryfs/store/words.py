"""Text → the stems that keyword search indexes and looks up, alike for every script.

A stem is the first 6 letters of an English stem (Porter's), or the first 5 of a word that has others than ASCII's: a
cheap stemmer for all languages that inflect by endings. A word with a digit stays whole. Scripts without spaces, and
Korean, whose particles cling to the word, become overlapping pairs of characters. Measured: see the decision record on
keywords.
"""

import re
import unicodedata
from collections.abc import Iterable
from typing import Final

import apsw

ASCII_LETTERS: Final = 6
OTHER_LETTERS: Final = 5

TOKENIZER: Final = ("unicode61", "remove_diacritics", "2", "categories", "L* N* Co Mn Mc")
"""With Mn and Mc: vowel signs are marks in Indic scripts and in Thai, and a word ends at a mark otherwise."""
OLD_TOKENIZER: Final = ("unicode61", "remove_diacritics", "2")
"""Of the index of a snapshot before schema 2, whose stems were not cut."""

PASSAGE_CHARACTERS: Final = 1000
"""Length of an excerpt that keywords chose."""
_CUTS: Final = ("\n", ". ", "! ", "? ", "。", "！", "？")

_DIGIT: Final = re.compile(r"\d")
"""A word with a digit in it is a name (zebra57, inc20231104): it has no endings, and its last letters tell it apart."""

_UNSPACED: Final = re.compile(
    "[\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7a3\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]+"
)
"""Thai, Lao, Tibetan, Burmese, Khmer, kana, Han, Hangul."""

_POINTS: Final = re.compile(
    "[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670]+"
)
"""Points of Hebrew and Arabic, and the Arabic stroke that stretches a word: one writer sets them, the next does not."""

# Words that ask or bind and say nothing of the subject; English, the language of the stemmer.
_STOP: Final = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at be been by can did do does for from had has have how i in is it its me my of on or our"
        " shall should that the their them then there these they this those to was we were what when where which who"
        " whom whose why will with would you your",
    )
)


def stems(db: apsw.Connection, text: str) -> list[str]:
    """The stems of a text, in order, with repeats."""
    old = is_old(db)
    tokenizer = db.fts5_tokenizer("porter", list(OLD_TOKENIZER if old else TOKENIZER))
    return _cut(_tokens(tokenizer, text), old)


def asked(db: apsw.Connection, question: str) -> list[str]:
    """The stems of a question, without repeats; words that only bind are left out when others remain."""
    old = is_old(db)
    form = list(OLD_TOKENIZER if old else TOKENIZER)
    words = _tokens(db.fts5_tokenizer(form[0], form[1:]), question)
    kept = [word for word in words if word not in _STOP] or words
    porter = db.fts5_tokenizer("porter", form)
    return list(dict.fromkeys(_cut(_tokens(porter, " ".join(kept), paired=True), old)))


def is_old(db: apsw.Connection) -> bool:
    """Whether the snapshot's index is of a schema before 2."""
    return bool(db.pragma("user_version") == 1)


def _cut(tokens: Iterable[str], old: bool) -> list[str]:
    if old:
        return list(tokens)
    return [token if _DIGIT.search(token) else token[: _letters(token)] for token in tokens]


def _letters(token: str) -> int:
    return ASCII_LETTERS if token.isascii() else OTHER_LETTERS


def _tokens(tokenizer: apsw.FTS5Tokenizer, text: str, *, paired: bool = False) -> list[str]:
    data = (text if paired else spaced(text)).encode("utf-8", "replace")
    found = tokenizer(data, apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False, include_colocated=False)
    return list(map(str, found))


def spaced(text: str) -> str:
    """The text with its compatibility forms made plain, points left out, and unspaced scripts cut into pairs."""
    plain = _POINTS.sub("", unicodedata.normalize("NFKC", text))
    return _UNSPACED.sub(lambda run: " " + " ".join(_pairs(run[0])) + " ", plain)


def _pairs(run: str) -> list[str]:
    return [run] if len(run) == 1 else [run[i : i + 2] for i in range(len(run) - 1)]


def best_passages(db: apsw.Connection, text: str, question: str, wanted: int) -> list[tuple[int, int]]:
    """(start, end) in characters of the passages of a text that have most different words of the question, best first,
    of several the first. Passages are whole lines or sentences of together about PASSAGE_CHARACTERS. Those without any
    word of it are left out; but the first passage is given where there is no other."""
    sought = set(asked(db, question))
    counted = [(-len(sought.intersection(stems(db, text[start:end]))), start, end) for start, end in passages(text)]
    best = sorted(one for one in counted if one[0]) or counted[:1]
    return [(start, end) for _, start, end in best[:wanted]]


def passages(text: str) -> list[tuple[int, int]]:
    """(start, end) of the passages of a text, in order."""
    found: list[tuple[int, int]] = []
    start = 0
    while start < len(text):
        end = min(len(text), start + PASSAGE_CHARACTERS)
        if end < len(text):
            cut = max(text.rfind(mark, start, end - len(mark)) + len(mark) for mark in _CUTS)
            end = cut if cut > start + PASSAGE_CHARACTERS // 2 else end
        body = text[start:end]
        if body.strip():
            found.append((start + len(body) - len(body.lstrip()), end - len(body) + len(body.rstrip())))
        start = end
    return found or [(0, 0)]
