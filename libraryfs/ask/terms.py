"""Text → the terms that carry its meaning, comparable across inflections and scripts, with no model and no dictionary.

A term is the first PREFIX characters of a case-folded word (a cheap stem that serves every suffixing language), or a
pair of neighbouring characters where a script has no spaces. Measured: see the decision record on answers.
"""

import math
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Final

from libraryfs.ask.sentences import UNSPACED

PREFIX: Final = 5
_WORD: Final = re.compile(r"[^\W_]+")
_NUMBER: Final = re.compile(r"\d+(?:[.,:/]\d+)*")
_NAME: Final = re.compile(r"[^\W\d_][\w'’-]*")

# Words that ask or join and say nothing by themselves. Other languages' are weighed down by `weights`: they are in
# most sentences of the evidence.
_EMPTY_WORDS: Final = """
    a an the of in on at to for from by with as and or but not no nor is are was were be been being do does did done
    has have had having this that these those it its he she they them his her their him we us our you your i my me what
    which who whom whose when where why how many much can could will would shall should may might must there here than
    then so if about into over under between during after before up down out off again more most other some such only
    own same very s t just also any each few both all n d ll m o re ve name called type kind please tell
"""
_NEGATING_WORDS: Final = """
    not no never none neither nor without cannot n't nicht kein keine keinen keiner nie niemals ohne ne pas jamais
    sans sin nunca не нет никогда
"""
_EMPTY: Final = frozenset(_EMPTY_WORDS.split())
_NEGATIONS: Final = frozenset(_NEGATING_WORDS.split())


def terms(text: str) -> list[str]:
    """The terms of the text, in order, with repeats."""
    found: list[str] = []
    for word in _WORD.findall(unicodedata.normalize("NFKC", text).casefold()):
        if UNSPACED.search(word):
            found.extend(word[at : at + 2] for at in range(max(1, len(word) - 1)))
        elif word not in _EMPTY:
            found.append(_stem(word))
    return found


def _stem(word: str) -> str:
    """Without a plural's or a verb's s where the prefix would hold it: `runs` and `run` are one term.

    A word with a digit is a name of something and stays whole.
    """
    if not word.isalpha() and any(char.isdigit() for char in word):
        return word
    return (word[:-1] if len(word) > 3 and word[-1] == "s" and word[-2] != "s" else word)[:PREFIX]


def numbers(text: str) -> set[str]:
    """The numbers in the text, without separators of thousands, so that 8,646 is 8646."""
    return {
        re.sub(r"[,\s](?=\d{3}\b)", "", found).strip(".,:/")
        for found in _NUMBER.findall(unicodedata.normalize("NFKC", text))
    }


def names(text: str) -> set[str]:
    """The terms of the capitalised words that do not begin a sentence: names of people, places, things."""
    found: set[str] = set()
    begins = True
    last = 0
    for match in _NAME.finditer(text):
        begins = begins or bool(re.search(r"[.!?:]\s*[\"'“(]*$", text[last : match.start()]))
        if match[0][0].isupper() and not begins:
            found.update(terms(match[0]))
        begins = False
        last = match.end()
    return found


def negated(text: str) -> bool:
    """Whether the text holds a word that negates."""
    return any(word in _NEGATIONS or word.endswith(("n't", "n’t")) for word in re.findall(r"[\w'’]+", text.casefold()))


def weights(question: Iterable[str], sentences: Sequence[set[str]]) -> dict[str, float]:
    """How much each of the question's terms says: rare among the sentences is much. ln(1 + n / (1 + n with it))."""
    total = len(sentences)
    return {term: math.log(1 + total / (1 + sum(term in sentence for sentence in sentences))) for term in set(question)}


def coverage(weighted: Mapping[str, float], found: Set[str]) -> float:
    """The share of the weights whose terms are found, 0 to 1; 0 without terms."""
    total = sum(weighted.values())
    return sum(weight for term, weight in weighted.items() if term in found) / total if total else 0.0
