"""Kept runs of an eval set, from the store's rows to the records that are compared, and back."""

import json
from typing import TYPE_CHECKING

from libraryfs.evals.drift import Fingerprint, Observation, RunRecord, Verdict
from libraryfs.evals.matching import fold
from libraryfs.evals.report import RunPoint
from libraryfs.evals.statistics import has_drifted, wilson
from libraryfs.rows import iso
from libraryfs.store import evals as store
from libraryfs.store.workspace import Item

if TYPE_CHECKING:
    import apsw


def load(db: "apsw.Connection", ino: int) -> list[RunRecord]:
    """The kept runs of a set, oldest first, each with its verdicts."""
    known: dict[tuple[str, str], Verdict] = {}
    return [_record(db, run, known) for run in store.every(db, ino)]


def previous(item: Item, kept: list[RunRecord]) -> RunRecord | None:
    """What the next run is compared with: the rate in the item's metadata, with the verdicts of its run if kept."""
    rate = store.stored_rate(item.metadata)
    last = kept[-1] if kept else None
    if rate is None or (last is not None and last.count == (rate.passed, rate.total)):
        return last
    return RunRecord(at=rate.at, passed=rate.passed, total=rate.total)


def points(runs: list[RunRecord]) -> tuple[RunPoint, ...]:
    """The runs as points of a curve."""
    found: list[RunPoint] = []
    for index, run in enumerate(runs):
        found.append(
            RunPoint(
                run=run.run,
                at=run.at,
                passed=run.passed,
                total=run.total,
                errors=run.errors,
                pass_rate=run.count.rate,
                ci95=wilson(run.count),
                drift=index > 0 and has_drifted(runs[index - 1].count, run.count),
                pinned=run.pinned,
            )
        )
    return tuple(found)


def to_store(record: RunRecord, at_ns: int) -> store.NewRun:
    """The record as rows."""
    assert record.fingerprint is not None
    return store.NewRun(
        at_ns=at_ns,
        passed=record.passed,
        total=record.total,
        errors=record.errors,
        fingerprint=record.fingerprint.model_dump_json(),
        verdicts=[
            store.StoredVerdict(_definition(verdict), verdict.outcome, _share(verdict.observed))
            for verdict in record.verdicts
        ],
    )


def _share(observed: Observation | None) -> tuple[int, int, str] | None:
    return None if observed is None else (observed.matched, observed.possible, observed.draw)


def _definition(verdict: Verdict) -> str:
    return json.dumps([verdict.question, verdict.expected, verdict.asked], ensure_ascii=False)


def _record(db: "apsw.Connection", run: store.Run, known: dict[tuple[str, str], Verdict]) -> RunRecord:
    verdicts = []
    for definition, outcome, share in store.verdicts(db, run.id):
        if (definition, outcome) not in known:
            question, expected, asked = json.loads(definition)
            known[definition, outcome] = Verdict.model_validate(
                {"key": fold(question), "question": question, "expected": expected, "asked": asked, "outcome": outcome}
            )
        verdict = known[definition, outcome]
        if share is not None:
            matched, possible, draw = share
            observed = Observation(matched=matched, possible=possible, draw=draw)
            verdict = verdict.model_copy(update={"observed": observed})
        verdicts.append(verdict)
    return RunRecord(
        run=run.number,
        at=iso(run.at_ns),
        passed=run.passed,
        total=run.total,
        errors=run.errors,
        pinned=run.pinned,
        fingerprint=Fingerprint.model_validate_json(run.fingerprint),
        verdicts=tuple(verdicts),
    )
