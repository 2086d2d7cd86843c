"""What `check` finds in texts that a snapshot has already."""

from pathlib import Path

from libraryfs.ingest.audit import audit
from libraryfs.store.snapshot import Snapshot
from tests.ingest.conftest import Importing
from tests.ingest.shown import lay
from tests.store.build import Builder

SECRET = "# Notes\n\npassword: hunter2hunter2\n"


def found(snapshot: Snapshot) -> list[tuple[str, str]]:
    """(kind, message) of what an audit finds."""
    return [(one.kind, one.message) for one in audit(snapshot.db, lambda _done, _total: None)]


def test_a_secret_in_an_old_snapshot(build: Builder) -> None:
    build.memory("/ring/dev", "a", "semantic", SECRET, title="Notes")
    (one,) = found(Snapshot(Path("x"), build.db, write=True))
    assert one[0] == "secret"
    assert one[1].startswith("/ring/dev/memories/notes.md: line 3 looks like a secret (a password or key)")


def test_what_was_allowed_is_no_finding(tmp_path: Path, snapshot: Snapshot, bring: Importing) -> None:
    source = lay(tmp_path / "src", {"a.md": SECRET, "b.txt": b"\xff\xfe\x00\xd8\x00\xd8"})
    bring(source)
    bring(source, options={"allow_secrets": True})
    assert [kind for kind, _ in found(snapshot)] == ["no_text"]
