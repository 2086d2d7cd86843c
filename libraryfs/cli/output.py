"""What commands print: JSON or text on stdout, progress on stderr and only on a terminal."""

import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar, cast

import click
from pydantic import BaseModel

_COMMANDS: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]|\r(?!\n)")
"""What a terminal obeys: C0 but tab and line ends, DEL, C1; a carriage return alone goes back over what was shown."""

_Value = TypeVar("_Value")

Progress = Callable[[str, int, int], None]


def print_json(value: BaseModel | dict[str, Any] | list[Any]) -> None:
    """One JSON document. Text that is not valid Unicode keeps its escapes, so that the output always is."""
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="python", by_alias=True)
    click.echo(json.dumps(value, indent=2, ensure_ascii=True, default=str))


def escaped(value: _Value) -> _Value:
    """Stored text as a terminal may show it: what it would obey becomes `\\x1b`. Of a model, a list: all its texts."""
    made: Any = value
    if isinstance(value, str):
        made = _COMMANDS.sub(lambda found: f"\\x{ord(found[0]):02x}", value)
    elif isinstance(value, BaseModel):
        made = value.model_copy(update={name: escaped(getattr(value, name)) for name in type(value).model_fields})
    elif isinstance(value, dict):
        made = {escaped(key): escaped(item) for key, item in value.items()}
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        made = type(value)(*map(escaped, value))
    elif isinstance(value, list | tuple):
        made = type(value)(map(escaped, value))
    return cast(_Value, made)


def show(text: str | bytes) -> None:
    """Prints text that holds stored text and no styles: escaped on a terminal, verbatim into a file or a pipe.

    Not by click, which takes out what looks like a style.
    """
    if sys.stdout.isatty():
        text = escaped(text.decode("utf-8", "surrogateescape") if isinstance(text, bytes) else text)
    if isinstance(text, bytes):
        sys.stdout.flush()
        sys.stdout.buffer.write(text)
    else:
        sys.stdout.write(text)
    sys.stdout.flush()


def show_json(data: bytes) -> bytes:
    """JSON on its way to stdout: on a terminal, the control characters that JSON leaves as they are, as its escapes."""
    if not sys.stdout.isatty():
        return data
    text = data.decode("utf-8", "surrogateescape")
    text = _COMMANDS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    return text.encode("utf-8", "surrogateescape")


class Rows:
    """stdout for lines of JSON, each written whole."""

    def write(self, data: bytes, /) -> None:
        """One line."""
        sys.stdout.buffer.write(show_json(data))


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
