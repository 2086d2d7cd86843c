#!/usr/bin/env python3
"""Retrieval on public question sets, through the product's own import, embedding and retrieval.

    scripts/bench/retrieval.py                         right file first, and in the top 5: by vector, keywords, hybrid
    scripts/bench/retrieval.py --half odd              the half of the questions on which nothing was fitted
    scripts/bench/retrieval.py --snapshot bench.db     keeps the snapshot; a second run embeds nothing
    scripts/bench/retrieval.py --only times            search time at 1,000 and 100,000 memories beside a raw query

`--data` holds questions/<set>/{documents,questions}.jsonl, rings/ and asked/; the paraphrases are beside this file.
"""

import json
import re
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import click
import numpy as np
from rich.console import Console
from rich.progress import Progress, TextColumn

from libraryfs.ask.graph import Graph
from libraryfs.ask.retrieval import Retrieval, retrieve
from libraryfs.ingest.embed import embed_missing
from libraryfs.ingest.importer import import_source
from libraryfs.library.resolver import Library
from libraryfs.models import factory
from libraryfs.models.cancel import Cancel
from libraryfs.models.protocols import Embedder, Vectors
from libraryfs.rows import MemoryRow
from libraryfs.settings import settings
from libraryfs.store import access, bodies, edges, keywords, memory, namespaces, texts, vectors
from libraryfs.store.snapshot import Snapshot

SETS = (
    *("xquad-en", "xquad-de", "xquad-zh", "clapnq-answerable", "covidqa", "scifact"),
    *("asked", "paraphrases", "python"),
)
ASKED = ("libraryfs", "opentelemetry", "python", "rfcs", "keps")
PARAPHRASES = Path(__file__).resolve().parent / "data" / "paraphrases.jsonl"
SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
ME = "bench"
out = Console(width=130, record=True)


class Remembering:
    """An embedder that embeds one text once: three ways of retrieval ask the same questions."""

    def __init__(self, inner: Embedder) -> None:
        self._inner = inner
        self._known: dict[str, Vectors] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def embed(self, texts: Sequence[str], cancel: Cancel) -> Vectors:
        new = list(dict.fromkeys(text for text in texts if text not in self._known))
        if new:
            self._known.update(zip(new, self._inner.embed(new, cancel), strict=True))
        return np.stack([self._known[text] for text in texts])


def lines(path: Path) -> list[dict[str, Any]]:
    """The rows of a .jsonl file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def bring(snapshot: Snapshot, data: Path, name: str, folder: Path) -> None:
    """Import a set's documents as memories of the ring of its name, or one of the asked collections."""
    if name in ASKED:
        import_source(snapshot, ring_folder(data, name), f"/ring/{name}", ME)
        return
    rows = folder / f"{name}.jsonl"
    with rows.open("w", encoding="utf-8") as file:
        for row in lines(data / "questions" / name / "documents.jsonl"):
            shown = {"title": row["title"], "content": row["text"]}
            memory_row = {"store": "memory", "id": row["id"], "memory_type": "semantic", **shown}
            file.write(json.dumps(memory_row) + "\n")
    import_source(snapshot, rows, f"/ring/{name}", ME)


def embed(snapshot: Snapshot, embedder: Embedder) -> None:
    """Vectors for what has none."""
    with Progress(
        *Progress.get_default_columns(), TextColumn("{task.completed}/{task.total}"), console=Console(stderr=True)
    ) as bars:
        task = bars.add_task("embed", total=None)
        report = embed_missing(
            snapshot, embedder, Cancel(), lambda _, done, total: bars.update(task, completed=done, total=total)
        )
    out.print(
        f"embedded {report.files} files, {report.chunks} chunks, {report.seconds:.0f} s, {report.rate:.0f}/s", report
    )


class Asked(NamedTuple):
    """A question, the ring that it is asked to, and the ids of the files that hold its answer."""

    question: str
    ring: str
    evidence: frozenset[str]


def asked_of(data: Path, name: str, half: str, limit: int) -> list[Asked]:
    """The answerable questions of a set; `asked` and `paraphrases` are asked to five rings."""
    if name in ("asked", "paraphrases"):
        file = PARAPHRASES if name == "paraphrases" else data / "asked" / "questions.jsonl"
        every = [
            Asked(row["question"], row["corpus"], frozenset(_ids(data, row["corpus"], row["evidence"])))
            for row in lines(file)
            if row["evidence"]
        ]
    else:
        file = data / "questions" / name / "questions.jsonl"
        every = [Asked(row["question"], name, frozenset(row["evidence"])) for row in lines(file) if row["evidence"]]
    return every[{"all": 0, "even": 0, "odd": 1}[half] :: 1 if half == "all" else 2][:limit]


