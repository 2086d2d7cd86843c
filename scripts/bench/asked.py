#!/usr/bin/env python3
"""Answers to questions as people ask them, through the product's own pipeline; no language model. One table in one run.

    scripts/bench/asked.py --snapshots FOLDER          keeps the snapshots there; a second run embeds nothing
    scripts/bench/asked.py --own FOLDER                the own questions too, over FOLDER/jj, … (data/README.md)
    scripts/bench/asked.py --write PAGE           puts the table between the bench:asked markers

Thresholds were fitted on questions of even place in their set; the column `held` has those of odd place.
"""

import json
import re
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click
import retrieval as sets
from answers import MAX_WORDS, Knowing, normal
from ask import CLAPNQ, bars
from markers import write_between

from libraryfs.ask import request
from libraryfs.ask.pipeline import Models, ask
from libraryfs.ask.result import AskResult, Citation
from libraryfs.ask.sentences import words
from libraryfs.ingest.importer import import_source
from libraryfs.library.resolver import Library
from libraryfs.models import factory
from libraryfs.models.protocols import Embedder
from libraryfs.settings import settings
from libraryfs.store.snapshot import Snapshot

RINGS = {
    "libraryfs": "asked/rings/libraryfs",
    "rfcs": "asked/rings/rfcs",
    "keps": "asked/rings/keps",
    "opentelemetry": "rings/opentelemetry",
    "python": "rings/python",
}
OWN = ("jj", "datasette", "runbooks")
OWN_QUESTIONS = Path(__file__).parent / "data" / "own.jsonl"
MAX_ANSWER_WORDS, MAX_BLOCKS = 160, 3
out = sets.out


class Asked(NamedTuple):
    """A question of a set, its place there, what was answered, and the seconds that it took."""

    set: str
    place: int
    row: dict[str, Any]
    result: AskResult
    seconds: float
    wrong_quotes: int

    @property
    def answerable(self) -> bool:
        """Whether the files hold the answer."""
        return bool(self.row.get("answerable", True))

    @property
    def shown(self) -> tuple[Citation, ...]:
        """The blocks that the reader sees."""
        return self.result.nearest or tuple(one for one in self.result.citations if self.in_answer(one))

    def in_answer(self, cited: Citation) -> bool:
        """Whether the answer shows what is cited; of a superseded file it does not."""
        return cited.quote in str(self.result.answer or "")

    @property
    def nowhere(self) -> bool:
        """Told "not in the library"."""
        return self.result.answer is None and not self.result.nearest


def holds(text: str, fragments: Sequence[str]) -> bool:
    """Whether a text has all fragments, case and runs of white space apart."""
    plain = " ".join(text.casefold().split())
    return all(" ".join(one.casefold().split()) in plain for one in fragments)


def answered(one: Asked, blocks: int) -> bool:
    """All labelled fragments in the answer's first blocks, of at most MAX_ANSWER_WORDS words."""
    if one.result.answer is None or len(one.shown) > MAX_BLOCKS or words(str(one.result.answer)) > MAX_ANSWER_WORDS:
        return False
    text = str(one.result.answer) if blocks == MAX_BLOCKS else "\n".join(c.text for c in one.shown[:blocks])
    return holds(text, one.row["fragments"])


def seen(one: Asked) -> bool:
    """All labelled fragments in what is shown, as an answer or as the nearest passages."""
    return holds("\n".join(block.text for block in one.shown), one.row["fragments"])


def gold_share(one: Asked, text: str) -> float:
    """The share of the gold answer's words in a text."""
    gold = set(re.findall(r"\w+", one.row["answers"][0].casefold()))
    got = set(re.findall(r"\w+", text.casefold()))
    return len(gold & got) / max(1, len(gold))


def in_sentence(one: Asked) -> bool:
    """The gold answer in the sentence marked, of at most MAX_WORDS words."""
    sentence = " ".join((one.result.sentence or "").split()[:MAX_WORDS])
    return one.result.answer is not None and any(normal(gold) in normal(sentence) for gold in one.row["answers"])


def correct(one: Asked) -> bool:
    """Whether what is shown holds the answer, for the reliability table."""
    if not one.answerable:
        return False
    if "fragments" in one.row:
        return seen(one)
    text = normal(" ".join(block.text for block in one.shown))
    if one.set == "XQuAD":
        return any(normal(gold) in text for gold in one.row["answers"])
    gold = set(normal(one.row["answers"][0]).split())
    return len(gold & set(text.split())) >= 0.5 * len(gold)


