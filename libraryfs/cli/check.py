"""`libraryfs check`: what is wrong in a snapshot."""

from collections import Counter
from functools import partial

import click

from libraryfs.cli.options import common_of, json_option, logging_options, snapshot_option
from libraryfs.cli.output import bad, count, good, print_json, progress_bar
from libraryfs.ingest.audit import audit
from libraryfs.paths import shown
from libraryfs.store.check import check

EPILOG = """\b
Example:
  libraryfs check
  libraryfs check --fast
\b
Exit code 1 when anything was found: workspace cycles and orphans, more than one charter in a ring,
names that had to be changed to be file names, edges that lead nowhere, damaged rows, content that is
missing or not what was stored, a damaged file, lines that look like a key or a password, texts in no
coding that is known. --fast reads no content.
"""


@click.command("check", epilog=EPILOG)
@snapshot_option
@click.option("--fast", is_flag=True, help="Do not read all content and compare it with its digests.")
@json_option
@logging_options
@click.pass_context
def command(context: click.Context, fast: bool) -> int:
    """Say what is wrong in the snapshot, one line a finding."""
    common = common_of(context)
    common.start_logging()
    with common.open() as snapshot, progress_bar(not common.json) as report:
        problems = list(check(snapshot.db, fast=fast, report=partial(report, "check")))
        if not fast and not any(problem.kind.startswith("damaged") for problem in problems):
            problems += audit(snapshot.db, partial(report, "read"))
    if common.json:
        print_json({"ok": not problems, "problems": [problem._asdict() for problem in problems]})
        return 1 if problems else 0
    for problem in problems:
        click.echo(f"{problem.namespace or common.snapshot_path}: {bad(problem.kind)}: {shown(problem.message)}")
    kinds = Counter(problem.kind for problem in problems)
    if problems:
        click.echo(f"{count(len(problems), 'problem')}: {', '.join(f'{n} {kind}' for kind, n in kinds.items())}")
    else:
        click.echo(good("nothing wrong"))
    return 1 if problems else 0
