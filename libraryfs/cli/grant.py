"""`libraryfs grant`: a principal may see a ring or an agent from now on."""

import click

from libraryfs.cli.access import change_access
from libraryfs.cli.options import LIBRARY_PATH, PRINCIPAL, json_option, logging_options, snapshot_option
from libraryfs.cli.output import show

EPILOG = """\b
Examples:
  libraryfs grant alice /ring/dev
  libraryfs grant alice /ring/dev /ring/ops /agent/alice
"""


@click.command("grant", epilog=EPILOG)
@click.argument("principal", type=PRINCIPAL)
@click.argument("paths", nargs=-1, required=True, type=LIBRARY_PATH, metavar="PATH...")
@snapshot_option
@json_option
@logging_options
@click.pass_context
def command(context: click.Context, principal: str, paths: tuple[str, ...]) -> None:
    """Let PRINCIPAL see the rings and agents at PATH. Mounts show it within a second."""
    for path, changed in change_access(context, principal, paths, give=True).items():
        show(f"{principal} may see {path}\n" if changed else f"{principal} could see {path} already\n")
