"""`libraryfs eval calibrate`: the judge against rows that people labelled."""

from pathlib import Path

import click

from libraryfs.cli.asking_bar import asking_bar
from libraryfs.cli.options import REGULAR_FILE, common_of, json_option, logging_options
from libraryfs.cli.output import print_json
from libraryfs.errors import InvalidRequest

EPILOG = """\b
Examples:
  libraryfs eval calibrate labelled.jsonl
  libraryfs eval calibrate labelled.jsonl --json
"""


@click.command("calibrate", epilog=EPILOG)
@click.argument("file", type=REGULAR_FILE)
@json_option
@logging_options
@click.pass_context
def calibrate(context: click.Context, /, file: Path) -> int:
    """Measure how far the judge agrees with people.

    FILE holds one JSON object a line: claim, evidence, and support, a person's verdict.
    """
    from libraryfs.cli.models import models
    from libraryfs.evals import calibrate as judging
    from libraryfs.evals import session

    common = common_of(context)
    common.start_logging()
    with file.open(encoding="utf-8", errors="replace") as lines:
        try:
            rows = judging.read_rows(lines)
        except InvalidRequest as error:
            raise InvalidRequest(f"{file}: {error}") from None
    with asking_bar(not common.json) as progress, models() as chosen:
        found = session.calibration(rows, chosen, lambda done, total: progress(done, total, None))
    if common.json:
        print_json(found.model_dump(mode="json"))
        return 0
    click.echo(f"{found.rows} rows, judge: {found.model}")
    for name, one in (("judge", found.judge), ("substring", found.substring)):
        agreed = "none judged" if one.agreement is None else f"agrees on {100 * one.agreement:.1f} %"
        kappa = "undefined" if one.kappa is None else f"{one.kappa:.3f}"
        click.echo(f"{name:>9}: {agreed}, kappa {kappa}, could not judge {one.could_not}")
    click.echo(found.verdict)
    return 0
