"""The bar of a run that asks question after question."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def asking_bar(enabled: bool) -> Iterator[Callable[[int, int, str | None], None]]:
    """A progress callback (done, total, the rate so far): a bar on stderr when that is a terminal, else nothing."""
    if not enabled or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield lambda done, total, rate: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task("asking", total=None, rate="")
        yield lambda done, total, rate: bars.update(task, completed=done, total=total, rate=rate or "")
