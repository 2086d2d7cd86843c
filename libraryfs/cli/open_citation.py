"""`ask --open N`: the file of a citation in the user's pager or editor, at its line."""

import os
import shlex
import subprocess
import tempfile
from pathlib import Path

import click

from libraryfs.ask.result import AskResult
from libraryfs.library.resolver import Library

_PLUS = frozenset(
    [
        "less",
        "more",
        "most",
        "vi",
        "vim",
        "nvim",
        "view",
        "gvim",
        "nano",
        "pico",
        "emacs",
        "emacsclient",
        "micro",
        "kak",
        "joe",
        "ne",
        "mg",
        "jed",
    ]
)
"""Programs that take +LINE before the file."""
_COLON = frozenset({"code", "codium", "code-insiders"})
"""Programs that take --goto FILE:LINE."""


def open_citation(library: Library, result: AskResult, number: int) -> None:
    """Show the file of citation `number` (of the nearest passages, where there is no answer); waits until it is closed.

    Raises ClickException when there is no such citation, or no program to show it.
    """
    cited = result.nearest or result.citations
    if not 1 <= number <= len(cited):
        has = f"the answer has {len(cited)}" if cited else "there are none"
        raise click.ClickException(f"--open {number}: no such citation; {has}")
    one = cited[number - 1]
    content = library.content(library.resolve(one.path))
    with tempfile.TemporaryDirectory(prefix="libraryfs-") as folder:
        file = Path(folder) / (os.path.basename(one.path) or "file")
        file.write_bytes(content)
        file.chmod(0o400)  # what is changed in a copy would be lost
        command = _command(str(file), one.line)
        try:
            subprocess.run(command, check=False)
        except OSError as error:
            reason = error.strerror or error
            raise click.ClickException(f"--open: {command[0]}: {reason}; set PAGER or EDITOR") from None


def _command(file: str, line: int) -> list[str]:
    program = shlex.split(os.environ.get("PAGER") or os.environ.get("EDITOR") or "less")
    name = os.path.basename(program[0])
    if name in _COLON:
        return [*program, "--wait", "--goto", f"{file}:{line}"]
    return [*program, f"+{line}", file] if name in _PLUS else [*program, file]
