"""`libraryfs import`: a source → the snapshot, in one transaction."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import click

from libraryfs.cli.embed import described, waiting
from libraryfs.cli.options import (
    Common,
    FilePathType,
    as_option,
    common_of,
    json_option,
    logging_options,
    snapshot_option,
)
from libraryfs.cli.output import Progress, count, print_json, progress_bar
from libraryfs.cli.source_options import said, source_options
from libraryfs.errors import LibraryError, ModelError
from libraryfs.ingest.embed import EmbedReport
from libraryfs.ingest.report import ImportReport
from libraryfs.paths import shown
from libraryfs.store import vectors
from libraryfs.store.snapshot import Snapshot

EPILOG = """\b
Examples:
  libraryfs import notes/ --ring dev            any folder, or one file
  libraryfs import . --ring dev --map 'docs/adr=decisions' --exclude 'vendor/'
  libraryfs import site/ --ring dev --section resources
  libraryfs import journal/ --agent alice
  libraryfs import rows.jsonl                   rows that name their ring or agent
\b
A folder that has a ring's sections in it (skills/, decisions/, …) is taken by them; any other
goes to workspace/ as the tree that it is. What .gitignore names, hidden files, caches and what
looks like a secret stay out, counted. Importing again changes only what changed, removes what is
gone from that source, and keeps ids, names, inodes and the options given.
"""

_ALWAYS_NAMED: Final = ("secret", "symlink that leads")
"""Parts of the reasons whose files are named without --verbose."""


@click.command("import", epilog=EPILOG)
@click.argument("source", type=FilePathType(exists=True))
@click.option("--ring", metavar="NAME", help="Import into this ring.")
@click.option("--agent", metavar="NAME", help="Import into this agent's memory.")
@source_options
@click.option("--strict", is_flag=True, help="Import nothing where one file is odd.")
@click.option("--checksum", is_flag=True, help="Read files too whose size, time and inode are as they were.")
@click.option("--verbose", "-v", is_flag=True, help="Name all that is left out.")
@click.option("--no-embed", is_flag=True, help="Leave the search vectors for `libraryfs embed`.")
@click.option("--no-grant", is_flag=True, help="Leave access as it is, or as the rows say: grant the importer nothing.")
@as_option
@snapshot_option
@json_option
@logging_options
@click.pass_context
def command(
    context: click.Context,
    /,
    source: Path,
    ring: str | None,
    agent: str | None,
    strict: bool,
    checksum: bool,
    verbose: bool,
    no_embed: bool,
    no_grant: bool,
    principal: str,
    **options: Any,
) -> None:
    """Bring SOURCE into the snapshot: any folder or file, or a .jsonl of rows."""
    from libraryfs.ingest.importer import import_source

    common = common_of(context)
    common.start_logging()
    if ring is not None and agent is not None:
        raise click.UsageError("--ring and --agent: give one of the two")
    namespace = f"/ring/{ring}" if ring is not None else f"/agent/{agent}" if agent is not None else None
    granted = None if no_grant else principal
    with opened(common) as snapshot, progress_bar() as progress:
        older = vectors.waiting(snapshot.db)
        report = import_source(
            snapshot,
            source,
            namespace,
            granted,
            progress,
            options=said(options),
            strict=strict,
            checksum=checksum,
            verbose=verbose,
        )
        embedded, failure = (None, None) if no_embed else embed(snapshot, progress, older)
    if common.json:
        made = None if embedded is None else embedded.model_dump()
        print_json(report.model_dump() | {"embedded": made, "embed_error": failure})
        return
    tell(report, verbose=verbose)
    if embedded is not None and embedded.chunks:
        click.echo(f"  {described(embedded)}")
    if embedded is not None and embedded.waiting:
        click.echo(f"  {waiting(embedded)}", err=True)
    if failure is not None:
        click.echo(f"  not embedded, so found by keywords only: {failure}; `libraryfs embed` makes up for it", err=True)


@contextmanager
def opened(common: Common) -> Iterator[Snapshot]:
    """The snapshot, made where there is none. An import that is refused leaves no new one behind."""
    path = common.snapshot_path
    is_new = not path.exists()
    try:
        with common.open(create=True) as snapshot:
            yield snapshot
    except LibraryError:
        if is_new:
            for end in ("", "-wal", "-shm"):
                Path(f"{path}{end}").unlink(missing_ok=True)
        raise


def embed(
    snapshot: Snapshot, progress: Progress, older: Mapping[int, bytes | None] | None = None
) -> tuple[EmbedReport | None, str | None]:
    """The vectors of what was imported, without the files that waited before (`older`).

    The import is done by now, so a model that fails is told, and no error.
    """
    from libraryfs.cli.models import Cancel, models
    from libraryfs.ingest.embed import embed_missing

    try:
        with models() as (embedder, _language_model):
            if embedder is None:
                return None, None
            return embed_missing(snapshot, embedder, Cancel(), progress, older=older), None
    except ModelError as error:
        return None, error.message


def tell(report: ImportReport, *, verbose: bool = False) -> None:
    """What an import did, in lines; what was left out, and what was odd, on stderr."""
    where = ", ".join(report.namespaces) or "nothing"
    changes = ", ".join(f"{getattr(report, what):,} {what}" for what in ("added", "changed", "removed", "unchanged"))
    click.echo(f"{shown(report.source)} → {shown(where)}: {changes} ({report.seconds:.1f} s)")
    if report.kind in ("tree", "sections") and report.added:
        other = "--section or --map puts it elsewhere" if report.kind == "tree" else "--section workspace: as a tree"
        click.echo(f"  taken as {report.taken_as}; {other}")
    elif report.kind != "rows" and report.added:
        click.echo(f"  taken as {report.taken_as}; --from tree: as a tree")
    for reason, number in report.skipped.items():
        click.echo(f"  left out {count(number, 'file or folder', 'files or folders')}: {reason}", err=True)
        if verbose or any(part in reason for part in _ALWAYS_NAMED):
            for file in report.skipped_files:
                if file.reason == reason:
                    click.echo(f"    {shown(file.path)}", err=True)
    if report.skipped and not verbose:
        click.echo("    --verbose names them all", err=True)
    if report.no_text:
        click.echo(f"  {count(report.no_text, 'file')} without text that can be read: found by name only", err=True)
    for warning in report.warnings:
        click.echo(f"  warning: {shown(warning)}", err=True)
