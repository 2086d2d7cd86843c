"""The rules of the house, held by reading the source: who imports whom, how long things are, what is written where."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

HOME = Path(__file__).resolve().parent.parent
PACKAGE = HOME / "libraryfs"
BASE = {"frontmatter", "headings", "nodes", "rows", "paths", "errors", "settings", "jsontext", "patterns", "scheduling"}
MAY_IMPORT = {
    "cli": {"cli", "mount", "evals", "ask", "ingest", "models", "library", "store", *BASE},
    "mount": {"mount", "evals", "ask", "library", "store", *BASE},
    "api": {"evals", "ask", "library", "store", *BASE},
    "evals": {"evals", "ask", "models", "library", "store", *BASE},
    "ask": {"ask", "models", "library", "store", *BASE},
    "ingest": {"ingest", "models", "library", "store", *BASE},
    "models": {"models", *BASE},
    "library": {"library", "store", *BASE},
    "store": {"store", *BASE},
    **dict.fromkeys(BASE, BASE),
}
EXCEPTIONS = {("rows", "libraryfs.store.names.to_bytes")}  # the one codec of names; names.py itself imports only paths
MODELS_IN_CLI = {"diagnosis", "models", "trial"}
HEAVY = {"torch", "transformers", "sentence_transformers", "llama_cpp", "onnxruntime", "onnx"}
SQL = re.compile(
    r"\s*(SELECT\s.+\sFROM\s|SELECT [\w(*]|INSERT (OR \w+ )?INTO |UPDATE \w+ SET |DELETE FROM |PRAGMA \w"
    r"|CREATE (TABLE|INDEX|TEMP|TRIGGER|VIRTUAL)|WITH \w+ AS|BEGIN IMMEDIATE|ATTACH )",
    re.DOTALL,
)
LONGEST_MODULE, LONGEST_FUNCTION = 400, 60


@cache
def tracked() -> tuple[Path, ...]:
    """The files that git has, and new ones that it will get."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=HOME, capture_output=True, text=True, check=True)
    return tuple(HOME / name for name in listed.stdout.split("\0") if name and (HOME / name).is_file())


def modules(*folders: str) -> list[Path]:
    """The Python files below these folders of the repository."""
    return sorted(
        path
        for path in tracked()
        if path.suffix == ".py" and path.relative_to(HOME).parts[0] in folders and "sample" not in path.parts
    )


