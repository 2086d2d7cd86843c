"""`libraryfs doctor`: what is missing on this machine, and how to fix it."""

import click

from libraryfs.cli.diagnosis import Finding, asking, diagnose
from libraryfs.cli.options import common_of, json_option, logging_options, snapshot_option
from libraryfs.cli.output import bad, faint, good, print_json
from libraryfs.paths import shown

EPILOG = """\b
Example:
  libraryfs doctor
  libraryfs doctor --ask     which of writing and quoting answers a question, and why
\b
Exit code 1 when something that mounting needs is missing.
Models are optional: without them .ask runs on keyword search.
"""


@click.command("doctor", epilog=EPILOG)
@click.option("--ask", is_flag=True, help="Say only how questions are answered with the models that are set, and why.")
@snapshot_option
@json_option
@logging_options
@click.pass_context
def command(context: click.Context, /, ask: bool) -> int:
    """Say what is missing on this machine, and how to fix it."""
    common = common_of(context)
    common.start_logging()
    findings = []
    for finding in asking() if ask else diagnose(common.snapshot_path):
        findings.append(finding)
        if not common.json:  # each as it comes: a model takes seconds
            _print(finding)
    broken = [finding for finding in findings if not finding.ok and finding.needed == "mount"]
    if common.json:
        print_json({"ok": not broken, "findings": [finding.model_dump() for finding in findings]})
    elif not ask:
        click.echo(bad(f"{len(broken)} to mend before mounting works") if broken else good("mounting works here"))
    return 1 if broken else 0


def _print(finding: Finding) -> None:
    if finding.ok:
        mark = good("ok      ")
    elif finding.needed == "mount":
        mark = bad("missing ")
    else:
        mark = click.style("optional", fg="yellow")
    click.echo(f"{mark}  {finding.name}: {faint(shown(finding.detail))}")
    if not finding.ok and finding.cure:
        click.echo(f"          → {shown(finding.cure)}")
