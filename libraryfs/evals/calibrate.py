"""A judge against labelled rows: how often it agrees with people, beside the substring rule on the same rows.

A row is a JSON object, one a line: `claim` (text), `evidence` (a text or a list of texts) and `support`, the person's
verdict: true or false, yes or no, or ExpertQA's Complete (yes) and Partial, Incomplete, Missing (no). Other keys are
not read.
"""

import json
from collections.abc import Callable, Iterable
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from libraryfs.errors import InvalidRequest
from libraryfs.evals.matching import fold, says
from libraryfs.evals.score import Judge
from libraryfs.evals.statistics import Count, cohen_kappa, wilson

_VERDICTS: Final = {
    "complete": True,
    "yes": True,
    "true": True,
    "partial": False,
    "incomplete": False,
    "missing": False,
    "no": False,
    "false": False,
}
QUESTION: Final = "What does the text say?"
"""Labelled rows have no question; the judge is shown this one."""


class Row(BaseModel):
    """One labelled claim."""

    model_config = ConfigDict(frozen=True, strict=True)

    claim: str = Field(min_length=1)
    evidence: str
    support: bool

    @field_validator("evidence", mode="before")
    @classmethod
    def _joined(cls, value: Any) -> Any:
        if isinstance(value, list) and all(isinstance(part, str) for part in value):
            return "\n\n".join(value)
        return value

    @field_validator("support", mode="before")
    @classmethod
    def _verdict(cls, value: Any) -> Any:
        if isinstance(value, str):
            if value.strip().casefold() not in _VERDICTS:
                raise ValueError(f"{value[:40]!r} is not a verdict; write one of {', '.join(_VERDICTS)}")
            return _VERDICTS[value.strip().casefold()]
        return value


class Agreement(BaseModel):
    """One rater against the people. `could_not` rows are outside the rest; counts are rater/person."""

    model_config = ConfigDict(frozen=True)

    rows: int
    could_not: int
    yes_yes: int
    yes_no: int
    no_yes: int
    no_no: int
    agreement: float | None
    ci95: tuple[float, float] | None
    kappa: float | None = Field(description="Cohen's; null where chance alone agrees always")


class Calibration(BaseModel):
    """Both raters on the same rows, and what follows."""

    model_config = ConfigDict(frozen=True)

    model: str
    rows: int
    judge: Agreement
    substring: Agreement
    better_than_substring: bool
    verdict: str


def read_rows(lines: Iterable[str]) -> list[Row]:
    """The labelled rows. Raises InvalidRequest with the line's number."""
    rows = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            rows.append(Row.model_validate(json.loads(line)))
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(str(part) for part in first["loc"])
            raise InvalidRequest(f"line {number}: {field}: {first['msg'].removeprefix('Value error, ')}") from None
        except ValueError as error:
            raise InvalidRequest(f"line {number}: not JSON: {error}") from None
    if not rows:
        raise InvalidRequest("line 1: no labelled rows; write one JSON object with claim, evidence, support a line")
    return rows


def calibrate(
    rows: list[Row], judge: Judge, model: str, progress: Callable[[int, int], None] = lambda done, total: None
) -> Calibration:
    """The judge and the substring rule against the people."""
    judged: list[tuple[bool | None, bool]] = []
    for done, row in enumerate(rows, 1):
        judged.append((judge(QUESTION, row.evidence, row.claim).says, row.support))
        progress(done, len(rows))
    found, plain = agreement(judged), agreement([(says(fold(row.evidence), row.claim), row.support) for row in rows])
    better = (found.kappa or 0) > (plain.kappa or 0) and (found.agreement or 0) > (plain.agreement or 0)
    return Calibration(
        model=model,
        rows=len(rows),
        judge=found,
        substring=plain,
        better_than_substring=better,
        verdict="The judge is better than substring matching on these rows."
        if better
        else "The judge is not better than substring matching on these rows: use --no-llm-judge, or a larger model.",
    )


def agreement(pairs: list[tuple[bool | None, bool]]) -> Agreement:
    """The table of (rater, person) verdicts and its figures."""
    counts = {(a, b): pairs.count((a, b)) for a in (True, False) for b in (True, False)}
    same = counts[True, True] + counts[False, False]
    judged = sum(counts.values())
    return Agreement(
        rows=len(pairs),
        could_not=len(pairs) - judged,
        yes_yes=counts[True, True],
        yes_no=counts[True, False],
        no_yes=counts[False, True],
        no_no=counts[False, False],
        agreement=same / judged if judged else None,
        ci95=wilson(Count(same, judged)) if judged else None,
        kappa=cohen_kappa(counts[True, True], counts[True, False], counts[False, True], counts[False, False])
        if judged
        else None,
    )
