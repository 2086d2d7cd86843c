"""`libraryfs grant`: a principal may see a ring or an agent from now on."""

import click

from libraryfs.cli.access import change_access
from libraryfs.cli.options import LIBRARY_PATH, PRINCIPAL, json_option, logging_options, snapshot_option

EPILOG = """\b
Example:
  libraryfs grant alice /ring/dev
"""


@click.command("grant", epilog=EPILOG)
@click.argument("principal", type=PRINCIPAL)
@click.argument("path", type=LIBRARY_PATH)
@snapshot_option
@json_option
@logging_options
@click.pass_context
def command(context: click.Context, principal: str, path: str) -> None:
    """Let PRINCIPAL see the ring or agent at PATH. Mounts show it within a second."""
    changed = change_access(context, principal, path, give=True)
    if changed is not None:
        click.echo(f"{principal} may see {path}" if changed else f"{principal} could see {path} already")