class Bench:
    """Asks the questions of each set once."""

    def __init__(self, folder: Path, data: Path, own: Path | None, embedder: Embedder) -> None:
        self.folder = folder
        self.data = data
        self.own = own
        self.embedder = embedder

    def snapshot(self, name: str, rings: dict[str, Path], documents: Sequence[str] = ()) -> Path:
        """A snapshot with these rings and sets, made where it is not there yet."""
        path = self.folder / f"{name}.db"
        if path.exists():
            rings, documents = {}, ()
        with Snapshot.open(path, create=True) as opened, tempfile.TemporaryDirectory() as scratch:
            for ring, source in rings.items():
                import_source(opened, source, f"/ring/{ring}", sets.ME)
            for one in documents:
                sets.bring(opened, self.data, one, Path(scratch))
            if documents:
                both = Path(scratch) / "clapnq.jsonl"
                plain = [
                    row for name in CLAPNQ for row in sets.lines(self.data / "questions" / name / "documents.jsonl")
                ]
                fields = {"store": "memory", "memory_type": "semantic"}
                lines = [{**fields, "id": r["id"], "title": r["title"], "content": r["text"]} for r in plain]
                both.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
                import_source(opened, both, "/ring/clapnq", sets.ME)
            sets.embed(opened, self.embedder)
        return path

    def ask_all(self, name: str, path: Path, rows: Sequence[dict[str, Any]], models: Models) -> list[Asked]:
        """Each question of a set, asked of its ring; the first one twice, since models load with it."""
        found = []
        with Snapshot.open(path) as opened:
            library = Library(opened, sets.ME)
            self._ask(library, rows[0], models)
            for place, row in enumerate(bars(rows, name)):
                began = time.perf_counter()
                result = self._ask(library, row, models)
                seconds = time.perf_counter() - began
                assert result.error is None, result.error
                found.append(Asked(name, place, row, result, seconds, self._wrong(library, result)))
        return found

    def _ask(self, library: Library, row: dict[str, Any], models: Models) -> AskResult:
        made = request.build({"question": row["question"], "paths": [f"/ring/{row['corpus']}"]})
        return ask(library, models, made)

    def _wrong(self, library: Library, result: AskResult) -> int:
        """Quotes, and lead-ins, that are not in the file that they name, byte for byte and at the line named."""
        wrong = 0
        for cited in (*result.citations, *(result.nearest or ())):
            content = library.content(library.resolve(cited.path))
            start = content.find(cited.quote.encode())
            lines = {content.count(b"\n", 0, at) + 1 for at in _places(content, cited.quote.encode())}
            wrong += start < 0 or cited.line not in lines or (cited.lead or "").encode() not in content
        return wrong


def _places(content: bytes, quote: bytes) -> list[int]:
    return [found.start() for found in re.finditer(re.escape(quote), content)]


def row(measure: str, goal: str, some: Sequence[Asked], value: Callable[[Asked], float]) -> None:
    """One line: of all questions, and of those of odd place, on which nothing was fitted."""
    odd = [one for one in some if one.place % 2]
    figures = [f"{statistics.fmean(map(value, part)):.3f} of {len(part)}" if part else "" for part in (some, odd)]
    out.print(f"| {measure} | {figures[0]} | {figures[1]} | {goal} |", soft_wrap=True)


def table(asked: Sequence[Asked], knowing: Sequence[Asked]) -> None:
    """All measures."""
    out.print("| measure | all | held | to reach |\n|---|---|---|---|")

    def of(name: str, answerable: bool) -> list[Asked]:
        return [one for one in asked if one.set == name and one.answerable == answerable]

    for name, goals in (("asked", ("≥ 0.75", "≥ 0.55", "≤ 0.05")), ("own questions", ("", "", ""))):
        some = of(name, True)
        if not some:
            continue
        row(
            f"{name}: all fragments in the answer, ≤ 3 blocks, ≤ 160 words",
            goals[0],
            some,
            lambda one: answered(one, 3),
        )
        row(f"{name}: the same in what is shown, nearest passages too", goals[0], some, seen)
        row(
            f"{name}: all fragments in the first block shown",
            goals[1],
            some,
            lambda one: bool(one.shown) and holds(one.shown[0].text, one.row["fragments"]),
        )
        row(f"{name}: answerable, told “not in the library”", goals[2], some, lambda one: one.nowhere)
    un = [one for one in asked if not one.answerable]
    row(
        "unanswerable, all sets: told so, or shown as nearest only", "≥ 0.80", un, lambda one: one.result.answer is None
    )
    for name in ("asked", "own questions", "ClapNQ"):
        if some := of(name, False):
            row(f"… {name}", "", some, lambda one: one.result.answer is None)
    row(
        "answerable, all sets: in those bands",
        "≤ 0.25",
        [one for one in asked if one.answerable],
        lambda one: one.result.answer is None,
    )
    for name in ("asked", "own questions", "ClapNQ", "XQuAD"):
        if some := of(name, True):
            row(f"… {name}", "", some, lambda one: one.result.answer is None)
    clapnq = of("ClapNQ", True)
    share = "ClapNQ: share of the gold answer's words in"
    row(
        f"{share} the answer (0 without one)",
        "≥ 0.75",
        clapnq,
        lambda one: gold_share(one, str(one.result.answer or "")),
    )
    row(f"{share} what is shown", "≥ 0.75", clapnq, lambda one: gold_share(one, "\n".join(c.text for c in one.shown)))
    row("XQuAD en: gold in the sentence marked, ≤ 40 words", "≥ 0.75", of("XQuAD", True), in_sentence)
    row("quotes and lead-ins not in the cited file at their line", "0", asked, lambda one: one.wrong_quotes)
    row(
        "a model that knows: fragments held",
        "≥ 0.93",
        knowing,
        lambda one: holds(str(one.result.answer or ""), one.row["fragments"]),
    )


