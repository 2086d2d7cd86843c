"""`libraryfs revoke`: a principal sees a ring or an agent no more."""

import click

from libraryfs.cli.access import change_access
from libraryfs.cli.options import LIBRARY_PATH, PRINCIPAL, json_option, logging_options, snapshot_option
from libraryfs.cli.output import show

EPILOG = """\b
Example:
  libraryfs revoke alice /ring/dev
"""


@click.command("revoke", epilog=EPILOG)
@click.argument("principal", type=PRINCIPAL)
@click.argument("paths", nargs=-1, required=True, type=LIBRARY_PATH, metavar="PATH...")
@snapshot_option
@json_option
@logging_options
@click.pass_context
def command(context: click.Context, principal: str, paths: tuple[str, ...]) -> None:
    """Hide the rings and agents at PATH from PRINCIPAL. Mounts hide it within a second."""
    for path, changed in change_access(context, principal, paths, give=False).items():
        show(f"{principal} sees {path} no more\n" if changed else f"{principal} could not see {path}\n")