def ring_folder(data: Path, ring: str) -> Path:
    """The folder of one of the asked collections."""
    own = data / "asked" / "rings" / ring
    return own if own.is_dir() else data / "rings" / ring


def _ids(data: Path, ring: str, files: Sequence[str]) -> Iterator[str]:
    """The ids that an import gives to these files: the front matter's, or the path."""
    for file in files:
        text = (ring_folder(data, ring) / file).read_text(encoding="utf-8", errors="replace")
        found = re.search(r"^id: *(\S+)$", text[:600], re.MULTILINE)
        yield found[1] if found else file


class Hits(NamedTuple):
    """Shares of the questions: the right file first, and among the five; and where words led."""

    first: float
    five: float
    led: float


def hits(library: Library, embedder: Embedder | None, asked: Sequence[Asked], mode: str) -> Hits:
    """What one way of retrieval finds."""
    first = five = led = 0
    for one in asked:
        ring = library.resolve(f"/ring/{one.ring}")
        found = retrieve(library, embedder, one.question, [ring], retrieval=mode)  # type: ignore[arg-type]
        right = [item.id in one.evidence for item in found.evidence[:5]]
        first += any(right[:1])
        five += any(right)
        led += found.words_lead
    count = max(1, len(asked))
    return Hits(first / count, five / count, led / count)


def quality(library: Library, embedder: Embedder, asked: dict[str, list[Asked]]) -> None:
    """The table of the question sets."""
    out.print("| set | questions | vector | keywords | hybrid | hybrid − keywords, first | words led |")
    out.print("|---|---|---|---|---|---|---|")
    for name, some in asked.items():
        near, words, both = (
            hits(library, model, some, mode)
            for model, mode in ((embedder, "vector"), (None, "hybrid"), (embedder, "hybrid"))
        )
        shown = " | ".join(f"{one.first:.3f}, {one.five:.3f}" for one in (near, words, both))
        out.print(f"| {name} | {len(some)} | {shown} | {both.first - words.first:+.3f} | {both.led:.2f} |")


def superseded(library: Library, embedder: Embedder) -> None:
    """Each superseded proposal asked for by its title: whether the current one is the first in the evidence."""
    db, ring = library.snapshot.db, library.resolve("/ring/python")
    namespace_id = ring.namespace_id
    assert namespace_id is not None
    graph = Graph(library)
    first = total = old_found = 0
    missed = []
    for edge in edges.of_namespace(db, namespace_id):
        old = memory.find(db, namespace_id, edge.target_id) if edge.kind == "supersedes" else None
        node = graph.node(old.ino) if old else None
        current = graph.current(node) if node else None
        if old is None or current is None or memory.find(db, namespace_id, edge.source_id) is None:
            continue
        found: Retrieval = retrieve(library, embedder, old.title, [ring])
        total += 1
        first += found.evidence[0].ino == current.ino
        old_found += any(one.ino == old.ino for one in found.evidence)
        if found.evidence[0].ino != current.ino:
            missed.append(f"{old.id}→{current.id} (first: {found.evidence[0].id})")
    out.print(
        f"superseded proposals: current one first {first} of {total}; old one in the evidence {old_found}. {missed}"
    )


def prose(chance: np.random.Generator, words: int = 60) -> str:
    """Made-up words, a few of them very often, as in texts (Zipf)."""
    return " ".join(f"w{number}" for number in chance.zipf(1.15, words) % 50_000)


