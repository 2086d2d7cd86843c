"""`libraryfs tree`: what is below a path."""

import click

from libraryfs.cli.options import LIBRARY_PATH, as_option, common_of, json_option, logging_options, snapshot_option
from libraryfs.cli.output import print_json, show

EPILOG = """\b
Examples:
  libraryfs tree
  libraryfs tree /ring/dev --depth 2
  libraryfs tree / --as alice --json
"""


@click.command("tree", epilog=EPILOG)
@click.argument("path", type=LIBRARY_PATH, default="/")
@click.option("--depth", type=int, default=1, show_default=True, help="Levels, at most $LIBRARYFS_MAX_DEPTH.")
@as_option
@snapshot_option
@json_option
@logging_options
@click.pass_context
def command(context: click.Context, path: str, depth: int, principal: str) -> None:
    """Show what is below PATH (/ if none is given), to a depth; a folder with more says how many entries it has."""
    from libraryfs.library.resolver import Library
    from libraryfs.library.tree import render, tree

    common = common_of(context)
    common.start_logging()
    with common.open() as snapshot:
        node = tree(Library(snapshot, principal), path, depth)
    if common.json:
        print_json(node)
    else:
        show(render(node))
