#!/usr/bin/env python3
"""A public question set as an eval set: its rate, time and calls to the judge, beside judging every fragment.

    scripts/bench/eval.py                       100 questions of XQuAD, English
    scripts/bench/eval.py --set xquad-de --questions 50
    scripts/bench/eval.py --power 1000          no models: what the tests of a change show, by simulation

`--data` holds questions/<set>/{documents,questions}.jsonl. Everything runs through the product: import, embedding, the
runner of `libraryfs eval`. The cost without the short cut is measured on the same answers: the judge is asked about
each fragment, also those that the answer holds word for word.
"""

import json
import tempfile
import time
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from libraryfs.cli.main import run as libraryfs
from libraryfs.cli.models import models
from libraryfs.evals import noise, paired, request, session
from libraryfs.evals.judge import ModelJudge
from libraryfs.evals.report import EvalReport
from libraryfs.evals.statistics import Count, direction, has_drifted, is_significant
from libraryfs.models.cancel import Cancel

RING = "/ring/bench"
PRINCIPAL = "bench"
SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
out = Console(width=120)


def lines(path: Path) -> list[dict[str, Any]]:
    """The rows of a JSON Lines file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def eval_set(questions: list[dict[str, Any]], wanted: int) -> str:
    """The first `wanted` questions, each with its first gold answer, as an eval set."""
    parts: dict[str, str] = {}
    for row in questions:
        question, answer = (" ".join(str(text).split()) for text in (row["question"], row["answers"][0]))
        parts.setdefault(question.casefold(), f"## {question}\n\n- {answer}\n")
        if len(parts) == wanted:
            break
    return "\n".join(parts.values())


def fill(folder: Path, source: Path, wanted: int) -> Path:
    """A snapshot of the documents and the eval set, embedded."""
    rows = [
        {
            "store": "memory",
            "namespace": RING,
            "id": row["id"],
            "memory_type": "resource",
            "title": f"{row['title']} {row['id']}",
            "content": row["text"],
        }
        for row in lines(source / "documents.jsonl")
    ]
    item = {"store": "workspace", "namespace": RING, "id": "eval-set", "name": "eval-set.md"}
    rows.append({**item, "content": eval_set(lines(source / "questions.jsonl"), wanted)})
    file = folder / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    snapshot = folder / "library.db"
    for command in (["import", str(file), "--no-embed"], ["grant", PRINCIPAL, RING], ["embed"]):
        code = libraryfs(["--snapshot", str(snapshot), *command])
        assert code == 0, command
    return snapshot


def measured(snapshot: Path, *, llm_judge: bool) -> tuple[EvalReport, float]:
    """A run that keeps and reuses no answer, and its seconds; the models are loaded before the clock starts."""
    asked = request.build({"llm_judge": llm_judge, "cache": False})
    with models() as chosen:
        if chosen.language_model is not None:
            ModelJudge(chosen.language_model, Cancel())("Is it?", "It is.", "yes")
        if chosen.embedder is not None:
            chosen.embedder.embed(["warm"], Cancel())
        start = time.monotonic()
        report = session.run(snapshot, PRINCIPAL, RING, asked, chosen)
        return report, time.monotonic() - start


def judge_everything(report: EvalReport) -> tuple[int, float]:
    """Calls and seconds of a judge that is asked about every fragment of every answer."""
    with models() as chosen:
        assert chosen.language_model is not None
        judge = ModelJudge(chosen.language_model, Cancel())
        judge("Is it?", "It is.", "yes")
        judge.calls = 0
        start = time.monotonic()
        for question in report.questions:
            for fragment in question.fragments if question.answer else ():
                judge(question.question, question.answer or "", fragment.fragment)
        return judge.calls, time.monotonic() - start


def disagreeing(flip_rate: float) -> float:
    """The chance of the rarer verdict of a question two runs of which disagree with the chance `flip_rate`."""
    return float((1 - np.sqrt(1 - 2 * flip_rate)) / 2)


class Alarms(NamedTuple):
    """Shares of simulated runs in which each test says that the set fell."""

    rule: float
    mcnemar: float
    paired: float


def simulated(questions: int, repeats: int, pooled: int, drop: float, trials: int, seed: int = 1) -> Alarms:
    """Runs of a set of which 80 % of questions are usually right, and two runs disagree on 10 %.

    `drop`: that share of the questions turns from usually right to usually wrong. One fragment a question.
    """
    random = np.random.default_rng(seed)
    rare = disagreeing(noise.ASSUMED_FLIP_RATE)
    rule = tested = shown = 0
    for _ in range(trials):
        right = random.random(questions) < 0.8
        chance = np.where(right, 1 - rare, rare)
        fallen = chance.copy()
        usually = np.flatnonzero(right)
        wanted = min(len(usually), round(drop * questions / (1 - 2 * rare)))
        fallen[random.choice(usually, size=wanted, replace=False)] = rare
        before = [random.binomial(repeats, chance) for _ in range(pooled)]
        now = random.binomial(repeats, fallen)
        last, this = 2 * before[0] > repeats, 2 * now > repeats
        counts = Count(int(last.sum()), questions), Count(int(this.sum()), questions)
        rule += has_drifted(*counts) and direction(*counts) == "down"
        worse, better = int((last & ~this).sum()), int((~last & this).sum())
        tested += is_significant(worse, better) and worse > better
        rows = [
            paired.Shares(Fraction(int(now[i]), repeats), tuple(Fraction(int(run[i]), repeats) for run in before))
            for i in range(questions)
        ]
        shown += paired.test(rows).p_drop < paired.SIGNIFICANT
    return Alarms(rule / trials, tested / trials, shown / trials)


def power(trials: int) -> None:
    """Prints how often each test cries wolf, shows a drop of 10 points, and shows the drop that a report names."""
    title = f"{trials} simulated runs a cell; two runs of a question disagree on 10 %"
    columns = ("questions", "repeats", "runs before", "nothing changed", "10 points", "report names", "… shown in")
    table = Table(*columns, title=title, caption="rule / McNemar / paired test; the last column: paired test")
    for questions, repeats, pooled in ((100, 1, 1), (100, 3, 1), (100, 3, 5), (20, 1, 1), (20, 3, 1), (20, 3, 5)):
        named = paired.detectable_drop(questions, repeats, pooled, noise.ASSUMED_FLIP_RATE) or 1.0
        nothing, ten, at_named = (simulated(questions, repeats, pooled, drop, trials) for drop in (0.0, 0.1, named))
        cells = (" / ".join(f"{share:.2f}" for share in found) for found in (nothing, ten))
        row = (str(questions), str(repeats), str(pooled), *cells, f"{100 * named:.0f} points", f"{at_named.paired:.2f}")
        table.add_row(*row)
    out.print(table)


@click.command()
@click.option(
    "--power", "trials", type=int, metavar="TRIALS", help="Simulate the tests of a change, TRIALS runs a cell."
)
@click.option("--set", "name", default="xquad-en", show_default=True)
@click.option("--questions", default=100, show_default=True)
@click.option("--data", type=click.Path(exists=True, path_type=Path), default=SHARED)
def main(name: str, questions: int, data: Path, trials: int | None) -> None:
    """Prints one table."""
    if trials is not None:
        power(trials)
        return
    with tempfile.TemporaryDirectory() as folder:
        snapshot = fill(Path(folder), data / "questions" / name, questions)
        plain, plain_seconds = measured(snapshot, llm_judge=False)
        judged, judged_seconds = measured(snapshot, llm_judge=True)
        calls, seconds = judge_everything(judged)
    table = Table("", "passed", "rate", "seconds", "judge calls", title=f"{name}: {len(plain.questions)} questions")
    cells = (
        ("substring only", plain, plain_seconds, 0),
        ("judge where substring found nothing", judged, judged_seconds, judged.trace.judge_calls),
    )
    for words, report, spent, number in cells:
        passed = f"{report.passed}/{report.total}"
        table.add_row(words, passed, f"{report.pass_rate or 0:.2f}", f"{spent:.1f}", str(number))
    table.add_row("judge for every fragment", "", "", f"{plain_seconds + seconds:.1f}", str(calls))
    out.print(table)
    out.print(f"models: {judged.trace.models}")
    misses = [question.miss for question in plain.questions if question.outcome == "failed"]
    out.print(f"misses: retrieval {misses.count('retrieval')}, answer {misses.count('answer')}; errors {plain.errors}")
    fragments = [fragment for question in judged.questions for fragment in question.fragments]
    found, unclear = sum(one.how == "judge" for one in fragments), sum(one.matched is None for one in fragments)
    out.print(f"fragments that only the judge found: {found}; that it could not judge: {unclear}")


if __name__ == "__main__":
    main()
