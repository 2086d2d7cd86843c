"""What commands print: JSON or text on stdout, progress on stderr and only on a terminal."""

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click
from pydantic import BaseModel

Progress = Callable[[str, int, int], None]


def print_json(value: BaseModel | dict[str, Any] | list[Any]) -> None:
    """One JSON document. Text that is not valid Unicode keeps its escapes, so that the output always is."""
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="python", by_alias=True)
    click.echo(json.dumps(value, indent=2, ensure_ascii=True, default=str))


def good(text: str) -> str:
    """The text in green, on a terminal."""
    return click.style(text, fg="green")


def bad(text: str) -> str:
    """The text in red, on a terminal."""
    return click.style(text, fg="red")


def faint(text: str) -> str:
    """The text dimmed, on a terminal."""
    return click.style(text, dim=True)


def count(number: int, one: str, many: str | None = None) -> str:
    """`3 rows`, `1 row`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def table(rows: list[tuple[str, ...]]) -> Iterator[str]:
    """The rows as lines, columns aligned."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _nothing(_step: str, _done: int, _total: int) -> None:
    return None


@contextmanager
def progress_bar(enabled: bool = True) -> Iterator[Progress]:
    """A progress callback (step, done, total). It shows bars on stderr when that is a terminal, else nothing."""
    if not enabled or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield _nothing
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description:>8}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
    )
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True) as bars:
        tasks: dict[str, Any] = {}

        def report(step: str, done: int, total: int) -> None:
            if step not in tasks:
                tasks[step] = bars.add_task(step, total=None, rate="")
            task = bars.tasks[bars.task_ids.index(tasks[step])]
            rate = f"{done / task.elapsed:,.0f}/s" if task.elapsed else ""
            bars.update(tasks[step], completed=done, total=total or None, rate=rate)

        yield report
