"""`libraryfs embed`: vectors for what has none yet."""

import click

from libraryfs.cli.options import common_of, json_option, logging_options, snapshot_option
from libraryfs.cli.output import count, print_json, progress_bar
from libraryfs.errors import ModelUnavailable
from libraryfs.ingest.embed import EmbedReport

EPILOG = """\b
Examples:
  libraryfs embed
  libraryfs embed --all            after another model was set with $LIBRARYFS_EMBEDDER
\b
It can be stopped at any time, and goes on where it was.
"""


@click.command("embed", epilog=EPILOG)
@click.option("--all", "anew", is_flag=True, help="Re-embed everything, for example after changing the model.")
@snapshot_option
@json_option
@logging_options
@click.pass_context
def command(context: click.Context, anew: bool) -> None:
    """Make the search vectors of every file that has none, or whose text has changed."""
    from libraryfs.cli.models import Cancel, models
    from libraryfs.ingest.embed import embed_missing

    common = common_of(context)
    common.start_logging()
    with models() as (embedder, _language_model), common.open(write=True) as snapshot, progress_bar() as progress:
        if embedder is None:
            raise ModelUnavailable("LIBRARYFS_EMBEDDER is none; set it to a model, or unset it for the default one")
        report = embed_missing(snapshot, embedder, Cancel(), progress, anew=anew)
    if common.json:
        print_json(report)
    else:
        click.echo(described(report))
        if report.waiting:
            click.echo(waiting(report))


def described(report: EmbedReport) -> str:
    """One line: what was embedded, how fast, what was skipped."""
    skipped = {"blank": report.blank, "too long": report.too_long, "not text": report.binary}
    left_out = ", ".join(f"{number} {why}" for why, number in skipped.items() if number)
    return (
        f"{report.model}: embedded {count(report.files, 'file')} in {count(report.chunks, 'chunk')}"
        f" ({report.seconds:.1f} s, {report.rate:,.0f}/s)" + (f"; without vectors: {left_out}" if left_out else "")
    )


def waiting(report: EmbedReport) -> str:
    """One line: how many files are found by keywords only, and what to do about it."""
    still = count(report.waiting, "other file has", "other files have")
    return f"{still} no vectors yet, so keywords only find them: `libraryfs embed` makes them"
