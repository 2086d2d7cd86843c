"""Vectors for what has none yet: new and changed files, in batches that are each committed by themselves.

A run that is stopped, or dies, loses one batch; the next one goes on there. A second run finds nothing to do.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
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

BATCH_CHUNKS: Final = (16, 512)
"""Least and most chunks that are sorted by length, embedded and committed together: enough to fill a model's batches
with texts of one length, few enough that little is lost when the run is stopped."""
BATCH_SECONDS: Final = 4.0
"""What a batch is to take, at the rate of the last one: something is committed every 10 seconds also where the rate
falls by half. One file is one batch at least."""

_BATCH_FILES: Final = 1024
_CALL_CHUNKS: Final = 32
"""So often the progress is told."""
_FIRST_BATCH: Final = 64
_WORDS_IN_CHUNK: Final = 70
"""Of English, an overlap not counted: what the first estimate of the chunks goes by."""
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
    older: Mapping[int, bytes | None] | None = None,
) -> EmbedReport:
    """Embed every file that has no vectors, of all namespaces.

    `progress` gets ("embed", chunks done, chunks in all): the second from the words that are left, so a little off
    before the end. With `anew`, all vectors are dropped first, as after a change of model. With `older`, files that
    had no vectors before and are as they were (`vectors.waiting`) are left, and so are vectors by an older chunker:
    for what has just come in. Raises ModelUnavailable when the snapshot has another model's vectors and not `anew`,
    ModelError when the model fails, Cancelled, DeadlineExceeded, SnapshotError; whole batches before that are kept.
    """
    began = time.monotonic()
    report = EmbedReport(model=embedder.model)
    dimension = embedder.dimension
    with snapshot.transaction() as db:
        vectors.start(db, embedder.model, dimension, defaults.alike(embedder.model), anew=anew)
        if older is None:
            vectors.outdate(db, chunker.VERSION)
        report.indexed = keywords.index_queued(db)
    pace = _Pace(snapshot, older or {}, progress)
    for jobs in _batches(snapshot, embedder, pace):
        cancel.check()
        made = _embed(embedder, jobs, cancel, pace.tell)
        _store(snapshot, jobs, made, report)
        report.seconds = time.monotonic() - began
        pace.committed()
    pace.end()
    report.waiting = vectors.count_queued(snapshot.db)
    report.seconds = time.monotonic() - began
    return report


def content_digest(text: Text) -> bytes:
    """What the vectors of a file depend on: its title and its content (blake2b-128)."""
    return blake2b(text.title.encode() + b"\0" + (text.entry.digest or b""), digest_size=16).digest()


class _Pace:
    """How far a run is, how far it has to go, and how large its next batch is to be."""

    def __init__(self, snapshot: Snapshot, older: Mapping[int, bytes | None], progress: Progress) -> None:
        self.size = _FIRST_BATCH
        self._older = {ino for ino, digest in vectors.waiting(snapshot.db).items() if older.get(ino, b"") == digest}
        self._progress = progress
        self._left = sum(_expected(words) for _, words in self.files(snapshot))
        self._seen = 0.0
        self._chunks = self._done = self._before = 0
        self._began = time.monotonic()

    def files(self, snapshot: Snapshot) -> Iterator[tuple[int, int]]:
        """(inode number, words) of what is to be embedded."""
        after = -1
        while page := vectors.queued(snapshot.db, after, _BATCH_FILES):
            after = page[-1][0]
            yield from (file for file in page if file[0] not in self._older)

    def cut(self, words: int, chunks: int) -> None:
        """A file was cut: its words became so many chunks."""
        self._left -= _expected(words)
        self._seen += _expected(words)
        self._chunks += chunks

    def tell(self, chunks: int) -> None:
        """So many more chunks were embedded."""
        self._done += chunks
        ratio = self._chunks / self._seen if self._seen else 1.0
        self._progress("embed", self._done, self._chunks + round(self._left * ratio))

    def committed(self) -> None:
        """A batch is stored."""
        now = time.monotonic()
        rate = (self._done - self._before) / max(now - self._began, 1e-3)
        self._began, self._before = now, self._done
        if rate:
            self.size = round(min(max(rate * BATCH_SECONDS, BATCH_CHUNKS[0]), BATCH_CHUNKS[1]))

    def end(self) -> None:
        """All is done."""
        self._progress("embed", self._done, self._done)


def _expected(words: int) -> float:
    """Chunks of a file with so many words, by experience."""
    return max(1.0, words / _WORDS_IN_CHUNK) if words else 0.0


def _batches(snapshot: Snapshot, embedder: Embedder, pace: _Pace) -> Iterator[list[_Job]]:
    """Jobs of about as many chunks as the pace wants. A file is in one batch, whole."""
    jobs, chunks = list[_Job](), 0
    pace.tell(0)
    for ino, words in pace.files(snapshot):
        text = texts.load(snapshot.db, ino, keywords.MAX_TEXT_BYTES)
        if text is None:
            continue
        jobs.append(_job(text, embedder))
        chunks += len(jobs[-1].chunks)
        pace.cut(words, len(jobs[-1].chunks))
        if chunks >= pace.size or len(jobs) >= _BATCH_FILES:
            yield jobs
            jobs, chunks = [], 0
    if jobs:
        yield jobs


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


def _embed(
    embedder: Embedder, jobs: Sequence[_Job], cancel: Cancel, tell: Callable[[int], None]
) -> list[list[Passage]]:
    """The passages of each job; `tell` gets the number of chunks that were made meanwhile.

    Texts go to the model sorted by length, so that it pads little.
    """
    flat = [(number, chunk) for number, job in enumerate(jobs) for chunk in job.chunks]
    order = sorted(range(len(flat)), key=lambda at: flat[at][1].end - flat[at][1].start, reverse=True)
    found: dict[int, bytes] = {}
    for first in range(0, len(order), _CALL_CHUNKS):
        cancel.check()
        call = order[first : first + _CALL_CHUNKS]
        made = embedder.embed([_input(jobs[flat[at][0]], flat[at][1]) for at in call], cancel)
        found.update((at, vector.tobytes()) for at, vector in zip(call, made, strict=True))
        tell(len(call))
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
