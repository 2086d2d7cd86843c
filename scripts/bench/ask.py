#!/usr/bin/env python3
"""Answers on public question sets, through the product's own pipeline, beside the naive one. One table in one run.

    scripts/bench/ask.py                            all of it; minutes
    scripts/bench/ask.py --questions 40             40 questions of each set, evenly spaced
    scripts/bench/ask.py --only answers,refusals    some rows: retrieval, answers, refusals, superseded, …
    scripts/bench/ask.py --snapshot bench.db        keeps the snapshot; a second run embeds nothing
    scripts/bench/ask.py --write PAGE          puts the tables between the bench:ask markers

`--data` holds questions/<set>/{documents,questions}.jsonl and rings/python.
"""

import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import claims
import click
import retrieval as sets
from answers import Naive, Oracle, Scored, score
from markers import write_between
from rich.console import Console
from rich.progress import track

from libraryfs.ask import exam, request
from libraryfs.ask.graph import Graph
from libraryfs.ask.pipeline import Models, ask
from libraryfs.ask.result import AskResult, EvidenceFound
from libraryfs.ingest.importer import import_source
from libraryfs.library.resolver import Library
from libraryfs.models import factory
from libraryfs.models.cancel import Cancel
from libraryfs.settings import settings
from libraryfs.store import edges, memory
from libraryfs.store.snapshot import Snapshot

PARTS = ("retrieval", "answers", "refusals", "superseded", "claims", "times", "mount")
CLAPNQ = ("clapnq-answerable", "clapnq-unanswerable")
DEV = 50
"""The first questions of each ClapNQ set: the refusal was fitted on them. The next 100 of each are measured."""
out = sets.out


