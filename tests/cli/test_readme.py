"""The README and the pages that it leads to claim what is so.

Their commands are commands, their made parts are up to date, and the files that they name exist.
"""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from libraryfs.cli import eval_set
from libraryfs.cli.main import COMMANDS, main
from libraryfs.cli.mount_helper import command as mount_helper
from libraryfs.sample import ring
from tests.cli.conftest import Run

HOME = Path(__file__).resolve().parents[2]
PAGES = (
    "README.md",
    *(
        f"libraryfs/sample/ring/{name}.md"
        for name in (
            "instructions/import-a-folder",
            "instructions/run-permanently",
            "instructions/give-access",
            "resources/commands",
            "resources/files-in-the-mount",
            "resources/measurements",
            "resources/python-api",
            "resources/settings",
        )
    ),
)
README = "\n".join((HOME / page).read_text(encoding="utf-8") for page in PAGES)
DOCKERFILE = (HOME / "Dockerfile").read_text(encoding="utf-8")


def shell_lines() -> Iterator[str]:
    """The lines of shell blocks, the examples of the page of commands, and commands in running text."""
    for language, body in re.findall(r"(?ms)^```(\w*)\n(.*?)^```", README):
        for line in body.splitlines():
            if language == "sh":
                yield line
            elif language == "console" and line.startswith("$ "):
                yield line[2:]
            elif language == "text" and line.startswith("libraryfs "):
                yield re.split(r"\s{2,}", line)[0]  # what it does stands beside it
    yield from re.findall(r"`(libraryfs [^`]+ [^`]+)`", README)  # one that is only named is no call


def commands() -> list[str]:
    """Each `libraryfs …` call in the README, without redirections and without what is after it."""
    calls = []
    for line in shell_lines():
        for part in re.split(r"\s(?:&&|\|)\s|;\s", line):
            words = shlex.split(re.sub(r"\s\d?>>?\s*\S+", "", part), comments=True)
            if words and words[0] == "libraryfs":
                calls.append(shlex.join(words[1:]))
    return sorted(set(calls))


@pytest.mark.parametrize("call", commands())
def test_a_documented_call_parses(call: str) -> None:
    """Command, arguments and options exist and take these values. Nothing is run."""
    words = shlex.split(call)
    group = main.make_context("libraryfs", [], resilient_parsing=True)
    command = main.get_command(group, words[0])
    assert command is not None, f"no command {words[0]}"
    sources = {"notes/", "journal/", "site/", "rows.jsonl", "~/library"} if words[0] != "mount" else set()
    existing = [str(HOME) if word in sources else word for word in words[1:]]
    with command.make_context(words[0], existing, parent=group) as context:
        assert context.params is not None


RUN_AS_THEY_ARE = (
    "ask",
    "check",
    "completion",
    "doctor",
    "drilldown",
    "export",
    "grant",
    "grants",
    "import",
    "revoke",
    "tree",
)


def test_documented_calls_run(cli: Run, tmp_path: Path) -> None:
    """All that do not mount, embed or evaluate, on the sample ring as ring dev and what else their words name."""
    for name in ("notes", "journal"):
        (tmp_path / name).symlink_to(ring())
    environment = {"LIBRARYFS_EMBEDDER": "none", "LIBRARYFS_LLM": "none"}
    assert cli("import", "notes", "--ring", "dev", env=environment).returncode == 0
    assert cli("import", "journal", "--ring", "ops", env=environment).returncode == 0
    assert cli("import", "journal", "--agent", "alice", env=environment).returncode == 0
    assert cli("export", "--output", "rows.jsonl").returncode == 0
    need_more = {"--shape", "--open", "--map", "--section"}  # a file, a pager, a repository
    run = [words for words in map(shlex.split, commands()) if words[0] in RUN_AS_THEY_ARE and not need_more & {*words}]
    assert {words[0] for words in run} == set(RUN_AS_THEY_ARE)
    for words in run:
        done = cli(*words, env=environment)
        assert done.returncode in ((0, 1) if words[0] in ("ask", "check") else (0,)), (words, done.stderr)
        assert done.stdout or "-o" in words or words[0] == "export", words


def test_commands_in_the_text_exist() -> None:
    """`libraryfs NAME` in running text."""
    assert set(re.findall(r"`libraryfs (\w+)`", README)) <= set(COMMANDS)


def test_every_command_is_documented() -> None:
    """A command that the README does not show is one that nobody finds."""
    shown = {shlex.split(call)[0] for call in commands()}
    assert set(COMMANDS) <= shown


def test_every_option_in_the_text_exists() -> None:
    """`--option` in running text is an option of some command."""
    group = main.make_context("libraryfs", [], resilient_parsing=True)
    known = {option for parameter in main.get_params(group) for option in parameter.opts}
    for name in COMMANDS:
        command = main.get_command(group, name)
        assert command is not None
        known |= {option for parameter in command.get_params(click.Context(command)) for option in parameter.opts}
    for command in (eval_set.new, eval_set.add):
        known |= {option for parameter in command.get_params(click.Context(command)) for option in parameter.opts}
    known |= {"--fast", "--check", "--fix", "--models", "--no-deps", "--no-cache-dir"}  # of scripts/
    prose = re.sub(r"(?ms)^```.*?^```", "", README)
    assert set(re.findall(r"`(--[a-z-]+)", prose)) <= known


def test_fstab_options_are_accepted() -> None:
    """The options of the README's fstab line, through the parser of the helper."""
    found = re.search(r"(?m)^(\S+\.db)\s+(\S+)\s+fuse\.libraryfs\s+(\S+)\s+0 0$", README)
    assert found
    mount_helper.main([found[1], found[2], "-o", found[3], "-f"], standalone_mode=False)


@pytest.mark.models
def test_made_parts_are_up_to_date() -> None:
    """The settings table and the terminal session are what scripts/readme makes of this source."""
    done = subprocess.run(
        [sys.executable, "scripts/readme", "--check"],
        cwd=HOME,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"run: .venv/bin/python scripts/readme\n{done.stdout}{done.stderr}"


def test_files_that_the_readme_names_exist() -> None:
    """Paths of the repository in the text."""
    for name in re.findall(r"`((?:scripts|libraryfs|tests|\.ci)/[\w./-]+)`", README):
        assert (HOME / name).exists(), name


def test_dockerfile_copies_what_exists_and_starts_what_parses() -> None:
    """COPY's sources are in the repository; the entry point and its default are a call that the CLI takes."""
    for sources in re.findall(r"(?m)^COPY (?!--from)(.+) \S+$", DOCKERFILE):
        for name in sources.split():
            assert (HOME / name).exists(), name
    assert 'ENTRYPOINT ["libraryfs"]' in DOCKERFILE
    found = re.search(r'(?m)^CMD \["(.+)"\]$', DOCKERFILE)
    assert found
    words = found[1].split('", "')
    group = main.make_context("libraryfs", [], resilient_parsing=True)
    command = main.get_command(group, words[0])
    assert command is not None
    with command.make_context(words[0], words[1:], parent=group) as context:
        assert context.params["foreground"] is True
    assert re.search(r"(?m)^USER (?!root)\w+$", DOCKERFILE), "the container does not run as root"
    assert DOCKERFILE.count("\nFROM ") == 2
