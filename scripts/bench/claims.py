"""The claim check, measured: true claims made from gold sentences, and the same claims with one thing made wrong."""

import random
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from libraryfs.ask import grounding
from libraryfs.ask import terms as lexicon
from libraryfs.ask.evidence import Evidence
from libraryfs.ask.passages import Passage, of_text

_VERB = re.compile(r"\b(is|are|was|were|can|has|had|will)\b")
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]{3,}\b")
_NUMBER = re.compile(r"\b\d{2,4}\b")
Check = Callable[[str, str, Sequence[Passage]], bool]


class Case(NamedTuple):
    """A claim about a question, and whether it is true."""

    kind: str
    true: bool
    question: str
    claim: str
    passages: Sequence[Passage]


def cases(documents: Sequence[dict[str, Any]], questions: Sequence[dict[str, Any]]) -> list[Case]:
    """Claims of each kind, over the gold text and four others."""
    chance = random.Random(5)
    passages = {one["id"]: _passage(one) for one in documents}
    names = sorted({name for one in documents for name in _NAME.findall(one["text"])})
    found: list[Case] = []
    for row in questions:
        gold, text = row["answers"][0], passages[row["evidence"][0]]
        others = chance.sample([one for one in passages.values() if one is not text], 4)
        near = [text, *others]
        sentence = next((one.text for one in text.sentences if gold in one.text), None)
        if sentence is None:
            continue
        other = chance.choice([one["answers"][0] for one in questions if one["evidence"] != row["evidence"]])

        def add(kind: str, claim: str | None, *, true: bool = False, row: Any = row, near: Any = near) -> None:
            if claim is not None:
                found.append(Case(kind, true, row["question"], claim, near))

        add("the sentence", sentence, true=True)
        add("the answer alone", gold, true=True)
        add("“It was …”", f"It was {gold}.", true=True)
        add("another answer", f"It was {other}.")
        add("a number changed", _swap(_NUMBER, sentence, lambda old: str(int(old) + chance.randint(1, 9))))
        add("a name changed", _swap(_NAME, sentence, lambda old: chance.choice([n for n in names if n != old])))
        add("negated", _swap(_VERB, sentence, lambda old: f"{old} not") if not lexicon.negated(sentence) else None)
        add("the question again", row["question"])
    return found


def _passage(document: dict[str, Any]) -> Passage:
    item = Evidence(
        id=document["id"],
        path="/",
        score=1.0,
        origin="vector",
        excerpt=document["text"],
        superseded_by=None,
        title=document["title"].replace("_", " "),
        ino=0,
        namespace_id=0,
    )
    return of_text(item, document["text"])


def _swap(pattern: re.Pattern[str], text: str, make: Callable[[str], str]) -> str | None:
    match = pattern.search(text)
    return None if match is None else text[: match.start()] + make(match[0]) + text[match.end() :]


def ours(claim: str, question: str, passages: Sequence[Passage]) -> bool:
    """The product's check."""
    return grounding.support(claim, question, passages) is not None


def overlap(claim: str, question: str, passages: Sequence[Passage]) -> bool:
    """Three quarters of the claim's terms in three sentences in a row."""
    wanted = set(lexicon.terms(claim))
    windows = [set().union(*p.terms[at : at + 3]) for p in passages for at in range(len(p.terms))]
    return any(len(wanted & held) >= 0.75 * len(wanted) for held in windows)


def all_terms(claim: str, question: str, passages: Sequence[Passage]) -> bool:
    """All of the claim's terms in three sentences in a row."""
    wanted = set(lexicon.terms(claim))
    windows = [set().union(*p.terms[at : at + 3]) for p in passages for at in range(len(p.terms))]
    return any(wanted <= held for held in windows)


def by_cosine(embed: Callable[[Sequence[str]], Any], threshold: float) -> Check:
    """A sentence of cosine `threshold` or more with the claim."""

    def check(claim: str, question: str, passages: Sequence[Passage]) -> bool:
        texts = [claim, *(sentence.text for passage in passages for sentence in passage.sentences)]
        vectors = embed(texts)
        return bool((vectors[1:] @ vectors[0]).max() >= threshold)

    return check


def let_through(check: Check, made: Sequence[Case]) -> dict[str, tuple[int, int]]:
    """(let through, in all) for each kind of claim."""
    found: dict[str, tuple[int, int]] = {}
    for case in made:
        passed, total = found.get(case.kind, (0, 0))
        found[case.kind] = (passed + check(case.claim, case.question, case.passages), total + 1)
    return found