def times(embedder: Embedder, count: int, folder: Path) -> None:
    """Retrieval over `count` memories beside one embedding and one raw query of sqlite-vec: medians of 15, by turns."""
    chance = np.random.default_rng(7)
    made = chance.standard_normal((count, embedder.dimension), dtype=np.float32)
    made /= np.linalg.norm(made, axis=1, keepdims=True)
    snapshot = Snapshot.open(folder / f"times-{count}.db", create=True)
    raw = apsw.Connection(str(folder / f"raw-{count}.db"))
    raw.enable_load_extension(True)
    raw.load_extension(__import__("sqlite_vec").loadable_path())
    raw.execute(f"CREATE VIRTUAL TABLE v USING vec0(embedding float[{embedder.dimension}] distance_metric=cosine)")
    with snapshot.transaction() as db, raw:
        vectors.start(db, embedder.model, embedder.dimension)
        ring = namespaces.ensure(db, "/ring/big")
        access.grant(db, ME, ring)
        for number in range(count):
            row = MemoryRow(namespace=ring.path, id=f"m{number}", memory_type="decision", title=f"Memory {number}")
            memory.upsert(db, ring, row, bodies.of_bytes(f"Text of a memory. {prose(chance)}".encode()), None, 1)
        keywords.index_queued(db)
        for (ino, _), vector in zip(vectors.queued(db, -1, count), made, strict=True):
            vectors.put(db, ino, b"", 1, texts.TextState.TEXT, [vectors.Passage(0, 17, vector.tobytes())])
        raw.executemany(
            "INSERT INTO v (rowid, embedding) VALUES (?, ?)", ((i + 1, one.tobytes()) for i, one in enumerate(made))
        )
    library = Library(Snapshot.open(snapshot.path), ME)
    whole, section = library.resolve("/ring/big"), library.resolve("/ring/big/decisions")
    taken: dict[str, list[float]] = {"ring": [], "section": [], "raw": [], "embedding alone": []}
    for number in range(16):
        question = f"How is memory number {number} kept with {prose(chance, 3)}?"
        began = time.perf_counter()
        vector = embedder.embed([question], Cancel())[0].tobytes()
        middle = time.perf_counter()
        raw.execute("SELECT rowid, distance FROM v WHERE embedding MATCH ? AND k = 5", (vector,)).fetchall()
        ended = time.perf_counter()
        if number:
            taken["raw"].append(ended - began)
            taken["embedding alone"].append(middle - began)
        for scope, name in ((whole, "ring"), (section, "section")):
            began = time.perf_counter()
            retrieve(library, embedder, question, [scope])
            if number:
                taken[name].append(time.perf_counter() - began)
    middle_of = {name: statistics.median(values) * 1000 for name, values in taken.items()}
    least = statistics.median(a / b for a, b in zip(taken["ring"], taken["raw"], strict=True))
    out.print(
        f"| {count:,} | {middle_of['embedding alone']:.1f} | {middle_of['raw']:.1f} | {middle_of['ring']:.1f} |"
        f" {middle_of['section']:.1f} | {middle_of['ring'] / middle_of['raw']:.2f} ({least:.2f}) |"
    )


@click.command()
@click.option("--data", type=click.Path(path_type=Path), default=SHARED, help="Folder with questions/ and rings/.")
@click.option("--sets", default=",".join(SETS), help="Question sets, comma separated; python: the PEP pairs.")
@click.option("--snapshot", type=click.Path(path_type=Path), help="Keep the snapshot here.")
@click.option("--half", type=click.Choice(["all", "even", "odd"]), default="all", help="Even were fitted on.")
@click.option("--limit", default=100_000, help="Questions of each set, at most.")
@click.option("--only", type=click.Choice(["quality", "times"]), default="quality")
@click.option("--counts", default="1000,100000", help="Memories for --only times.")
def main(data: Path, sets: str, snapshot: Path | None, half: str, limit: int, only: str, counts: str) -> None:
    """Print the tables."""
    if not (data / "questions").is_dir():
        raise click.UsageError(f"{data}: no questions/ in it; name the data folder with --data")
    real = factory.embedder(settings())
    if real is None:
        raise click.UsageError("LIBRARYFS_EMBEDDER is none")
    names = [name for name in sets.split(",") if name]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        if only == "times":
            out.print("| memories | embedding, ms | embedding + raw query | ring | section | ring / raw (paired) |")
            out.print("|---|---|---|---|---|---|")
            for count in counts.split(","):
                times(real, int(count), folder)
        else:
            with Snapshot.open(snapshot or folder / "bench.db", create=True) as opened:
                asked = {name: asked_of(data, name, half, limit) for name in names if name != "python"}
                rings = {one.ring for some in asked.values() for one in some}
                for name in sorted(rings | ({"python"} & set(names))):
                    bring(opened, data, name, folder)
                embed(opened, real)
                library = Library(opened, ME)
                quality(library, Remembering(real), asked)
                if "python" in names:
                    superseded(library, Remembering(real))
    factory.close()


if __name__ == "__main__":
    main()