def lengths(asked: Sequence[Asked]) -> None:
    """How long answers are, and how long they take."""
    answers = [words(str(one.result.answer)) for one in asked if one.result.answer is not None]
    out.print(f"| words of an answer, median | {statistics.median(answers):.0f} | | ≤ 160 |")
    out.print(f"| warm answer, median s | {statistics.median(one.seconds for one in asked):.3f} | | ≤ 0.35 |")


def reliability(asked: Sequence[Asked]) -> None:
    """How often what is shown holds the answer, by the confidence that went with it; questions of odd place."""
    out.print("\n| confidence | questions | mean confidence | held |\n|---|---|---|---|")
    held = [one for one in asked if one.place % 2 and one.result.confidence is not None]
    for tenth in range(10):
        some = [one for one in held if min(9, int((one.result.confidence or 0) * 10)) == tenth]
        if some:
            mean = statistics.fmean(one.result.confidence or 0 for one in some)
            right = statistics.fmean(correct(one) for one in some)
            out.print(f"| {tenth / 10:.1f} to {(tenth + 1) / 10:.1f} | {len(some)} | {mean:.2f} | {right:.2f} |")


@click.command()
@click.option(
    "--data", type=click.Path(path_type=Path), default=sets.SHARED, help="Folder with asked/, questions/, rings/."
)
@click.option("--snapshots", type=click.Path(path_type=Path), help="Keep the snapshots in this folder.")
@click.option("--own", type=click.Path(path_type=Path, exists=True), help="Folder with the own questions' collections.")
@click.option("--write", type=click.Path(path_type=Path, exists=True), help="A Markdown file with bench:asked markers.")
def main(data: Path, snapshots: Path | None, own: Path | None, write: Path | None) -> None:
    """Print the table."""
    embedder = factory.embedder(settings())
    if embedder is None:
        raise click.UsageError("LIBRARYFS_EMBEDDER must name a model")
    with tempfile.TemporaryDirectory() as scratch:
        bench = Bench(snapshots or Path(scratch), data, own, embedder)
        questions = bench.snapshot("questions", {}, ("xquad-en",))
        collections = bench.snapshot("asked", {ring: data / path for ring, path in RINGS.items()})
        mine = bench.snapshot("own", {ring: own / ring for ring in OWN}) if own else None
        models = Models(embedder, None)
        rows = sets.lines(data / "asked" / "questions.jsonl")
        out.export_text()  # what was said so far is no table
        asked = bench.ask_all("asked", collections, rows, models)
        if mine:
            asked += bench.ask_all("own questions", mine, sets.lines(OWN_QUESTIONS), models)
        asked += bench.ask_all("ClapNQ", questions, _clapnq(data), models)
        asked += bench.ask_all("XQuAD", questions, _xquad(data), models)
        knows = [row for row in rows if row["answerable"]]
        knowing = bench.ask_all("a model that knows", collections, knows, Models(embedder, Knowing(knows)))
        table(asked, knowing)
        lengths(asked)
        reliability(asked)
    if write:
        write_between(write, "bench:asked", "\n".join(line.rstrip() for line in out.export_text().splitlines()))


def _clapnq(data: Path) -> list[dict[str, Any]]:
    every = []
    for name in CLAPNQ:
        for row in sets.lines(data / "questions" / name / "questions.jsonl"):
            every.append({**row, "corpus": "clapnq", "answerable": name == CLAPNQ[0]})
    return every


def _xquad(data: Path) -> list[dict[str, Any]]:
    every = sets.lines(data / "questions" / "xquad-en" / "questions.jsonl")
    return [{**every[len(every) * n // 200], "corpus": "xquad-en"} for n in range(200)]


if __name__ == "__main__":
    try:
        main()
    finally:
        factory.close()
