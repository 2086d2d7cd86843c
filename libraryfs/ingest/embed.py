"""Vectors for what has none yet: new and changed files, in batches that are each committed by themselves.

A run that is stopped, or dies, loses one batch; the next one goes on there. A second run finds nothing to do.
"""

import time
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Final, NamedTuple

from pydantic import BaseModel, Field

from libraryfs.ingest import chunker
from libraryfs.ingest.chunker import Chunk
from libraryfs.ingest.report import Progress, no_progress
from libraryfs.models import defaults
from libraryfs.models.cancel import Cancel
from libraryfs.models.protocols import Embedder
from libraryfs.store import entries, keywords, texts, vectors
from libraryfs.store.snapshot import Snapshot
from libraryfs.store.texts import Text, TextState
from libraryfs.store.vectors import Passage

BATCH_CHUNKS: Final = 512
"""Chunks that are sorted by length, embedded and committed together: enough to fill a model's batches with texts of one
length, few enough that little is lost when the run is stopped."""

_BATCH_FILES: Final = 1024
_CALL_CHUNKS: Final = 256
_TITLE_SHARE: Final = 4
"""A title takes at most this part (one fourth) of the window."""


class EmbedReport(BaseModel):
    """What one run embedded. Files that were skipped are found by keywords only (blank ones by their name)."""

    model: str
    files: int = Field(0, description="Files that got vectors in this run")
    chunks: int = 0
    blank: int = Field(0, description="Files without text, in this run")
    too_long: int = Field(0, description=f"Files over {keywords.MAX_TEXT_BYTES} bytes, in this run")
    binary: int = Field(0, description="Files that are not text, in this run")
    indexed: int = Field(0, description="Files that keyword search did not have yet")
    waiting: int = Field(0, description="Files that still have no vectors")
    seconds: float = 0.0

    @property
    def rate(self) -> float:
        """Chunks a second."""
        return self.chunks / self.seconds if self.seconds else 0.0


class _Job(NamedTuple):
    text: Text
    chunks: list[Chunk]
    prefix: str


def embed_missing(
    snapshot: Snapshot,
    embedder: Embedder,
    cancel: Cancel,
    progress: Progress = no_progress,
    *,
    anew: bool = False,
) -> EmbedReport:
    """Embed every file that has no vectors, of all namespaces. `progress` gets ("embed", files done, files in all).

    With `anew`, all vectors are dropped first: the way to another model. Raises ModelUnavailable when the snapshot has
    another model's vectors and not `anew`, ModelError when the model fails, Cancelled, DeadlineExceeded, SnapshotError;
    whole batches before that are kept.
    """
    began = time.monotonic()
    report = EmbedReport(model=embedder.model)
    dimension = embedder.dimension
    with snapshot.transaction() as db:
        vectors.start(db, embedder.model, dimension, defaults.alike(embedder.model), anew=anew)
        vectors.outdate(db, chunker.VERSION)
        report.indexed = keywords.index_queued(db)
    total, done = vectors.count_queued(snapshot.db), 0
    for jobs, seen in _batches(snapshot, embedder):
        cancel.check()
        progress("embed", done, total)
        made = _embed(embedder, jobs, cancel)
        _store(snapshot, jobs, made, report)
        report.seconds = time.monotonic() - began
        done += seen
    progress("embed", done, total)
    report.waiting = vectors.count_queued(snapshot.db)
    report.seconds = time.monotonic() - began
    return report


def content_digest(text: Text) -> bytes:
    """What the vectors of a file depend on: its title and its content (blake2b-128)."""
    return blake2b(text.title.encode() + b"\0" + (text.entry.digest or b""), digest_size=16).digest()


def _batches(snapshot: Snapshot, embedder: Embedder) -> Iterator[tuple[list[_Job], int]]:
    """Jobs of about BATCH_CHUNKS chunks, and how many files they are. A file is in one batch, whole."""
    after, jobs, chunks = -1, list[_Job](), 0
    while inos := vectors.queued(snapshot.db, after, _BATCH_FILES):
        for ino in inos:
            after = ino
            text = texts.load(snapshot.db, ino, keywords.MAX_TEXT_BYTES)
            if text is None:
                continue
            jobs.append(_job(text, embedder))
            chunks += len(jobs[-1].chunks)
            if chunks >= BATCH_CHUNKS or len(jobs) >= _BATCH_FILES:
                yield jobs, len(jobs)
                jobs, chunks = [], 0
    if jobs:
        yield jobs, len(jobs)


def _job(text: Text, embedder: Embedder) -> _Job:
    if text.state is not TextState.TEXT:
        return _Job(text, [], "")
    prefix = title_prefix(text.title, embedder)
    return _Job(text, chunker.chunk(text.text, embedder.offsets, embedder.window, prefix), prefix)


def title_prefix(title: str, embedder: Embedder) -> str:
    """The title as it stands before each chunk of its file, cut where it would take too much of the window."""
    title = " ".join(title.replace("_", " ").split())
    most = embedder.window // _TITLE_SHARE
    tokens = embedder.offsets(title)
    if len(tokens) > most:
        title = title[: tokens[most][0]].rstrip()
    return f"{title}\n" if title else ""


def _embed(embedder: Embedder, jobs: Sequence[_Job], cancel: Cancel) -> list[list[Passage]]:
    """The passages of each job. Texts go to the model sorted by length, so that it pads little."""
    flat = [(number, chunk) for number, job in enumerate(jobs) for chunk in job.chunks]
    order = sorted(range(len(flat)), key=lambda at: flat[at][1].end - flat[at][1].start, reverse=True)
    found: dict[int, bytes] = {}
    for first in range(0, len(order), _CALL_CHUNKS):
        cancel.check()
        call = order[first : first + _CALL_CHUNKS]
        made = embedder.embed([_input(jobs[flat[at][0]], flat[at][1]) for at in call], cancel)
        found.update((at, vector.tobytes()) for at, vector in zip(call, made, strict=True))
    passages: list[list[Passage]] = [[] for _ in jobs]
    for at, (number, chunk) in enumerate(flat):
        text = jobs[number].text
        passages[number].append(Passage(text.size_of(0, chunk.start), text.size_of(*chunk), found[at]))
    return passages


def _input(job: _Job, chunk: Chunk) -> str:
    return job.prefix + job.text.text[chunk.start : chunk.end]


def _store(snapshot: Snapshot, jobs: Sequence[_Job], made: Sequence[Sequence[Passage]], report: EmbedReport) -> None:
    """Commit a batch. A file that changed since it was read stays in the queue."""
    with snapshot.transaction() as db:
        for job, passages in zip(jobs, made, strict=True):
            now = entries.get(db, job.text.entry.ino)
            if now is None or now.digest != job.text.entry.digest:
                continue
            if job.text.title != texts.title(db, now):
                continue
            state = job.text.state if passages or job.text.state is not TextState.TEXT else TextState.BLANK
            vectors.put(db, now.ino, content_digest(job.text), chunker.VERSION, state, passages)
            report.chunks += len(passages)
            match state:
                case TextState.TEXT:
                    report.files += 1
                case TextState.BLANK:
                    report.blank += 1
                case TextState.TOO_LONG:
                    report.too_long += 1
                case TextState.BINARY:
                    report.binary += 1
