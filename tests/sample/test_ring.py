"""The sample ring is the documentation: it imports cleanly, and what it says is what the code does."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import yaml

from libraryfs import errors, paths, rows, sample
from libraryfs.ask.request import AskRequest
from libraryfs.cli.main import COMMANDS
from libraryfs.evals.evalset import parse_evalset
from libraryfs.evals.matching import fold, says
from libraryfs.evals.statistics import PASS_TENTHS
from libraryfs.ingest import front_matter, jsonl
from libraryfs.ingest.importer import import_source
from libraryfs.library.drilldown import DrilldownRequest
from libraryfs.mount import control, sessions
from libraryfs.settings import Settings
from libraryfs.store import bodies, check, inodes
from libraryfs.store.snapshot import Snapshot
from tests.ingest.shown import attributes, files

RING = sample.ring()
DOCUMENTS = sorted(path.relative_to(RING).as_posix() for path in RING.rglob("*.md"))


def text_of(name: str) -> str:
    return (RING / name).read_text(encoding="utf-8")


def fields_of(name: str) -> dict[str, object]:
    fields: dict[str, object] = yaml.safe_load(text_of(name).split("---\n")[1])
    return fields


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Snapshot]:
    path = tmp_path_factory.mktemp("sample") / "library.db"
    with Snapshot.open(path, create=True) as made:
        report = import_source(made, RING, "/ring/libraryfs", "alice")
        assert (report.skipped, report.warnings) == ({}, [])
    with Snapshot.open(path) as opened:
        yield opened


def test_nothing_is_wrong_with_it(snapshot: Snapshot) -> None:
    assert list(check.check(snapshot.db)) == []
    shown = files(snapshot)
    for section in paths.SECTIONS:
        assert any(path.startswith(f"/ring/libraryfs/{section}/") for path in shown), section


@pytest.mark.parametrize("name", [name for name in DOCUMENTS if name.startswith("decisions/")])
def test_decision_records_are_whole(name: str) -> None:
    fields = fields_of(name)
    assert str(fields["id"]) == f"d-{Path(name).name[:4]}"
    assert fields["status"] in ("accepted", "superseded")
    assert fields["date"]
    body = text_of(name).split("---\n", 2)[2]
    assert body.startswith(f"# {fields['title']}\n")
    for part in ("**Context.**", "**Decision.**", "**Consequences.**"):
        assert part in body


def test_a_superseded_record_has_a_successor_and_no_other_has(snapshot: Snapshot) -> None:
    paths_of = [path for path in files(snapshot) if path.startswith("/ring/libraryfs/decisions/")]
    shown = [attributes(snapshot, path) for path in paths_of]
    superseded = {one["id"] for one in shown if one["status"] == "superseded"}
    assert superseded == {one["id"] for one in shown if "superseded_by" in one}
    assert len(superseded) >= 2


def test_the_settings_are_all_there() -> None:  # scripts/readme makes the table
    table = dict(
        re.findall(r"^\| `LIBRARYFS_(\w+)` \| `?([^`|]*?)`? \|", text_of("resources/settings.md"), re.MULTILINE)
    )
    assert set(table) == {name.upper() for name in Settings.model_fields}
    for name, field in Settings.model_fields.items():
        if isinstance(field.default, int | float | str):
            assert table[name.upper()] == (format(field.default) or "not set")


def test_the_jsonl_form_is_all_there() -> None:
    text = text_of("resources/jsonl.md")
    for row in (
        rows.NamespaceRow,
        rows.MemoryRow,
        rows.WorkspaceRow,
        rows.ArtifactRow,
        rows.PartRow,
        rows.EdgeRow,
        rows.GrantRow,
    ):
        store = row.model_fields["store"].default
        line = re.search(rf"^\| `{store}` \| (.*)$", text, re.MULTILINE)
        assert line
        needed, further = line[1].split(" | ", 1)
        for name, field in row.model_fields.items():
            if name in ("store", "content") or (name == "content_base64" and store != "part"):
                continue
            if name in ("created_at", "updated_at") and "times" in further:
                continue
            assert f"`{name}`" in (needed if field.is_required() else further), (store, name)


FACTS = [
    ("resources/jsonl.md", f"at most {jsonl.MAX_LINE >> 20} MiB"),
    ("resources/glossary.md", "`.ask`, `.eval`, `.tree`, `.drilldown`"),
    (
        "resources/paths-and-names.md",
        "charter, skills, instructions, resources, decisions, policies, protocols, memories, workspace",
    ),
    ("policies/stored-text-is-data.md", f"up to {front_matter.HEAD_BYTES >> 10} KiB"),
    ("policies/errors.md", "EIO"),
    ("policies/reading-is-harmless.md", "EROFS"),
    ("decisions/0001-one-file.md", "waits for ten seconds"),
    ("decisions/0005-computed-inodes.md", f"{inodes.ENTRY_BITS} bits: {inodes.ENTRY_BITS - inodes.ROW_BITS} of"),
    ("decisions/0007-bodies-and-chunks.md", f"at most {bodies.CHUNK >> 10} KiB"),
    ("decisions/0009-change-log.md", f"every {Settings.model_fields['refresh_ms'].default} milliseconds"),
    ("decisions/0019-drift-in-counts.md", "more than 0.05"),
    ("instructions/ask.md", f"at most {control.MAX_REQUEST >> 10} KiB"),
    ("instructions/ask.md", "ten minutes"),
    ("instructions/write-an-eval-set.md", f"at least 0.{PASS_TENTHS} of its fragments"),
    (
        "skills/read-a-large-tree.md",
        "three levels, 20 entries a level and 4,000 tokens of excerpts, and stops at 200 nodes",
    ),
]


@pytest.mark.parametrize(("name", "says_so"), FACTS)
def test_what_it_says_is_so(name: str, says_so: str) -> None:
    assert says_so in " ".join(text_of(name).split())


def test_the_words_for_numbers_are_the_numbers() -> None:
    assert Settings().busy_timeout_ms == 10_000
    assert sessions.KEPT_SECONDS == 600
    assert (errors.ReadOnly.errno, errors.MountError.errno) == (30, 5)
    caps = DrilldownRequest().model_dump()
    assert caps == {"max_depth": 3, "max_items_per_level": 20, "max_total_tokens": 4000, "circuit_breaker": 200}


def commands() -> list[tuple[str, str]]:
    found = []
    for name in DOCUMENTS:
        for line in text_of(name).splitlines():
            quoted = [line] if line.startswith("    libraryfs ") else re.findall(r"`(libraryfs [^`]+)`", line)
            found += [(name, command.strip()) for command in quoted]
    return found


@pytest.mark.parametrize(("name", "command"), commands())
def test_every_command_exists_with_its_options(name: str, command: str) -> None:
    from libraryfs.cli.main import main

    words = command.split()[1:]
    context = click.Context(main)
    known = {option for parameter in main.params for option in parameter.opts}
    while words[0].startswith("-"):
        assert words[0] in known
        words = words[2:]
    assert words[0] in COMMANDS, command
    chosen = main.get_command(context, words[0])
    assert chosen is not None
    used = chosen.make_context(words[0], words[1:2], context, resilient_parsing=True).command  # `eval new`
    known |= {option for parameter in used.params for option in parameter.opts}
    for word in words[1:]:
        if word.startswith("--"):
            assert word.strip(".,;") in known, command


def test_the_examples_work(tmp_path: Path) -> None:
    AskRequest.model_validate(json.loads(text_of("artifacts/examples/ask-request.json")))
    with Snapshot.open(tmp_path / "library.db", create=True) as made:
        report = import_source(made, RING / "artifacts/examples/rows.jsonl", None, "alice")
        assert report.namespaces == ["/ring/example"]
        assert attributes(made, "/ring/example/decisions/deploy-on-fridays.md", "bob")["superseded_by"] == "d2"
        dot = files(made)["/ring/example/artifacts/img/dot.gif"]
        assert (dot[:6], dot[-1:]) == (b"GIF89a", b";")
        assert list(check.check(made.db)) == []


def test_every_question_of_the_eval_set_has_its_answer_in_the_ring(snapshot: Snapshot) -> None:
    questions = parse_evalset((RING / "workspace/eval-set.md").read_bytes()).questions
    texts = [
        fold(data.decode()) for path, data in files(snapshot).items() if path.endswith(".md") and "eval-set" not in path
    ]
    answerable = [question for question in questions if not question.expects_abstention]
    assert len(questions) >= 20
    assert 1 <= len(questions) - len(answerable) <= 2
    for question in answerable:
        for fragment in question.fragments:
            assert any(says(text, fragment) for text in texts), question.text


def test_the_tests_that_hold_the_invariants_exist() -> None:
    """The architecture page names them, and what it names is there."""
    named = set(re.findall(r"`(tests/[\w/]+\.py)`", text_of("resources/code-map.md")))
    assert len(named) > 10
    for name in named:
        assert (Path(__file__).resolve().parents[2] / name).is_file(), name
