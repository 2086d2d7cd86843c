"""`libraryfs export`: the snapshot → rows."""

import os
from pathlib import Path

import click

from libraryfs.cli.options import LIBRARY_PATH, FilePathType, common_of, json_option, logging_options, snapshot_option
from libraryfs.cli.output import Rows, count, print_json, progress_bar
from libraryfs.errors import InvalidRequest
from libraryfs.ingest.report import ExportReport, Writable
from libraryfs.store.snapshot import Snapshot

EPILOG = """\b
Examples:
  libraryfs export > library.jsonl
  libraryfs export /ring/dev --output dev.jsonl
\b
An import of an export gives an equal snapshot.
"""


@click.command("export", epilog=EPILOG)
@click.argument("path", required=False, type=LIBRARY_PATH)
@click.option("-o", "--output", type=FilePathType(dir_okay=False), help="Write to FILE. Default, and for -: stdout.")
@snapshot_option
@json_option
@logging_options
@click.pass_context
def command(context: click.Context, path: str | None, output: Path | None) -> None:
    """Write the whole snapshot, or the ring or agent at PATH, as JSON lines.

    With --output, --json prints the report; without it the rows, which are JSON, go to stdout.
    """
    common = common_of(context)
    common.start_logging()
    with common.open() as snapshot:
        if output is None or str(output) == "-":
            _export(snapshot, Rows(), path)
            return
        report = _export_file(snapshot, output, path)
    if common.json:
        print_json(report)
    else:
        click.echo(
            f"{output}: {count(report.rows, 'row')}, {count(report.edges, 'edge')}, {count(report.grants, 'grant')}"
        )


def _export_file(snapshot: Snapshot, output: Path, path: str | None) -> ExportReport:
    """Written beside it and renamed, so that an export that fails leaves the old file; a pipe or a device stays one."""
    if output.exists() and not output.is_file():
        with output.open("wb") as out:
            return _export(snapshot, out, path)
    target = Path(os.path.realpath(output))  # a link stays one too
    part = target.with_name(f".{target.name[:200]}.{os.getpid()}")
    try:
        with part.open("xb") as out:
            report = _export(snapshot, out, path)
        part.replace(target)
    except OSError as error:
        raise InvalidRequest(f"--output {output}: {error.strerror}") from None
    finally:
        part.unlink(missing_ok=True)
    return report


def _export(snapshot: Snapshot, out: Writable, path: str | None) -> ExportReport:
    from libraryfs.ingest.export import export

    with progress_bar() as progress:
        return export(snapshot, out, path, progress)
