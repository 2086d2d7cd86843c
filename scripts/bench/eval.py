#!/usr/bin/env python3
"""A public question set as an eval set: its rate, time and calls to the judge, beside judging every fragment.

    scripts/bench/eval.py                       100 questions of XQuAD, English
    scripts/bench/eval.py --set xquad-de --questions 50

`--data` holds questions/<set>/{documents,questions}.jsonl. Everything runs through the product: import, embedding, the
runner of `libraryfs eval`. The cost without the short cut is measured on the same answers: the judge is asked about
each fragment, also those that the answer holds word for word.
"""

import json
import tempfile
import time
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from libraryfs.cli.main import run as libraryfs
from libraryfs.cli.models import models
from libraryfs.evals import request, session
from libraryfs.evals.judge import ModelJudge
from libraryfs.evals.report import EvalReport
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


@click.command()
@click.option("--set", "name", default="xquad-en", show_default=True)
@click.option("--questions", default=100, show_default=True)
@click.option("--data", type=click.Path(exists=True, path_type=Path), default=SHARED)
def main(name: str, questions: int, data: Path) -> None:
    """Prints one table."""
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
