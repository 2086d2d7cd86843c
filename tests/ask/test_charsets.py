"""A text in another coding than UTF-8 is found, and quoted as it reads."""

from pathlib import Path

import pytest

from libraryfs.ask.pipeline import Models, ask
from libraryfs.ask.request import AskRequest
from libraryfs.ingest.importer import import_source
from libraryfs.library.resolver import Library
from libraryfs.store.snapshot import Snapshot
from tests.ingest.shown import attributes, files

TEXT = "The ferry to Brännö leaves at a quarter past seven from Saltholmen.\n"


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-16-le"])
def test_an_answer_from_another_coding(tmp_path: Path, encoding: str) -> None:
    source = tmp_path / "src"
    (source / "workspace").mkdir(parents=True)
    (source / "workspace/ferry.txt").write_bytes((TEXT + "More of it.\n" * 500).encode(encoding))
    with Snapshot.open(tmp_path / "library.db", create=True) as snapshot:
        import_source(snapshot, source, "/ring/dev", "alice")
        assert files(snapshot) == {"/ring/dev/workspace/ferry.txt": (source / "workspace/ferry.txt").read_bytes()}
        assert attributes(snapshot, "/ring/dev/workspace/ferry.txt")["charset"] in ("cp1252", "utf-16", "utf-16-le")
        result = ask(
            Library(snapshot, "alice"), Models(None, None), AskRequest(question="When does the ferry to Brännö leave?")
        )
        assert result.answer is not None
        assert "quarter past seven" in str(result.answer)
        assert "Brännö" in result.citations[0].quote
