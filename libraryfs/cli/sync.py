"""`libraryfs sync`: the sources that were imported, brought in step, once or as they change."""

import signal
import threading
from pathlib import Path

import click

from libraryfs.cli.import_ import embed, tell
from libraryfs.cli.options import FILE_PATH, common_of, json_option, logging_options, snapshot_option
from libraryfs.cli.output import count, print_json, progress_bar
from libraryfs.errors import InvalidRequest, ModelError
from libraryfs.ingest.sync import Synced, sync_all, watch
from libraryfs.paths import shown
from libraryfs.store import sources, vectors
from libraryfs.store.snapshot import Snapshot

EPILOG = """\b
Examples:
  libraryfs sync
  libraryfs sync notes/ --checksum
  libraryfs sync --watch               until Ctrl-C: each change as it happens
\b
A source that cannot be read keeps its rows, and the exit code is 1. So does one of which more than
half of the rows would go, until --yes.
"""


@click.command("sync", epilog=EPILOG)
@click.argument("only", nargs=-1, type=FILE_PATH, metavar="[SOURCE]...")
@click.option("--watch", "watching", is_flag=True, help="Stay, and bring in each change as it comes.")
@click.option("--yes", is_flag=True, help="Also where more than half of a source's rows go.")
@click.option("--checksum", is_flag=True, help="Read files too whose size, time and inode are as they were.")
@click.option("--verbose", "-v", is_flag=True, help="Name all that is left out.")
@click.option("--no-embed", is_flag=True, help="Leave the search vectors for `libraryfs embed`.")
@snapshot_option
@json_option
@logging_options
@click.pass_context
def command(
    context: click.Context,
    /,
    only: tuple[Path, ...],
    watching: bool,
    yes: bool,
    checksum: bool,
    verbose: bool,
    no_embed: bool,
) -> int:
    """Import again what was imported: all sources, or the SOURCEs named, with the options that each has."""
    common = common_of(context)
    common.start_logging()
    if watching and common.json:
        raise click.UsageError("--watch and --json: give one of the two")
    with common.open(write=True) as snapshot:
        known = {one.path.resolve() for one in sources.every(snapshot.db) if one.path is not None}
        chosen = frozenset(path.resolve() for path in only)
        if unknown := chosen - known:
            raise InvalidRequest(f"{shown(str(min(unknown)))}: not a source here; 'libraryfs sources' lists them")
        with progress_bar() as progress:
            found = list(sync_all(snapshot, progress, only=chosen, may_shrink=yes, checksum=checksum, verbose=verbose))
            vectors_made, failure = (None, None) if no_embed or not _waits(snapshot) else embed(snapshot, progress)
        if common.json:
            made = None if vectors_made is None else vectors_made.model_dump()
            rows = [one.model_dump() for one in found]
            print_json({"sources": rows, "embedded": made, "embed_error": failure})
        else:
            _tell(found, verbose=verbose)
            if failure is not None:
                click.echo(f"  not embedded, so found by keywords only: {failure}", err=True)
        if watching:
            _watch(snapshot, no_embed)
            return 0
    return 1 if any(one.error for one in found) else 0


def _waits(snapshot: Snapshot) -> bool:
    return vectors.count_queued(snapshot.db) > 0


def _tell(found: list[Synced], *, verbose: bool = False) -> None:
    for one in found:
        if one.report is not None:
            tell(one.report, verbose=verbose)
        else:
            click.echo(f"{shown(one.source)}: {shown(one.error or '')}; its rows stay as they are", err=True)
    if not found:
        click.echo("no sources: libraryfs import FOLDER --ring NAME", err=True)


def _watch(snapshot: Snapshot, no_embed: bool) -> None:
    """Until it is told to end. The embedder stays loaded."""
    from libraryfs.cli.models import Cancel, models
    from libraryfs.ingest.embed import embed_missing

    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda _number, _frame: stop.set())
    click.echo(f"watching {count(len(sources.every(snapshot.db)), 'source')}; Ctrl-C ends it", err=True)
    with models() as (embedder, _language_model):

        def told(found: list[Synced]) -> None:
            _tell(found)
            if embedder is None or no_embed or not _waits(snapshot):
                return
            try:
                embed_missing(snapshot, embedder, Cancel())
            except ModelError as error:
                click.echo(f"  not embedded, so found by keywords only: {error.message}", err=True)

        watch(snapshot, stop, told)
