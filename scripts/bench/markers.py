"""Where a benchmark puts its tables."""

from pathlib import Path

import click


def write_between(path: Path, marker: str, text: str) -> None:
    """Puts text between `<!-- marker -->` and `<!-- /marker -->` in a file."""
    whole = path.read_text(encoding="utf-8")
    start, end = f"<!-- {marker} -->", f"<!-- /{marker} -->"
    if start not in whole or end not in whole:
        raise click.ClickException(f"{path}: no {start} … {end}")
    before, rest = whole.split(start, 1)
    path.write_text(before + start + "\n" + text.rstrip() + "\n" + end + rest.split(end, 1)[1], encoding="utf-8")
