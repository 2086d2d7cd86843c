"""`libraryfs import`: a source → the snapshot, in one transaction."""

from pathlib import Path

import click

from libraryfs.cli.embed import described
from libraryfs.cli.options import FilePathType, as_option, common_of, json_option, logging_options, snapshot_option
from libraryfs.cli.output import Progress, count, print_json, progress_bar
from libraryfs.errors import ModelError
from libraryfs.ingest.embed import EmbedReport
from libraryfs.ingest.report import ImportReport
from libraryfs.paths import shown
from libraryfs.store.snapshot import Snapshot

EPILOG = """\b
Examples:
  libraryfs import notes/ --ring dev            folders skills/, decisions/, workspace/, …
  libraryfs import journal/ --agent alice
  libraryfs import rows.jsonl                   rows that name their ring or agent
\b
Importing again changes only what changed, removes what is gone from that source, and keeps ids, names and inodes.
"""


@click.command("import", epilog=EPILOG)
@click.argument("source", type=FilePathType(exists=True))
@click.option("--ring", metavar="NAME", help="Import into this ring.")
@click.option("--agent", metavar="NAME", help="Import into this agent's memory.")
@click.option("--no-embed", is_flag=True, help="Leave the search vectors for `libraryfs embed`.")
@click.option("--no-grant", is_flag=True, help="Leave access as it is, or as the rows say: grant the importer nothing.")
@as_option
@snapshot_option
@json_option
@logging_options
@click.pass_context
def command(
    context: click.Context,
    source: Path,
    ring: str | None,
    agent: str | None,
    no_embed: bool,
    no_grant: bool,
    principal: str,
) -> None:
    """Bring SOURCE into the snapshot: a folder whose sub-folders are sections, or a .jsonl of rows."""
    from libraryfs.ingest.importer import import_source

    common = common_of(context)
    common.start_logging()
    if ring is not None and agent is not None:
        raise click.UsageError("--ring and --agent: give one of the two")
    namespace = f"/ring/{ring}" if ring is not None else f"/agent/{agent}" if agent is not None else None
    with common.open(create=True) as snapshot, progress_bar() as progress:
        report = import_source(snapshot, source, namespace, None if no_grant else principal, progress)
        embedded, failure = (None, None) if no_embed else _embed(snapshot, progress)
    if common.json:
        vectors = None if embedded is None else embedded.model_dump()
        print_json(report.model_dump() | {"embedded": vectors, "embed_error": failure})
    else:
        _print(report)
        if embedded is not None and embedded.chunks:
            click.echo(f"  {described(embedded)}")
    if failure is not None:
        click.echo(f"  not embedded, so found by keywords only: {failure}; `libraryfs embed` makes up for it", err=True)


def _embed(snapshot: Snapshot, progress: Progress) -> tuple[EmbedReport | None, str | None]:
    """The vectors of what was imported. The import is done by now, so a model that fails is told, and no error."""
    from libraryfs.cli.models import Cancel, models
    from libraryfs.ingest.embed import embed_missing

    try:
        with models() as (embedder, _language_model):
            if embedder is None:
                return None, None
            return embed_missing(snapshot, embedder, Cancel(), progress), None
    except ModelError as error:
        return None, error.message


def _print(report: ImportReport) -> None:
    where = ", ".join(report.namespaces) or "nothing"
    changes = ", ".join(f"{getattr(report, what):,} {what}" for what in ("added", "changed", "removed", "unchanged"))
    click.echo(f"{shown(report.source)} → {shown(where)}: {changes} ({report.seconds:.1f} s)")
    for reason, number in report.skipped.items():
        click.echo(f"  skipped {count(number, 'file')}: {reason}", err=True)
    for file in report.skipped_files:
        click.echo(f"    {shown(file.path)}", err=True)
    for warning in report.warnings:
        click.echo(f"  warning: {shown(warning)}", err=True)
