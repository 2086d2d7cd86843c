"""`libraryfs eval`: runs an eval set and says how it did; `libraryfs eval calibrate`: a judge against people."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from libraryfs.cli import report_files
from libraryfs.cli.options import (
    FILE_PATH,
    REGULAR_FILE,
    Common,
    as_option,
    common_of,
    json_option,
    logging_options,
    snapshot_option,
)
from libraryfs.cli.output import print_json
from libraryfs.errors import InvalidRequest

if TYPE_CHECKING:
    from libraryfs.evals.report import EvalReport

EPILOG = """\b
Exit codes:
  0    ran, without drift
  1    drift, or a regression: significant, or against the baseline
  2    the set, the models, the baseline or a file is at fault: stderr says how
\b
Examples:
  libraryfs eval dev
  libraryfs eval dev --no-llm-judge --json
  libraryfs eval dev --item smoke.md --junit eval.xml --html eval.html
  libraryfs eval dev --aa --repeats 5
  libraryfs eval dev --baseline this
  libraryfs eval calibrate labelled.jsonl
"""
CALIBRATE = "calibrate"


@click.command("eval", epilog=EPILOG)
@click.argument("ring", metavar="RING | calibrate")
@click.argument("file", required=False, metavar="[FILE]", type=REGULAR_FILE)
@click.option("--item", metavar="ITEM", help="A workspace item's path or id. Default: workspace/eval-set.md.")
@click.option("--llm-judge/--no-llm-judge", default=None, help="Ask the model about what substring did not find.")
@click.option("--repeats", metavar="N", type=click.IntRange(1, 50), help="Ask each question N times.")
@click.option("--aa", is_flag=True, help="Run the set against itself: its own false-alarm rate. Writes nothing.")
@click.option("--baseline", metavar="PIN", help="Pin a run to compare with from now on: its number, or 'this'.")
@click.option("--no-cache", is_flag=True, help="Ask every question anew.")
@click.option("--junit", metavar="FILE", type=FILE_PATH, help="Write JUnit XML.")
@click.option("--html", metavar="FILE", type=FILE_PATH, help="Write an HTML page.")
@as_option
@snapshot_option
@json_option
@logging_options
@click.pass_context
def command(context: click.Context, /, ring: str, file: Path | None, principal: str, **options: Any) -> int:
    """Run a ring's eval set: each question is asked, scored, and compared with the runs before.

    The set is a Markdown item of the workspace: '## Question' headings, expected fragments as bullets.
    'calibrate FILE' measures the judge against rows that people labelled.
    """
    common = common_of(context)
    common.start_logging()
    if ring == CALIBRATE:
        if file is None:
            raise click.UsageError("calibrate wants the FILE of labelled rows", context)
        _refuse_options_of_runs(context)
        return _calibrate(common, file)
    if file is not None:
        raise click.UsageError(f"unexpected argument {str(file)!r}", context)
    if options["aa"] and options["baseline"] is not None:
        raise click.UsageError("--aa stores no run, so there is none to pin: leave out --aa or --baseline", context)
    report_files.check({"--junit": options["junit"], "--html": options["html"]})
    return _eval(common, ring, principal, options)


def _refuse_options_of_runs(context: click.Context) -> None:
    for option in context.command.params:
        name = option.name or ""
        given = context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
        if given and name in context.params and isinstance(option, click.Option):
            raise click.UsageError(f"{option.opts[0]} is of no use to calibrate; leave it out", context)


def _eval(common: Common, ring: str, principal: str, options: dict[str, Any]) -> int:
    from libraryfs.cli.models import models
    from libraryfs.evals import load, request, session

    asked = request.build(
        {
            "workspace_item_id": options["item"],
            "llm_judge": options["llm_judge"],
            "repeats": options["repeats"],
            "aa": options["aa"],
            "baseline": options["baseline"],
            "cache": not options["no_cache"],
        }
    )
    with _bar(not common.json) as progress, models() as chosen:
        report = session.run(common.snapshot_path, principal, load.ring_path(ring), asked, chosen, progress)
    try:  # shown first: the run is stored by now, and a disk that is full must not take the report too
        _show(report, common)
    finally:  # `| head` must not take the files
        written = _write_files(report, options["junit"], options["html"])
    pin_lost = options["baseline"] is not None and report.write_error is not None
    return report.exit_code if written and not pin_lost else 2


def _show(report: "EvalReport", common: Common) -> None:
    from libraryfs.evals import render

    if common.json:
        print_json(report.model_dump(mode="json"))
    else:
        click.echo(render.text(report), nl=False)
    if report.error is not None:
        click.echo(f"libraryfs: {report.path}: {report.error}; nothing was written", err=True)
    if report.write_error is not None:
        click.echo(f"libraryfs: the run was not stored: {report.write_error}", err=True)


def _write_files(report: "EvalReport", junit: Path | None, html: Path | None) -> bool:
    """Whether all were written."""
    written = True
    if junit is not None:
        from libraryfs.evals import report_junit

        written = report_files.write(junit, report_junit.junit(report))
    if html is not None:
        from libraryfs.evals import report_html

        written = report_files.write(html, report_html.html(report)) and written
    return written


def _calibrate(common: Common, file: Path) -> int:
    from libraryfs.cli.models import models
    from libraryfs.evals import calibrate, session

    with file.open(encoding="utf-8", errors="replace") as lines:
        try:
            rows = calibrate.read_rows(lines)
        except InvalidRequest as error:
            raise InvalidRequest(f"{file}: {error}") from None
    with _bar(not common.json) as progress, models() as chosen:
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


@contextmanager
def _bar(enabled: bool) -> Iterator[Callable[[int, int, str | None], None]]:
    """A progress callback (done, total, the rate so far): a bar on stderr when that is a terminal, else nothing."""
    if not enabled or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield lambda done, total, rate: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task("asking", total=None, rate="")
        yield lambda done, total, rate: bars.update(task, completed=done, total=total, rate=rate or "")