class Bench:
    """The snapshot with all sets in it, and the models."""

    def __init__(self, snapshot: Snapshot, data: Path, models: Models, questions: int) -> None:
        self.library = Library(snapshot, sets.ME)
        self.data = data
        self.models = models
        self.questions = questions

    def rows(self, name: str, first: int = 0, most: int | None = None) -> list[dict[str, Any]]:
        """Questions of a set; of more than asked for, evenly spaced ones: neighbours are about the same paragraph."""
        every = sets.lines(self.data / "questions" / name / "questions.jsonl")[first:][:most]
        wanted = min(self.questions, len(every))
        return [every[len(every) * n // wanted] for n in range(wanted)]

    def ask(
        self, question: str, ring: str, models: Models | None = None, **options: Any
    ) -> tuple[AskResult, float, float]:
        """The result, seconds to the evidence, seconds to the answer."""
        made = request.build({"question": question, "paths": [f"/ring/{ring}"], **options})
        began = time.perf_counter()
        evidence: list[float] = []

        def on_event(event: object) -> None:
            if isinstance(event, EvidenceFound):
                evidence.append(time.perf_counter() - began)

        result = ask(self.library, models or self.models, made, None, on_event)
        return result, evidence[0], time.perf_counter() - began

    def wrong_quotes(self, result: AskResult) -> list[str]:
        """Citations whose quote is not in the file that they name."""
        wrong = []
        for cited in result.citations:
            content = self.library.content(self.library.resolve(cited.path))
            if cited.quote.encode() not in content:
                wrong.append(f"{cited.path}: {cited.quote}")
        return wrong


def bars(rows: Sequence[Any], title: str) -> Iterable[Any]:
    """A progress bar over rows, on stderr."""
    return track(rows, description=title, console=Console(stderr=True))


def row(measure: str, ours: str, naive: str = "", goal: str = "") -> None:
    """One line of the table."""
    out.print(f"| {measure} | {ours} | {naive} | {goal} |", soft_wrap=True)


def answers(bench: Bench) -> None:
    """Gold answers held, token F1, times and citations on XQuAD en: ours, naive, and ours with the oracle."""
    model = bench.models.language_model
    assert model is not None
    asked = bench.rows("xquad-en")
    oracle = Oracle({one["question"]: one["answers"] for one in asked} | _exam())
    strong = Models(bench.models.embedder, oracle)  # type: ignore[arg-type]
    naive = Naive(bench.library, _embedder(bench), model)
    scope = bench.library.resolve("/ring/xquad-en")
    bench.ask("What is warmed up?", "xquad-en")
    got: dict[str, list[Scored]] = {"ours": [], "naive": [], "oracle": []}
    wrong: list[str] = []
    evidence, cited_right, first_right = [], [], []
    naive_right: list[bool] = []
    quotes = refused = 0
    for one in bars(asked, "answers"):
        result, first, seconds = bench.ask(one["question"], "xquad-en")
        refused += result.answer is None
        evidence.append(first)
        wrong += bench.wrong_quotes(result)
        quotes += len(result.citations)
        right = [cited.id in one["evidence"] for cited in result.citations]
        cited_right += right
        first_right += right[:1]
        got["ours"].append(score(str(result.answer or ""), one["answers"], seconds, [c.id for c in result.citations]))
        text, taken, sources = naive.ask(one["question"], scope)
        naive_right += [source.id in one["evidence"] for source in sources]
        got["naive"].append(score(text, one["answers"], taken, [source.id for source in sources]))
        best, _, seconds = bench.ask(one["question"], "xquad-en", strong)
        got["oracle"].append(score(str(best.answer or ""), one["answers"], seconds, [c.id for c in best.citations]))
    ours, theirs, top = (_means(got[name]) for name in ("ours", "naive", "oracle"))
    times = {name: statistics.median(one.seconds for one in some) for name, some in got.items()}
    row(f"questions, XQuAD en ({refused} refused)", f"{len(asked)}")
    row("gold answer contained, at most 40 words", _of(ours[1]), _of(theirs[1]), f"≥ {2 * theirs[1]:.3f}")
    row("token F1", _of(ours[0]), _of(theirs[0]), f"≥ {1.3 * theirs[0]:.3f}")
    row("words", f"{ours[2]:.0f}", f"{theirs[2]:.0f}")
    row("the same pipeline with a model that knows: contained, F1", f"{_of(top[1])}, {_of(top[0])}", "", "above ours")
    row("quotes found in the cited file", f"{quotes - len(wrong)} of {quotes}", "", "all")
    row("the first citation is a labelled paragraph", _of(_mean(first_right)), "", "")
    row("citation precision, all blocks", _of(_mean(cited_right)), _of(_mean(naive_right)), "above naive")
    row("full answer, median s", _of(times["ours"]), _of(times["naive"]), "below naive")
    row("first byte of evidence, median s", _of(statistics.median(evidence)), "", "≤ 0.2")
    for one in wrong:
        out.print(f"quote not found: {one}", style="red")


def refusals(bench: Bench) -> None:
    """ClapNQ over all its passages: unanswerable questions refused, answerable ones refused."""
    shares = {}
    for name in CLAPNQ:
        asked = bench.rows(name, DEV, 100)
        results = [bench.ask(one["question"], "clapnq")[0] for one in bars(asked, name)]
        assert not any(result.error or result.truncated for result in results)
        shares[name] = (sum(result.answer is None for result in results), len(results))
    (wrong, n), (right, m) = shares[CLAPNQ[0]], shares[CLAPNQ[1]]
    row(
        "unanswerable questions without an answer (ClapNQ, the nearest shown or none)",
        f"{right} of {m}",
        "0",
        f"≥ {0.7 * m:.0f}",
    )
    row("answerable questions without an answer", f"{wrong} of {n}", "0", f"≤ {0.1 * n:.0f}")


def superseded(bench: Bench) -> None:
    """Each superseded proposal asked for by its title: the current one first in the prompt and in the citations."""
    ring = bench.library.resolve("/ring/python")
    assert ring.namespace_id is not None
    db, graph = bench.library.snapshot.db, Graph(bench.library)
    prompt = cited = named = total = 0
    for edge in bars([one for one in edges.of_namespace(db, ring.namespace_id) if one.kind == "supersedes"], "PEPs"):
        old = memory.find(db, ring.namespace_id, edge.target_id)
        node = graph.node(old.ino) if old else None
        current = graph.current(node) if node else None
        if old is None or current is None:
            continue
        result, _, _ = bench.ask(old.title, "python")
        total += 1
        prompt += bool(result.evidence) and result.evidence[0].id == current.id
        cited += bool(result.citations) and result.citations[0].id == current.id
        named += any(one.id == old.id and one.superseded_by == current.id for one in result.evidence)
    goal = f"≥ {-(-42 * total // 47)}"  # rounded up
    row("superseded proposals: current one first in the prompt", f"{prompt} of {total}", "", goal)
    row("… and in the answer's citations", f"{cited} of {total}", "", goal)
    row("… the old one named as superseded", f"{named} of {total}")


def _embedder(bench: Bench) -> Any:
    assert bench.models.embedder is not None
    return bench.models.embedder


def _exam() -> dict[str, Sequence[str]]:
    return {one.question: [one.expected] for one in exam.QUESTIONS if one.expected}


def _means(some: Sequence[Scored]) -> tuple[float, float, float]:
    return (_mean([one.f1 for one in some]), _mean([one.contained for one in some]), _mean([one.words for one in some]))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _of(value: float) -> str:
    return f"{value:.3f}"


def checks(bench: Bench) -> None:
    """The claim check beside plainer ones: how many claims of each kind it lets through."""
    documents = sets.lines(bench.data / "questions" / "xquad-en" / "documents.jsonl")
    made = claims.cases(documents, bench.rows("xquad-en", most=200))
    remembered = sets.Remembering(_embedder(bench))
    every: dict[str, claims.Check] = {
        "the product's": claims.ours,
        "¾ of the terms": claims.overlap,
        "all of the terms": claims.all_terms,
        "cosine 0.6": claims.by_cosine(lambda texts: remembered.embed(texts, Cancel()), 0.6),
    }
    shares = {name: claims.let_through(check, made) for name, check in every.items()}
    out.print("\n| claims on XQuAD en let through | " + " | ".join(every) + " |\n|---|" + "---|" * len(every))
    for case in {one.kind: one for one in made}.values():
        figures = [f"{shares[name][case.kind][0]} of {shares[name][case.kind][1]}" for name in every]
        out.print(f"| {'true' if case.true else 'false'}: {case.kind} | " + " | ".join(figures) + " |", soft_wrap=True)


def mount(bench: Bench) -> None:
    """Waiting times of `stat` and of a 4 KB read in a live mount, idle and while four asks run."""
    import mount_asks

    asked = [one["question"] for one in bench.rows("xquad-en")]
    idle, busy, done = mount_asks.measure(bench.library.snapshot.path, sets.ME, asked)
    for name in ("stat", "read"):
        ratio = busy[name] / idle[name]
        row(
            f"{name} in the mount, p99 ms while 4 asks run ({done} answered)",
            f"{busy[name]:.2f}",
            f"idle {idle[name]:.2f}",
            f"{ratio:.1f} ×, ≤ 3 ×",
        )


def fill(snapshot: Snapshot, data: Path, names: Sequence[str], folder: Path, embedder: Any) -> None:
    """All sets in the snapshot, each a ring; the two of ClapNQ are one."""
    for name in names:
        sets.bring(snapshot, data, name, folder)
    both = folder / "clapnq.jsonl"
    with both.open("w", encoding="utf-8") as file:
        for name in CLAPNQ:
            for one in sets.lines(data / "questions" / name / "documents.jsonl"):
                plain = {"store": "memory", "id": one["id"], "memory_type": "semantic", "title": one["title"]}
                file.write(json.dumps({**plain, "content": one["text"]}) + "\n")
    import_source(snapshot, both, "/ring/clapnq", sets.ME)
    import_source(snapshot, data / "rings" / "python", "/ring/python", sets.ME)
    sets.embed(snapshot, embedder)


def chosen(only: str) -> Iterator[str]:
    """The parts that are asked for, in order."""
    wanted = [part for part in only.split(",") if part]
    if unknown := set(wanted) - set(PARTS):
        raise click.UsageError(f"--only {', '.join(sorted(unknown))}: the parts are {', '.join(PARTS)}")
    yield from (part for part in PARTS if part in wanted)


@click.command()
@click.option("--data", type=click.Path(path_type=Path), default=sets.SHARED, help="Folder with questions/ and rings/.")
@click.option("--questions", default=100_000, help="Questions of each set, at most.")
@click.option("--only", default=",".join(PARTS), help="Parts, comma separated.")
@click.option("--snapshot", type=click.Path(path_type=Path), help="Keep the snapshot here.")
@click.option("--counts", default="1000,100000", help="Memories for the times.")
@click.option("--write", type=click.Path(path_type=Path, exists=True), help="A Markdown file with bench:ask markers.")
def main(data: Path, questions: int, only: str, snapshot: Path | None, counts: str, write: Path | None) -> None:
    """Print the table."""
    if not (data / "questions").is_dir():
        raise click.UsageError(f"{data}: no questions/ in it; name the data folder with --data")
    now = settings()
    models = Models(factory.embedder(now), factory.language_model(now))
    if models.embedder is None or models.language_model is None:
        raise click.UsageError("LIBRARYFS_EMBEDDER and LIBRARYFS_LLM must name models")
    parts = list(chosen(only))
    names = sets.SETS if "retrieval" in parts else ("xquad-en",)
    steps: dict[str, Callable[[Bench], None]] = {
        "answers": answers,
        "refusals": refusals,
        "superseded": superseded,
        "mount": mount,
        "claims": checks,
    }
    try:
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            with Snapshot.open(snapshot or folder / "bench.db", create=True) as opened:
                fill(opened, data, names, folder, models.embedder)
                bench = Bench(opened, data, models, questions)
                out.export_text()  # what was said so far is no table
                out.print("| measure | ours | naive | to reach |\n|---|---|---|---|")
                for part in parts:
                    if part in steps:
                        steps[part](bench)
                if "retrieval" in parts:
                    out.print("\nRetrieval: the right file first, and in the top 5.\n")
                    own = [name for name in sets.SETS if name not in ("asked", "paraphrases", "python")]
                    asked = {name: sets.asked_of(data, name, "all", questions) for name in own}
                    sets.quality(bench.library, sets.Remembering(models.embedder), asked)
            if "times" in parts:
                out.print("\nTime to the evidence, ms.\n")
                out.print("| memories | embedding, ms | embedding + raw query | ring | section | ring / raw (paired) |")
                out.print("|---|---|---|---|---|---|")
                for count in counts.split(","):
                    sets.times(models.embedder, int(count), folder)
        if write:
            write_between(write, "bench:ask", "\n".join(line.rstrip() for line in out.export_text().splitlines()))
    finally:
        factory.close()


if __name__ == "__main__":
    main()
