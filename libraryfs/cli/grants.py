"""`libraryfs grants`: who may see what."""

import click

from libraryfs.cli.options import common_of, json_option, logging_options, snapshot_option
from libraryfs.cli.output import print_json, table
from libraryfs.paths import shown
from libraryfs.store import access

EPILOG = """\b
Examples:
  libraryfs grants
  libraryfs grants --principal alice --json
"""


@click.command("grants", epilog=EPILOG)
@click.option("--principal", metavar="NAME", help="Only this principal's.")
@snapshot_option
@json_option
@logging_options
@click.pass_context
def command(context: click.Context, principal: str | None) -> None:
    """List who may see which ring or agent."""
    common = common_of(context)
    common.start_logging()
    with common.open() as snapshot:
        found = [(who, namespace.path) for who, namespace in access.every(snapshot.db) if principal in (None, who)]
    if common.json:
        print_json([{"principal": who, "path": path} for who, path in found])
        return
    for line in table([(shown(who), shown(path)) for who, path in found]):
        click.echo(line)
    if not found:
        click.echo("no grants", err=True)
