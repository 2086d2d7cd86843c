"""The files that a report is written to: checked before the run, which may take an hour, and written after it."""

import os
from pathlib import Path

import click


def check(files: dict[str, Path | None]) -> None:
    """Of option → file: raises click.UsageError where one cannot be written, or where two are the same."""
    taken: dict[str, str] = {}
    for option, file in files.items():
        if file is None:
            continue
        reason = _why_not(file)
        if reason is not None:
            raise click.BadParameter(reason, param_hint=option)
        other = taken.setdefault(os.path.realpath(file), option)
        if other != option:
            raise click.UsageError(f"{other} and {option} name the same file {str(file)!r}; give each its own")


def _why_not(file: Path) -> str | None:
    if file.is_dir():
        return f"{str(file)!r} is a folder; name a file"
    if file.exists():
        return None if os.access(file, os.W_OK) else f"{str(file)!r} cannot be written; check its permissions"
    folder = file.parent
    if not folder.is_dir():
        return f"the folder {str(folder)!r} does not exist; make it, or name another file"
    if not os.access(folder, os.W_OK | os.X_OK):
        return f"the folder {str(folder)!r} cannot be written; check its permissions, or name another file"
    return None


def write(file: Path, data: bytes) -> bool:
    """Whether the file was written; if not, stderr says why. Not an exception: the report itself stands."""
    try:
        file.write_bytes(data)
    except OSError as error:
        click.echo(f"libraryfs: {file}: cannot be written: {error.strerror}; run it again with another file", err=True)
        return False
    return True
