#!/usr/bin/env python3
"""Embedders beside plain `SentenceTransformer.encode` in float32, on the same texts and cores, by turns.

    scripts/bench/embed.py                       the default embedder, and sentence-transformers through our worker
    scripts/bench/embed.py --chunks 1000 --turns 5

Texts are the chunks that an import of documents makes. Workers are niced: on a busy machine only what is counted by
processor time compares. bfloat16 is used where the processor has avx512_bf16 or AMX (`cpu` says what it has).
"""

import json
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import click
import numpy as np
from rich.console import Console

from libraryfs import scheduling
from libraryfs.ingest import chunker
from libraryfs.ingest.embed import title_prefix
from libraryfs.models import defaults, factory
from libraryfs.models.cancel import Cancel
from libraryfs.models.local import LocalEmbedder
from libraryfs.models.protocols import Vectors
from libraryfs.settings import settings

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
out = Console(width=150)


class Turn(NamedTuple):
    """One way through all texts."""

    wall: float
    cpu: float
    vectors: Vectors


def cpu_seconds(process: int | None) -> float:
    """Processor time of a process (None: this one), so far."""
    fields = Path(f"/proc/{process or 'self'}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident(process: int | None) -> float:
    """Its memory, MB."""
    lines = Path(f"/proc/{process or 'self'}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1000


def chunks(data: Path, embedder: LocalEmbedder, count: int) -> list[str]:
    """The first chunks of a question set's documents, as an import embeds them."""
    texts: list[str] = []
    with (data / "questions" / "covidqa" / "documents.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            prefix = title_prefix(row["title"], embedder)
            made = chunker.chunk(row["text"], embedder.offsets, embedder.window, prefix)
            texts += [prefix + row["text"][chunk.start : chunk.end] for chunk in made]
            if len(texts) >= count:
                break
    return texts[:count]


def timed(work: Callable[[], Vectors], processes: Callable[[], set[int | None]]) -> Turn:
    """Wall and processor time of it; the worker's counts with ours."""
    before = {process: cpu_seconds(process) for process in processes()}
    began = time.perf_counter()
    vectors = work()
    wall = time.perf_counter() - began
    return Turn(wall, sum(cpu_seconds(process) - spent for process, spent in before.items()), vectors)


def described(name: str, turns: list[Turn], plain: list[Turn], first: float, query: float, memory: float) -> str:
    """One row of the table."""
    count = len(turns[0].vectors)
    cosine = (turns[0].vectors * plain[0].vectors).sum(axis=1)
    by_cpu = statistics.median(theirs.cpu / ours.cpu for ours, theirs in zip(turns, plain, strict=True))
    by_clock = statistics.median(theirs.wall / ours.wall for ours, theirs in zip(turns, plain, strict=True))
    rate = statistics.median(count / turn.wall for turn in turns)
    rate_cpu = statistics.median(count / turn.cpu for turn in turns)
    return (
        f"| {name} | {first:.2f} | {query * 1000:.1f} | {rate:.1f} | {rate_cpu:.1f} | {by_cpu:.2f} | {by_clock:.2f} |"
        f" {cosine.mean():.5f} ({cosine.min():.4f}) | {memory:,.0f} |"
    )


@click.command()
@click.option("--data", type=click.Path(path_type=Path), default=SHARED, help="Folder with questions/.")
@click.option("--chunks", "count", default=400, help="Texts to embed.")
@click.option("--turns", default=3, help="Rounds; the table has their medians.")
@click.option("--threads", default=0, help="Of each; 0: one for each core.")
def main(data: Path, count: int, turns: int, threads: int) -> None:
    """Print the table."""
    chosen = settings().model_copy(update={"model_threads": threads})
    embedders = {
        "default": factory.embedder(chosen.model_copy(update={"embedder": "default"})),
        "sentence-transformers, through the worker": factory.embedder(
            chosen.model_copy(update={"embedder": str(defaults.RELEASED_EMBEDDER.find())})
        ),
    }
    first, query, ways = dict[str, float](), dict[str, float](), dict[str, LocalEmbedder]()
    for name, embedder in embedders.items():
        assert isinstance(embedder, LocalEmbedder)
        ways[name] = embedder
        began = time.perf_counter()
        embedder.embed(["Where are sessions stored?"], Cancel())
        first[name] = time.perf_counter() - began
        query[name] = statistics.median(timed_query(embedder) for _ in range(20))
    texts = chunks(data, ways["default"], count)
    began = time.perf_counter()
    import torch
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(threads or len(os.sched_getaffinity(0)))
    model = SentenceTransformer(str(defaults.RELEASED_EMBEDDER.find()), device="cpu")
    model.encode(["Where are sessions stored?"])
    first["plain"] = time.perf_counter() - began

    def plain() -> Vectors:
        vectors: Vectors = model.encode(texts, normalize_embeddings=True, show_progress_bar=False)
        return vectors

    found: dict[str, list[Turn]] = {name: [] for name in ("plain", *ways)}
    for _ in range(turns):
        found["plain"].append(timed(plain, lambda: {None}))
        for name, embedder in ways.items():
            embedder.embed(["warm"], Cancel())  # a worker that was idle has ended
            own: set[int | None] = {None, embedder.process}
            found[name].append(timed(lambda e=embedder: e.embed(texts, Cancel()), lambda o=own: o))  # type: ignore[misc]
    flags = sorted(scheduling.processor_flags() & {"avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16"})
    out.print(f"cpu: {', '.join(flags)}; {len(texts)} chunks, mean {np.mean([*map(len, texts)]):.0f} characters")
    out.print("| embedder | first, s | query, ms | /s | / CPU s | ratio by CPU | by clock | cosine (least) | MB |")
    out.print("|---|---|---|---|---|---|---|---|---|")
    began = time.perf_counter()
    model.encode(["When do we deploy?"])
    asked = time.perf_counter() - began
    out.print(described("plain encode, float32", found["plain"], found["plain"], first["plain"], asked, resident(None)))
    for name, embedder in ways.items():
        memory = resident(embedder.process)
        out.print(described(name, found[name], found["plain"], first[name], query[name], memory))
    factory.close()


def timed_query(embedder: LocalEmbedder) -> float:
    """Seconds for one question."""
    began = time.perf_counter()
    embedder.embed(["When do we deploy?"], Cancel())
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
