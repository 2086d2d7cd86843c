"""What an import of today would not have taken, or could not read, in a snapshot that has it already."""

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from libraryfs.ingest import credentials
from libraryfs.store import entries, keywords, namespaces, sources, texts
from libraryfs.store.names import from_bytes
from libraryfs.store.problem import Problem, ProblemKind

if TYPE_CHECKING:
    import apsw


def audit(db: "apsw.Connection", report: Callable[[int, int], None]) -> Iterator[Problem]:
    """Files with a line that looks like a secret, but for those of sources that were imported with --allow-secrets, and
    files that should be text and are in no coding that is known. Reads every text."""
    allowed = {one.id for one in sources.every(db) if json.loads(one.options).get("allow_secrets")}
    inos = texts.searched(db)
    for done, ino in enumerate(inos):
        report(done, len(inos))
        text = texts.load(db, ino, keywords.MAX_TEXT_BYTES)
        if text is None:
            continue
        if not text.encoding:
            yield _problem(db, "no_text", ino, "should be text, and is in no coding that is known: found by name only")
        elif text.text and sources.of_row(db, ino) not in allowed and (found := credentials.find(text.text)):
            message = f"line {found.line} looks like a secret ({found.what}); remove it at its source, or import that"
            yield _problem(db, "secret", ino, message + " with --allow-secrets")


def _problem(db: "apsw.Connection", kind: ProblemKind, ino: int, message: str) -> Problem:
    entry = entries.get(db, ino)
    assert entry is not None
    assert entry.namespace_id is not None
    namespace = namespaces.by_id(db, entry.namespace_id).path
    chain = entries.chain(db, entry) or [entry]
    path = "/".join(from_bytes(link.name) for link in chain[1:])
    row_id = texts.row_id(db, entry)
    return Problem(kind, namespace, row_id, f"/{path}: {message}")
