"""`libraryfs sources`: what the snapshot's rows came from."""

import json
import time
from pathlib import Path

import click

from libraryfs.cli.options import FILE_PATH, common_of, json_option, logging_options, snapshot_option
from libraryfs.cli.output import count, print_json, table
from libraryfs.errors import InvalidRequest
from libraryfs.paths import shown
from libraryfs.store import sources
from libraryfs.store.sources import SourceRecord

EPILOG = """\b
Examples:
  libraryfs sources
  libraryfs sources --forget notes/      its rows stay, and are in step with nothing
"""


@click.command("sources", epilog=EPILOG)
@click.option("--forget", type=FILE_PATH, metavar="SOURCE", help="No longer keep this source in step; its rows stay.")
@snapshot_option
@json_option
@logging_options
@click.pass_context
def command(context: click.Context, forget: Path | None) -> None:
    """List the folders and files that were imported: where each went, how it is read, and when last."""
    common = common_of(context)
    common.start_logging()
    with common.open(write=forget is not None) as snapshot:
        if forget is not None:
            chosen = [one for one in sources.every(snapshot.db) if one.path is not None and _is(one.path, forget)]
            if not chosen:
                raise InvalidRequest(f"{shown(str(forget))}: not a source here; 'libraryfs sources' lists them")
            with snapshot.transaction() as db:
                for one in chosen:
                    sources.forget(db, one.id)
        found = sources.every(snapshot.db)
    if common.json:
        print_json([described(one) for one in found])
        return
    rows: list[tuple[str, ...]] = [("source", "goes to", "rows", "imported", "options")]
    rows += [
        (shown(str(one.path or one.uri)), one.namespace or "as its rows say", f"{one.rows:,}", ago(one), _options(one))
        for one in found
    ]
    for line in table(rows) if found else [f"no sources; {count(0, 'row')}: libraryfs import FOLDER --ring NAME"]:
        click.echo(line)


def _is(path: Path, other: Path) -> bool:
    return path.absolute() == other.absolute() or path.resolve() == other.resolve()


def described(one: SourceRecord) -> dict[str, object]:
    """A source as JSON."""
    return {
        "source": str(one.path) if one.path is not None else one.uri,
        "namespace": one.namespace or None,
        "rows": one.rows,
        "imported_at": one.imported_ns / 1_000_000_000,
        "options": json.loads(one.options),
        "principal": one.principal,
        "exists": one.path is not None and one.path.exists(),
    }


def ago(one: SourceRecord) -> str:
    """How long since its last import, in words."""
    seconds = max(0, time.time() - one.imported_ns / 1_000_000_000)
    for unit, length in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= length:
            return f"{count(int(seconds // length), unit)} ago"
    return "just now"


def _options(one: SourceRecord) -> str:
    found = []
    for name, value in json.loads(one.options).items():
        words = {"kind": "from", "maps": "map"}.get(name, name).replace("_", "-")
        if value is True:
            found.append(f"--{words}")
        else:
            found += [f"--{words} {one}" for one in (value if isinstance(value, list) else [value])]
    return shown(" ".join(found))
