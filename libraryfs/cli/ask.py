"""`libraryfs ask`: a question over paths, answered from what is there."""

import re
import sys
from pathlib import Path
from typing import Any

import click

from libraryfs.cli.options import (
    LIBRARY_PATH,
    REGULAR_FILE,
    as_option,
    common_of,
    json_option,
    logging_options,
    snapshot_option,
)
from libraryfs.cli.output import escaped, show_json
from libraryfs.errors import InvalidRequest, LibraryError

OPTIONS = {"paths": "--path", "shape": "--shape", "latency_budget_ms": "--latency-budget-ms"}
"""What the command line calls a field of the request."""

EPILOG = """\b
Examples:
  libraryfs ask "When do we deploy?"
  libraryfs ask "When do we deploy?" --path /ring/dev/decisions --path /ring/ops --json
  libraryfs ask "Who may see a ring?" --retrieval vector --ground --latency-budget-ms 20000
  libraryfs ask "Which port?" --shape port.schema.json
  libraryfs ask "When do we deploy?" --short
  libraryfs ask "When do we deploy?" --open 1
\b
Exit code 0 with an answer, 1 without one (no file answers it, it is not in the library, or the time was
up), 2 when the request or a model is at fault.
"""


@click.command("ask", epilog=EPILOG)
@click.argument("question", nargs=-1, required=True, metavar="QUESTION")
@click.option(
    "--path", "paths", multiple=True, type=LIBRARY_PATH, help="Ask what is below PATH; more than once for more."
)
@click.option("--shape", type=REGULAR_FILE, help="JSON Schema that the answer must satisfy.")
@click.option("--ground", is_flag=True, help="List the answer's claims, each with its evidence.")
@click.option("--latency-budget-ms", type=int, metavar="N", help="Answer within N ms, or give the evidence only.")
@click.option(
    "--retrieval",
    type=click.Choice(["vector", "hybrid"]),
    default="hybrid",
    show_default=True,
    help="How evidence is found: by meaning, or by meaning and words.",
)
@click.option("--short", is_flag=True, help="Print one sentence only.")
@click.option(
    "--open",
    "opened",
    type=click.IntRange(min=1),
    metavar="N",
    help="Open citation N in $PAGER or $EDITOR at its line.",
)
@as_option
@snapshot_option
@json_option
@logging_options
@click.pass_context
def command(
    context: click.Context,
    question: tuple[str, ...],
    paths: tuple[str, ...],
    shape: Path | None,
    ground: bool,
    latency_budget_ms: int | None,
    retrieval: str,
    short: bool,
    opened: int | None,
    principal: str,
) -> int:
    """Answer QUESTION from the library, with citations. A - reads the question from stdin."""
    from libraryfs.ask import render
    from libraryfs.ask.pipeline import ask
    from libraryfs.ask.request import build
    from libraryfs.cli import answer_text
    from libraryfs.cli.models import models
    from libraryfs.cli.open_citation import open_citation
    from libraryfs.library.resolver import Library

    common = common_of(context)
    common.start_logging()
    fields: dict[str, Any] = {
        "question": _stdin() if question == ("-",) else " ".join(question),
        "paths": paths or ("/",),
        "shape": None if shape is None else _schema(shape),
        "ground": ground,
        "latency_budget_ms": latency_budget_ms,
        "retrieval": retrieval,
    }
    try:
        request = build(fields)
    except LibraryError as error:
        raise InvalidRequest(_in_options(error.message)) from None
    with models() as chosen, common.open() as snapshot:
        library = Library(snapshot, principal)
        stream = answer_text.Terminal() if sys.stdout.isatty() and not (common.json or short) else None
        on_event = None if stream is None else (lambda event: _write(stream.feed(escaped(event))))
        result = ask(library, chosen, request, None, on_event)
        shown = escaped(result) if sys.stdout.isatty() else result
        if short and not common.json:
            _write(answer_text.short(shown).encode("utf-8", "surrogateescape") + b"\n")
        elif stream is not None:
            _write(stream.finish(shown))
        else:
            _write(show_json(render.json(result)) if common.json else render.text(shown))
        if opened is not None:
            open_citation(library, result, opened)
    if result.error is not None:
        click.echo(f"libraryfs: {escaped(result.error.message)}", err=True)
        return 2
    return 0 if result.answer is not None else 1


def _in_options(message: str) -> str:
    """The message with the option's name in place of the request's field."""
    for field, option in OPTIONS.items():
        message = re.sub(rf"^{field}(\[\d+\])?:", f"{option}:", message)
    return message


def _stdin() -> str:
    """What is not UTF-8 stays recognisable, and is refused as a question with the reason."""
    return sys.stdin.buffer.read().decode("utf-8", "surrogateescape")


def _write(data: bytes) -> None:
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def _schema(path: Path) -> dict[str, Any]:
    from libraryfs.ask.request import json_object

    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InvalidRequest(f"shape: {path}: {reason}") from None
    return json_object(text, f"shape: {path}")
