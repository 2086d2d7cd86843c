"""`libraryfs drilldown`: what is below a path, with excerpts, under caps."""

import click
from pydantic import ValidationError

from libraryfs.cli.options import (
    LIBRARY_PATH,
    Decorated,
    as_option,
    common_of,
    json_option,
    logging_options,
    snapshot_option,
)
from libraryfs.cli.output import print_json, show
from libraryfs.library.drilldown import DrilldownRequest, drilldown, render
from libraryfs.library.resolver import Library

EPILOG = """\b
Examples:
  libraryfs drilldown /ring/dev
  libraryfs drilldown /ring/dev/workspace --max-depth 2 --max-items-per-level 50 --json
\b
The last line says why it stopped: completed, or the cap that it met, and how many entries were left out.
"""
HELP = {
    "max_depth": "Levels below PATH.",
    "max_items_per_level": "Entries of one folder.",
    "max_total_tokens": "Tokens of all excerpts.",
    "circuit_breaker": "Nodes of the whole walk.",
}


def _caps(command: Decorated) -> Decorated:
    """One option for each cap, in the order of HELP."""
    for name, text in reversed(HELP.items()):
        default = DrilldownRequest.model_fields[name].default
        command = click.option(_option(name), type=int, default=default, show_default=True, help=text)(command)
    return command


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


@click.command("drilldown", epilog=EPILOG)
@click.argument("path", type=LIBRARY_PATH)
@_caps
@as_option
@snapshot_option
@json_option
@logging_options
@click.pass_context
def command(context: click.Context, /, path: str, principal: str, **caps: int) -> None:
    """Show what is below PATH, with excerpts, breadth first, under four caps."""
    common = common_of(context)
    common.start_logging()
    try:
        request = DrilldownRequest.model_validate(caps)
    except ValidationError as error:
        first = error.errors()[0]
        raise click.BadParameter(first["msg"], param_hint=_option(str(first["loc"][0]))) from None
    with common.open() as snapshot:
        result = drilldown(Library(snapshot, principal), path, request)
    if common.json:
        print_json(result)
    else:
        show(render(result))
