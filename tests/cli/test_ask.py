"""`ask` and `embed`: the same pipeline as `.ask`, from the command line."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run
from tests.cli.test_main import on_a_terminal

Answer = Callable[..., Any]
NO_MODELS = {"LIBRARYFS_EMBEDDER": "none", "LIBRARYFS_LLM": "none"}


@pytest.fixture
def filled(cli: Run, notes: Path) -> None:
    """The notes in ring dev, with no vectors."""
    assert cli("import", notes, "--ring", "dev", "--no-embed").returncode == 0


@pytest.mark.usefixtures("filled")
def test_without_models_it_quotes(cli: Run, answer: Answer, notes: Path) -> None:
    """Keyword search and a sentence of the file: the quote is in the cited file, and `degraded` says why."""
    result = answer("ask", "On which days do we run the pipeline?", env=NO_MODELS)
    assert "Tuesdays" in result["answer"]
    cited = result["citations"][0]
    assert cited["path"] == "/ring/dev/skills/deploy.md"
    assert cited["quote"] in (notes / "skills" / "deploy.md").read_text()
    assert result["trace"]["degraded"]
    done = cli("ask", "On which days do we run the pipeline?", env=NO_MODELS)
    assert done.returncode == 0
    assert "[1] /ring/dev/skills/deploy.md" in done.stdout


@pytest.mark.usefixtures("filled")
def test_no_answer_is_exit_code_1(cli: Run) -> None:
    """Nothing is made up, and a script can tell."""
    done = cli("ask", "Who won the football championship of 1974?", "--path", "/ring/dev", env=NO_MODELS)
    assert done.returncode == 1
    assert done.stdout.startswith("not in the library")


@pytest.mark.usefixtures("filled")
def test_stdin_and_options(cli: Run, answer: Answer, tmp_path: Path) -> None:
    """`-` reads stdin (empty here); a shape file and the other options are taken."""
    assert "question" in cli("ask", "-", env=NO_MODELS).stderr
    (tmp_path / "shape.json").write_text(json.dumps({"type": "object", "properties": {"tool": {"type": "string"}}}))
    options = ["--shape", "shape.json", "--ground", "--retrieval", "hybrid", "--latency-budget-ms", "60000"]
    done = cli("ask", "How do we copy?", *options, "--json", env=NO_MODELS)
    result = json.loads(done.stdout)
    assert [item["path"] for item in result["evidence"]]
    assert done.returncode in (0, 1, 2)
    assert done.returncode == (2 if "error" in result else 0 if result["answer"] is not None else 1)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([""], "question"),
        (["..."], "question"),
        (["x", "--path", "ring/dev"], "--path: "),
        (["x", "--path", "/ring/absent"], "/ring/absent"),
        (["x", "--path", "/ring/two\nlines"], "/ring/two\\nlines"),
        (["x", "--latency-budget-ms", "0"], "--latency-budget-ms: "),
        (["x", "--shape", "absent.json"], "absent.json"),
        (["x", "--shape", "not.json"], "not.json"),
        (["x", "--shape", "deep.json"], "deep.json: nested deeper than"),
        (["x", "--shape", "twice.json"], "'type' is given twice"),
        (["x", "--shape", "list.json"], "list.json: not a JSON object"),
        (["x", "--retrieval", "magic"], "magic"),
    ],
)
@pytest.mark.usefixtures("filled")
def test_a_bad_request_names_the_field(cli: Run, tmp_path: Path, arguments: list[str], says: str) -> None:
    """One line, exit code 2."""
    (tmp_path / "not.json").write_text("{")
    (tmp_path / "deep.json").write_text('{"not":' * 10_000 + "{}" + "}" * 10_000)
    (tmp_path / "twice.json").write_text('{"type": "object", "type": "string"}')
    (tmp_path / "list.json").write_text("[]")
    done = cli("ask", *arguments, env=NO_MODELS)
    assert done.returncode == 2
    assert says in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.usefixtures("filled")
def test_hidden_and_absent_paths_read_the_same(cli: Run) -> None:
    """A ring that the principal may not see is as one that is not there."""
    hidden = cli("ask", "How do we copy?", "--path", "/ring/dev", "--as", "eve", env=NO_MODELS)
    absent = cli("ask", "How do we copy?", "--path", "/ring/non", "--as", "eve", env=NO_MODELS)
    assert hidden.stderr.replace("dev", "non") == absent.stderr


@pytest.mark.usefixtures("filled")
def test_it_streams_on_a_terminal(environment: dict[str, str], tmp_path: Path) -> None:
    """The evidence first, then the answer and its citations."""
    text = on_a_terminal(["ask", "How do we copy?"], environment | NO_MODELS, tmp_path)
    assert text.index("evidence:") < text.index("[1] ")


@pytest.mark.models
@pytest.mark.usefixtures("filled")
def test_embed_needs_a_model(cli: Run) -> None:
    """Set to none, or to a folder that is not there: one line with the cure."""
    assert "LIBRARYFS_EMBEDDER" in cli("embed", env=NO_MODELS).stderr
    done = cli("embed", env={"LIBRARYFS_EMBEDDER": "/nonexistent"})
    assert done.returncode == 2
    assert "/nonexistent" in done.stderr


@pytest.mark.models
def test_import_goes_on_without_its_model(cli: Run, answer: Answer, notes: Path) -> None:
    """The rows are in; that they have no vectors is said, with the cure. None at all is a choice, and no warning."""
    broken = {"LIBRARYFS_EMBEDDER": "/nonexistent"}
    done = cli("import", notes, "--ring", "dev", env=broken)
    assert done.returncode == 0
    assert "libraryfs embed" in done.stderr
    assert "/nonexistent" in answer("import", notes, "--ring", "dev", env=broken)["embed_error"]
    assert cli("import", notes, "--ring", "dev", env=NO_MODELS).stderr == ""


@pytest.mark.models
def test_with_the_real_models(cli: Run, answer: Answer, notes: Path) -> None:
    """Import embeds, `embed` then finds nothing to do, and a question in other words finds its file."""
    report = answer("import", notes, "--ring", "dev")
    assert report["embed_error"] is None
    assert report["embedded"]["files"] >= 5
    again = answer("embed")
    assert again["chunks"] == 0
    assert again["waiting"] == 0
    result = answer("ask", "On which weekday is the pipeline run?", "--path", "/ring/dev")
    assert result["evidence"][0]["path"] == "/ring/dev/skills/deploy.md"
    assert result["evidence"][0]["origin"] == "vector"
    assert answer("embed", "--all")["files"] == report["embedded"]["files"]
    assert cli("doctor").stdout.count("checksum right") == 2


@pytest.mark.parametrize("command", [["ask", "How?", "--shape"], ["eval", "calibrate"]])
def test_a_pipe_is_no_file_to_read(cli: Run, tmp_path: Path, command: list[str]) -> None:
    """Nobody writes to it: to open it would wait for ever."""
    os.mkfifo(tmp_path / "pipe")
    done = cli(*command, "pipe", env=NO_MODELS)
    assert done.returncode == 2
    assert "'pipe' is not a regular file" in done.stderr


@pytest.mark.usefixtures("filled")
def test_short_and_open(cli: Run, notes: Path) -> None:
    """One sentence; the cited file in the pager; a citation that is not there is said."""
    question = "On which days do we run the pipeline?"
    short = cli("ask", question, "--short", env=NO_MODELS)
    assert short.stdout.count("\n") == 1
    assert "Tuesdays" in short.stdout
    opened = cli("ask", question, "--short", "--open", "1", env=NO_MODELS | {"PAGER": "cat"})
    assert (notes / "skills" / "deploy.md").read_text().strip().splitlines()[-1] in opened.stdout
    missing = cli("ask", question, "--open", "9", env=NO_MODELS)
    assert missing.returncode != 0
    assert "no such citation" in missing.stderr
