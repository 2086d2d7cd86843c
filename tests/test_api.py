"""The Python API. These tests use what `libraryfs.__all__` names, and nothing else of the package."""

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

import libraryfs

SET = (
    "# Set\n\n## On which days do we run the pipeline?\n\n- Tuesdays\n\n## Who won the cup of 1974?\n\n- Nobody here\n"
)
FILES = {
    "charter.md": "# Charter of dev\n\nWe keep the lights on.\n",
    "skills/deploy.md": "---\ntitle: Deploy\nid: skill-deploy\n---\nWe run the pipeline on Tuesdays.\n",
    "decisions/use-ftp.md": "---\ntitle: Use FTP\nid: dec-1\n---\nWe copy by FTP.\n",
    "decisions/use-rsync.md": "---\ntitle: Use rsync\nid: dec-2\nsupersedes: [dec-1]\n---\nWe copy by rsync.\n",
    "workspace/eval-set.md": SET,
}


@pytest.fixture(autouse=True)
def settings(snapshot: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Questions are answered by keywords."""
    for name, value in {"EMBEDDER": "none", "LLM": "none", "CACHE": str(snapshot.with_name("cache"))}.items():
        monkeypatch.setenv(f"LIBRARYFS_{name}", value)


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two rings, one of which alice sees."""
    tmp_path = tmp_path_factory.mktemp("api")
    for name, text in FILES.items():
        path = tmp_path / "notes" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    file = tmp_path / "library.db"
    for ring, principal in (("dev", "alice"), ("secret", "bob")):
        command = [
            "import",
            str(tmp_path / "notes"),
            "--ring",
            ring,
            "--as",
            principal,
            "--snapshot",
            str(file),
            "--no-embed",
        ]
        subprocess.run([sys.executable, "-m", "libraryfs.cli.main", *command], check=True, capture_output=True)
    return file


@pytest.fixture
def library(snapshot: Path) -> Iterator[libraryfs.Library]:
    """As alice sees it."""
    with libraryfs.open(snapshot, principal="alice") as opened:
        yield opened


def test_what_is_public() -> None:
    """Each name is there; another is not; importing the package loads nothing."""
    assert all(getattr(libraryfs, name) is not None for name in libraryfs.__all__)
    assert set(libraryfs.__all__) <= set(dir(libraryfs))
    with pytest.raises(AttributeError):
        _ = libraryfs.nonsense
    program = "import sys, libraryfs; print([name for name in sys.modules if name.startswith('libraryfs.')])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_resolve_list_and_read(library: libraryfs.Library) -> None:
    """A file with its attributes; folders in their order; bytes, whole and in part."""
    file = library.resolve("/ring/dev/decisions/use-ftp.md")
    assert (file.name, file.kind, file.size) == ("use-ftp.md", "memory", len(library.read(file.path)))
    assert file.attributes["superseded_by"] == "dec-2"
    assert abs((datetime.now(UTC) - file.modified).total_seconds()) < 3600
    assert [one.path for one in library.list()] == ["/agent", "/ring"]
    assert [one.name for one in library.list("/ring/dev")][:3] == ["charter", "skills", "instructions"]
    assert [one.inode for one in library.list(file.path)] == [file.inode]
    assert library.read(file.path).decode().endswith("We copy by FTP.\n")
    assert library.read(file.path, -1 + file.size) == b"\n"
    assert library.read(file.path, 0, 0) == b""


def test_tree_and_drilldown(library: libraryfs.Library) -> None:
    """The models of the other surfaces; caps as a request or as its fields."""
    assert [child.name for child in library.tree().children or []] == ["agent", "ring"]
    assert library.tree("/ring/dev").children is not None
    walk = library.drilldown("/ring/dev", max_items_per_level=1)
    assert walk == library.drilldown("/ring/dev", libraryfs.DrilldownRequest(max_items_per_level=1))
    assert walk.stopped == "max_items_per_level"
    with pytest.raises(libraryfs.InvalidRequest, match="max_depth"):
        library.drilldown("/ring/dev", max_depth=0)
    with pytest.raises(libraryfs.LimitExceeded):
        library.tree("/", 99)


def test_ask(library: libraryfs.Library) -> None:
    """A text with options, or a request; events come first the evidence."""
    events: list[object] = []
    result = library.ask("How do we copy?", paths=["/ring/dev/decisions"], on_event=events.append)
    assert isinstance(events[0], libraryfs.EvidenceFound)
    assert result.question == "How do we copy?"
    assert {item.path for item in result.evidence} <= {one.path for one in library.list("/ring/dev/decisions")}
    request = libraryfs.AskRequest(question="On which days do we run the pipeline?", paths=("/ring/dev",))
    assert "Tuesdays" in str(library.ask(request).answer)
    with pytest.raises(libraryfs.InvalidRequest, match="retrieval"):
        library.ask("How?", retrieval="magic")


def test_eval(library: libraryfs.Library) -> None:
    """It is stored, and the next one compares with it."""
    first = library.eval("dev", llm_judge=False)
    again = library.eval("/ring/dev", libraryfs.EvalRequest(llm_judge=False))
    assert (first.passed, first.total, first.written) == (1, 2, True)
    assert again.drift_detected is False
    assert library.resolve("/ring/dev/workspace/eval-set.md").attributes["last_eval_total"] == "2"
    with pytest.raises(libraryfs.PathNotFound):
        library.eval("secret")


@pytest.mark.parametrize("path", ["/ring/secret", "/ring/absent"])
def test_hidden_and_absent(library: libraryfs.Library, path: str) -> None:
    """The same error, whatever is called."""
    for call in (library.resolve, library.list, library.read, library.tree, library.drilldown):
        with pytest.raises(libraryfs.PathNotFound, match=f"^{path}: no such path in the library, or not visible"):
            call(path)
    with pytest.raises(libraryfs.PathNotFound):
        library.ask("How do we copy?", paths=[path])
    assert {item.path.split("/")[2] for item in library.ask("How do we copy?").evidence} <= {"dev"}


def test_mistakes(library: libraryfs.Library, snapshot: Path) -> None:
    """One kind of error for each, and one class above them all."""
    with pytest.raises(libraryfs.InvalidRequest, match="is a folder"):
        library.read("/ring/dev")
    with pytest.raises(libraryfs.InvalidPath):
        library.list("ring")
    with pytest.raises(libraryfs.SnapshotMissing):
        libraryfs.open(snapshot.with_name("absent.db"))
    with pytest.raises(libraryfs.InvalidRequest):
        libraryfs.open(snapshot, principal="")
    assert issubclass(libraryfs.PathNotFound, libraryfs.LibraryError)
    library.close()
    library.close()


def test_defaults_are_those_of_the_command_line(snapshot: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """LIBRARYFS_SNAPSHOT and the login name, who sees nothing here."""
    monkeypatch.setenv("LIBRARYFS_SNAPSHOT", str(snapshot))
    with libraryfs.open() as library:
        assert library.list("/ring") == ()