@cache
def syntax(path: Path) -> ast.Module:
    """The file, parsed."""
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def imports(path: Path) -> Iterator[tuple[str, int]]:
    """Full names of the modules that a file imports, with their lines; those for type checking only as well."""
    for node in ast.walk(syntax(path)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports are written out in full here"
            for alias in node.names:
                yield f"{node.module}.{alias.name}", node.lineno


def room(path: Path) -> str:
    """`store` for libraryfs/store/x.py, `paths` for libraryfs/paths.py."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def is_room(name: str) -> bool:
    """Whether libraryfs has a module or folder of this name."""
    return (PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").is_file()


def at(path: Path, line: int) -> str:
    """file:line, for a message."""
    return f"{path.relative_to(HOME)}:{line}"


def test_imports_point_one_way() -> None:
    """cli → mount, evals, ask, ingest → library → store → the base; models from ask, evals, ingest."""
    wrong = []
    for path in modules("libraryfs"):
        here = room(path)
        for name, line in imports(path):
            parts = name.split(".")
            if parts[0] != "libraryfs" or here == "__init__" or len(parts) < 2 or not is_room(parts[1]):
                continue
            if parts[1] not in MAY_IMPORT[here] and (here, name) not in EXCEPTIONS:
                wrong.append(f"{at(path, line)}: {here} imports {parts[1]}")
            if here == "cli" and parts[1] == "models" and path.stem not in MODELS_IN_CLI:
                wrong.append(f"{at(path, line)}: only cli/models.py and the doctor know the models themselves")
    assert not wrong, "\n".join(wrong)


def test_heavy_and_special_packages_stay_in_their_room() -> None:
    """pyfuse3 in mount/, models' packages in the worker process, errno in errors.py and mount/, no sqlite3."""
    wrong = []
    for path in modules("libraryfs"):
        for name, line in imports(path):
            top = name.split(".")[0]
            if (
                (top == "pyfuse3" and room(path) != "mount")
                or (top in HEAVY and not (room(path) == "models" and path.stem.startswith("worker")))
                or (top == "errno" and room(path) not in ("errors", "mount"))
                or (top == "apsw" and room(path) != "store" and not _only_for_types(path, line))
                or top == "sqlite3"
            ):
                wrong.append(f"{at(path, line)}: imports {top}")
    assert not wrong, "\n".join(wrong)


def _only_for_types(path: Path, line: int) -> bool:
    """Whether the line is inside `if TYPE_CHECKING:`."""
    return any(
        isinstance(node, ast.If)
        and "TYPE_CHECKING" in ast.unparse(node.test)
        and node.lineno <= line <= (node.end_lineno or 0)
        for node in ast.walk(syntax(path))
    )


def test_sql_is_in_the_store_only() -> None:
    """No SQL text outside of libraryfs/store."""
    wrong = [
        f"{at(path, node.lineno)}: {node.value[:60]!r}"
        for path in modules("libraryfs")
        if room(path) != "store"
        for node in ast.walk(syntax(path))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and SQL.match(node.value)
    ]
    assert not wrong, "\n".join(wrong)


def test_modules_and_functions_are_short() -> None:
    """A module fits in one reading, a function on a screen."""
    wrong = []
    for path in modules("libraryfs", "scripts", "tests"):
        lines = len(path.read_text(encoding="utf-8").splitlines())
        if lines > LONGEST_MODULE:
            wrong.append(f"{at(path, 1)}: {lines} lines")
        for node in ast.walk(syntax(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                if length > LONGEST_FUNCTION:
                    wrong.append(f"{at(path, node.lineno)}: {node.name} has {length} lines")
    assert not wrong, "\n".join(wrong)


def test_public_things_have_docstrings() -> None:
    """Modules, classes, functions and methods whose names do not start with an underscore."""
    wrong = []
    for path in modules("libraryfs"):
        if path.name == "__init__.py" and not path.read_text().strip():
            continue
        if not ast.get_docstring(syntax(path)):
            wrong.append(f"{at(path, 1)}: the module")
        wrong += [
            f"{at(path, node.lineno)}: {node.name}" for node in _public(syntax(path)) if not ast.get_docstring(node)
        ]
    assert not wrong, "\n".join(wrong)


def _public(parent: ast.Module | ast.ClassDef) -> Iterator[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in parent.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
            yield node
            if isinstance(node, ast.ClassDef):
                yield from _public(node)


def test_nothing_is_a_stub() -> None:
    """Nothing says that it will be written later."""
    wrong = []
    for path in modules("libraryfs", "scripts"):
        text = path.read_text(encoding="utf-8")
        for number, line in enumerate(text.splitlines(), 1):
            if re.search(r"\b(NotImplementedError|TODO|FIXME|XXX|HACK)\b", line):
                wrong.append(f"{at(path, number)}: {line.strip()}")
    assert not wrong, "\n".join(wrong)


def test_no_test_is_skipped_or_mocks_the_mount() -> None:
    """A skipped test is a failure, and the mount is tested on the real thing."""
    wrong = []
    for path in modules("tests"):
        for node in ast.walk(syntax(path)):
            if isinstance(node, ast.Attribute) and node.attr in ("skip", "skipif", "importorskip", "skipTest"):
                wrong.append(f"{at(path, node.lineno)}: {ast.unparse(node)}")
            if (
                isinstance(node, ast.Call)
                and ast.unparse(node.func).endswith("patch")
                and "pyfuse3" in ast.unparse(node)
            ):
                wrong.append(f"{at(path, node.lineno)}: a mock of pyfuse3")
    assert not wrong, "\n".join(wrong)


def test_top_level_holds_only_what_it_may() -> None:
    """The first thing that a visitor sees stays short."""
    allowed = {"pyproject.toml", "libraryfs", "tests", "scripts", "Dockerfile", "README.md", ".ci", ".github"}
    allowed |= {".gitignore", "LICENSE", "CHANGELOG.md", ".pre-commit-config.yaml"}  # looked for by name
    assert {path.relative_to(HOME).parts[0] for path in tracked()} <= allowed


def test_no_file_names_a_machine_of_ours() -> None:
    """What is committed works elsewhere: no home folder or work folder of one machine."""
    ours = re.compile("|".join(("/" + "work/", "/" + "root/", "/" + "home/(?!runner|libraryfs|me|alice|you)")))
    wrong = []
    for path in tracked():
        text = path.read_bytes().decode("utf-8", "replace")
        wrong += [at(path, n) for n, line in enumerate(text.splitlines(), 1) if ours.search(line)]
    assert not wrong, "\n".join(wrong)


def test_every_package_used_is_declared() -> None:
    """What libraryfs imports is in pyproject.toml: in the base when it is imported outside of models/."""
    project = tomllib.loads((HOME / "pyproject.toml").read_text())["project"]
    base = _import_names(project["dependencies"])
    with_models = base | _import_names(project["optional-dependencies"]["models"])
    wrong = []
    for path in modules("libraryfs"):
        known = with_models if room(path) in ("models", "ask", "evals", "ingest") else base
        for name, line in imports(path):
            top = name.split(".")[0]
            if top not in known and top != "libraryfs" and top not in sys.stdlib_module_names:
                wrong.append(f"{at(path, line)}: {top} is not declared")
    assert not wrong, "\n".join(wrong)


def _import_names(requirements: list[str]) -> set[str]:
    special = {"pyyaml": "yaml", "markdown_it_py": "markdown_it"}
    special |= {"llama_cpp_python": "llama_cpp", "google_re2": "re2"}
    names = {re.split(r"[^\w.-]", text)[0].lower().replace("-", "_") for text in requirements}
    return {special.get(name, name) for name in names}


@pytest.mark.parametrize("name", ["setup", "test", "check", "demo", "fresh"])
def test_scripts_run_and_are_valid_shell(name: str) -> None:
    """The scripts that the README names are executable, and bash can read them."""
    script = HOME / "scripts" / name
    assert script.stat().st_mode & 0o111
    subprocess.run(["bash", "-n", script], check=True)


@pytest.mark.models
def test_lock_is_complete_for_each_stage() -> None:
    """Each stage of scripts/setup installs with --no-deps: what its packages need is in its lines or the base's."""
    done = subprocess.run([sys.executable, HOME / "scripts/lock", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, f"run: .venv/bin/python scripts/lock\n{done.stdout}{done.stderr}"


def test_the_base_stage_has_no_torch_and_no_llama() -> None:
    """The torch of the models' stage is the small one, and each package has one version in all stages."""
    lines = (HOME / "scripts/requirements.lock").read_text().splitlines()
    base = lines[lines.index("# stage: base") : lines.index("# stage: models")]
    assert not [line for line in base if line.startswith(("torch", "llama", "transformers", "scipy"))]
    assert "torch==2.13.0+cpu" in lines
    pins = {line for line in lines if "==" in line}
    assert len(pins) == len({line.split("==")[0].lower().replace("_", "-") for line in pins})
