"""One question of a set, asked through the pipeline of every surface, or its answer of an earlier run."""

import secrets
from collections.abc import Callable
from functools import cache
from hashlib import blake2b
from importlib import resources
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from libraryfs import jsontext
from libraryfs.ask.pipeline import Models
from libraryfs.ask.request import AskRequest
from libraryfs.ask.result import AskResult, Citation
from libraryfs.errors import LibraryError
from libraryfs.evals.model_failures import Failures
from libraryfs.library.resolver import Library
from libraryfs.models.cancel import Cancel
from libraryfs.nodes import Entry
from libraryfs.store import scope
from libraryfs.store.answers import Answers
from libraryfs.store.snapshot import Snapshot

Ask = Callable[[Library, Models, AskRequest, Cancel | None], AskResult]
MOST_EVIDENCE_BYTES: Final = 4 * 1024 * 1024
"""Of a retrieved file that is looked through for a fragment."""


class AskedQuestion(BaseModel):
    """What an eval keeps of an answer. `abstained`: it said that the library does not hold it."""

    model_config = ConfigDict(frozen=True)

    answer: str | None
    abstained: bool
    message: str | None
    citations: tuple[Citation, ...]
    evidence: tuple[str, ...]
    error: str | None
    degraded: tuple[str, ...]
    draw: str = Field(default_factory=lambda: secrets.token_hex(8))
    """Names this answer: one that is kept and reused has the name that it had when it was made."""


class LibraryWithout(Library):
    """A library without the eval set itself: an answer found in the question's own list of answers is no answer."""

    def __init__(self, snapshot: Snapshot, principal: str, hidden: frozenset[int]) -> None:
        super().__init__(snapshot, principal)
        self.hidden = hidden

    def may_see(self, entry: Entry) -> bool:
        """As the principal, but not the hidden entries."""
        return entry.ino not in self.hidden and super().may_see(entry)


class Asker:
    """Asks questions of one library with one set of models. `asked` and `kept` count answers made and reused."""

    def __init__(
        self,
        library: LibraryWithout,
        models: Models,
        ask: Ask,
        identity: str,
        cancel: Cancel,
        answers: Answers | None,
        failures: Failures,
        *,
        use_kept: bool,
    ) -> None:
        self._library = library
        self._models = models
        self._ask = ask
        self._identity = identity + _pipeline()
        self._cancel = cancel
        self._answers = answers
        self._failures = failures
        self._use_kept = use_kept
        self._digests: dict[tuple[str, ...], bytes] = {}
        self.asked = 0
        self.kept = 0

    def __call__(self, request: AskRequest, repeat: int) -> AskedQuestion:
        """The answer. A path that is absent or hidden, or an answer that failed, is an `error`, not an exception.

        Raises Cancelled and SnapshotError.
        """
        try:
            key = self._key(request, repeat)
            found = self._answers.get(key) if self._answers and self._use_kept else None
            if found is not None:
                self.kept += 1
                return jsontext.load(AskedQuestion, found)
            self.asked += 1
            before = self._failures.count
            asked = _asked(self._ask(self._library, self._models, request, self._cancel))
        except LibraryError as error:
            if error.code.startswith(("LIBRARY_PATH", "LIBRARY_INVALID")):
                return _failed(f"{error.code}: {error.message}")
            raise
        if self._answers and asked.error is None and self._failures.count == before:
            self._answers.put(key, jsontext.dumps(asked, indent=None))
        return asked

    def evidence_texts(self, asked: AskedQuestion) -> list[str]:
        """The whole texts of what was retrieved; a file that is gone by now is left out."""
        texts = []
        for path in asked.evidence:
            try:
                entry = self._library.resolve(path)
            except LibraryError:
                continue
            texts.append(self._library.read(entry, 0, MOST_EVIDENCE_BYTES).decode("utf-8", "replace"))
        return texts

    def _key(self, request: AskRequest, repeat: int) -> bytes:
        if request.paths not in self._digests:
            scopes = [self._library.resolve(path).ino for path in request.paths]
            db, visible, hidden = self._library.snapshot.db, self._library.visible(), self._library.hidden
            self._digests[request.paths] = scope.digest(db, scopes, visible, hidden)
        digest = blake2b(self._digests[request.paths], digest_size=24, person=b"answer")
        for part in (self._identity, request.model_dump_json(), str(repeat)):
            data = part.encode("utf-8", "surrogatepass")
            digest.update(len(data).to_bytes(8, "little") + data)
        return digest.digest()


@cache
def _pipeline() -> str:
    """A digest of the pipeline's source: another libraryfs may answer otherwise, whatever its prompt's version says."""
    digest = blake2b(digest_size=16)
    for file in sorted(resources.files("libraryfs.ask").iterdir(), key=lambda file: file.name):
        if file.name.endswith(".py"):
            digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


def _asked(result: AskResult) -> AskedQuestion:
    answer = result.answer if isinstance(result.answer, str) else None
    error = f"{result.error.code}: {result.error.message}" if result.error is not None else None
    return AskedQuestion(
        answer=answer,
        abstained=answer is None and not result.truncated and error is None,
        message=result.message,
        citations=result.citations,
        evidence=tuple(item.path for item in result.evidence),
        error=error,
        degraded=result.trace.degraded,
    )


def _failed(error: str) -> AskedQuestion:
    return AskedQuestion(
        answer=None, abstained=False, message=None, citations=(), evidence=(), error=error, degraded=()
    )
