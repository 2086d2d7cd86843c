"""One answer against one question's expected fragments: what matched and how, passed or failed, and what missed."""

from collections.abc import Sequence
from typing import Literal, Protocol

from pydantic import BaseModel, ConfigDict

from libraryfs.evals.evalset import Question
from libraryfs.evals.matching import fold, fold_fragment
from libraryfs.evals.statistics import passes

Outcome = Literal["passed", "failed", "error"]
Miss = Literal["retrieval", "answer", "error"]
How = Literal["substring", "judge", "abstention"]


class Ruling(BaseModel):
    """A judge's reply about one fragment. `says` is None when it could not judge; `reason` then says why."""

    model_config = ConfigDict(frozen=True)

    says: bool | None
    probability: float | None = None
    """Of yes against no, 0…1, where the model gives likelihoods."""
    reason: str | None = None


class Judge(Protocol):
    """Says whether an answer states a fragment."""

    def __call__(self, question: str, answer: str, fragment: str) -> Ruling:
        """One model call. Raises ModelError only where the whole run cannot go on."""


class FragmentScore(BaseModel):
    """One fragment: `matched` None where it could not be judged, `how` it matched, the judge's ruling if asked."""

    model_config = ConfigDict(frozen=True)

    fragment: str
    matched: bool | None
    how: How | None = None
    judge: Ruling | None = None
    in_evidence: bool = False
    """Whether an item that was retrieved holds it, by substring."""


class Score(BaseModel):
    """A question's verdict. `miss` says which step lost it: retrieval, the answer, or an error (outside n)."""

    model_config = ConfigDict(frozen=True)

    outcome: Outcome
    miss: Miss | None = None
    fragments: tuple[FragmentScore, ...] = ()
    error: str | None = None


def score(question: Question, answer: str | None, evidence: Sequence[str], judge: Judge | None = None) -> Score:
    """The verdict on one answer (None: it said that the library does not hold it). `evidence`: the retrieved texts.

    The judge is asked only for fragments that the answer does not hold as a substring, once each.
    """
    if question.expects_abstention:
        fragment = FragmentScore(
            fragment=question.fragments[0], matched=answer is None, how="abstention" if answer is None else None
        )
        return Score(
            outcome="passed" if answer is None else "failed",
            miss=None if answer is None else "answer",
            fragments=(fragment,),
        )
    folded = "" if answer is None else fold(answer)
    held = [fold(text) for text in evidence]
    fragments = tuple(_fragment(question, answer, folded, held, fragment, judge) for fragment in question.fragments)
    return verdict(fragments)


def _fragment(
    question: Question, answer: str | None, folded: str, evidence: list[str], fragment: str, judge: Judge | None
) -> FragmentScore:
    wanted = fold_fragment(fragment)
    in_evidence = any(wanted in text for text in evidence)
    if wanted in folded:
        return FragmentScore(fragment=fragment, matched=True, how="substring", in_evidence=in_evidence)
    if judge is None or answer is None or not folded:
        return FragmentScore(fragment=fragment, matched=False, in_evidence=in_evidence)
    ruling = judge(question.text, answer, fragment)
    return FragmentScore(
        fragment=fragment,
        matched=ruling.says,
        how="judge" if ruling.says else None,
        judge=ruling,
        in_evidence=in_evidence,
    )


def verdict(fragments: tuple[FragmentScore, ...]) -> Score:
    """Passed or failed by the 0.7 rule. A fragment that could not be judged is an error only if it would decide."""
    total = len(fragments)
    matched = sum(fragment.matched is True for fragment in fragments)
    unknown = sum(fragment.matched is None for fragment in fragments)
    if passes(matched, total):
        return Score(outcome="passed", fragments=fragments)
    if passes(matched + unknown, total):
        reason = next(f.judge.reason for f in fragments if f.matched is None and f.judge is not None)
        return Score(outcome="error", miss="error", fragments=fragments, error=f"the judge could not judge: {reason}")
    reachable = sum(fragment.matched is True or fragment.in_evidence for fragment in fragments)
    # Had the answer said all that its evidence holds: would that have passed?
    return Score(outcome="failed", miss="answer" if passes(reachable, total) else "retrieval", fragments=fragments)
