"""`libraryfs eval`: runs an eval set and says how it did."""

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from libraryfs.cli import report_files
from libraryfs.cli.asking_bar import asking_bar
from libraryfs.cli.options import FILE_PATH, Common, as_option, common_of, json_option, logging_options, snapshot_option
from libraryfs.cli.output import escaped, print_json, show

if TYPE_CHECKING:
    from libraryfs.evals.report import EvalReport

EPILOG = """\b
Exit codes:
  0    ran, without drift
  1    what --fail-on names: a regression, unless told otherwise
  2    the set, the models, the baseline or a file is at fault: stderr says how
\b
Examples:
  libraryfs eval dev
  libraryfs eval dev --no-llm-judge --json
  libraryfs eval dev --item smoke.md --junit eval.xml --html eval.html
  libraryfs eval dev --aa --repeats 5
  libraryfs eval dev --baseline this
  libraryfs eval dev --fail-on drift
\b
Other commands (each has --help):
  libraryfs eval new dev                   draft a set from the ring's files
  libraryfs eval add "…?" --expect "…"     append a question to a set's file
  libraryfs eval calibrate labelled.jsonl  measure the judge against people
"""
SUBCOMMANDS = {"new": "eval_set", "add": "eval_set", "calibrate": "eval_calibrate"}
"""name: module in libraryfs.cli. A ring of such a name is run as /ring/NAME."""


class _EvalCommand(click.Command):
    """`eval RING`, and the few commands beside it that are about sets and judges: `eval new RING`."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        if args and args[0] in SUBCOMMANDS:
            command = getattr(importlib.import_module(f"libraryfs.cli.{SUBCOMMANDS[args[0]]}"), args[0])
            context: click.Context = command.make_context(f"{info_name} {args[0]}", args[1:], parent, **extra)
            return context
        return super().make_context(info_name, args, parent, **extra)


@click.command("eval", cls=_EvalCommand, epilog=EPILOG)
@click.argument("ring")
@click.option("--item", metavar="ITEM", help="A workspace item's path or id. Default: workspace/eval-set.md.")
@click.option("--llm-judge/--no-llm-judge", default=None, help="Ask the model about what substring did not find.")
@click.option("--repeats", metavar="N", type=click.IntRange(1, 50), help="Ask each question N times.")
@click.option("--aa", is_flag=True, help="Run the set against itself: its own false-alarm rate. Writes nothing.")
@click.option("--baseline", metavar="PIN", help="Pin a run to compare with from now on: its number, or 'this'.")
@click.option("--no-cache", is_flag=True, help="Ask every question anew.")
@click.option(
    "--fail-on",
    type=click.Choice(["regression", "drift", "never"]),
    default="regression",
    show_default=True,
    help="What exit code 1 means: a fall that the paired test shows or a lost [must]; any drift too; or nothing.",
)
@click.option("--junit", metavar="FILE", type=FILE_PATH, help="Write JUnit XML.")
@click.option("--html", metavar="FILE", type=FILE_PATH, help="Write an HTML page.")
@as_option
@snapshot_option
@json_option
@logging_options
@click.pass_context
def command(context: click.Context, /, ring: str, principal: str, **options: Any) -> int:
    """Run a ring's eval set: each question is asked, scored, and compared with the runs before.

    The set is a Markdown item of the workspace: '## Question' headings, expected fragments as bullets. '[must]' at a
    heading's end marks a question that must not be lost.
    """
    common = common_of(context)
    common.start_logging()
    if options["aa"] and options["baseline"] is not None:
        raise click.UsageError("--aa stores no run, so there is none to pin: leave out --aa or --baseline", context)
    report_files.check({"--junit": options["junit"], "--html": options["html"]})
    return _eval(common, ring, principal, options)


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
    with asking_bar(not common.json) as progress, models() as chosen:
        report = session.run(common.snapshot_path, principal, load.ring_path(ring), asked, chosen, progress)
    try:  # shown first: the run is stored by now, and a disk that is full must not take the report too
        _show(report, common)
    finally:  # `| head` must not take the files
        written = _write_files(report, options)
    pin_lost = options["baseline"] is not None and report.write_error is not None
    return report.exit_code(options["fail_on"]) if written and not pin_lost else 2


def _show(report: "EvalReport", common: Common) -> None:
    from libraryfs.evals import render

    if common.json:
        print_json(report.model_dump(mode="json"))
    else:
        show(render.text(report))
    if report.error is not None:
        click.echo(escaped(f"libraryfs: {report.path}: {report.error}; nothing was written"), err=True)
    if report.write_error is not None:
        click.echo(escaped(f"libraryfs: the run was not stored: {report.write_error}"), err=True)


def _write_files(report: "EvalReport", options: dict[str, Any]) -> bool:
    """Whether all were written."""
    junit: Path | None = options["junit"]
    html: Path | None = options["html"]
    written = True
    if junit is not None:
        from libraryfs.evals import report_junit

        written = report_files.write(junit, report_junit.junit(report, options["fail_on"]))
    if html is not None:
        from libraryfs.evals import report_html

        written = report_files.write(html, report_html.html(report)) and written
    return written
