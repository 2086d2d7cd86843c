"""How a source is to be read: the options that `import` and `init` share."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

OPTIONS = (
    click.option("--from", "kind", metavar="KIND", help="What kind of source it is; found by looking when not given."),
    click.option("--section", metavar="SECTION", help="Put everything there: resources, or workspace/site."),
    click.option(
        "--map",
        "maps",
        multiple=True,
        metavar="PATH=SECTION",
        help="Put what is below PATH into SECTION, for example docs/adr=decisions. Repeatable.",
    ),
    click.option("--exclude", multiple=True, metavar="PATTERN", help="Leave out what matches, as in .gitignore."),
    click.option("--include", multiple=True, metavar="PATTERN", help="Take what matches, whatever other rules say."),
    click.option("--hidden/--no-hidden", default=None, help="Take hidden files too, or not (the default)."),
    click.option(
        "--allow-secrets/--no-allow-secrets",
        default=None,
        help="Take files that look as if they hold a key or a password, or not (the default).",
    ),
    click.option(
        "--names",
        type=click.Choice(["file", "title"]),
        help="Name memories as their files are (the default), or by their titles, in one folder a section.",
    ),
)


def source_options(command: Decorated) -> Decorated:
    """All of them, given to the command as keyword arguments."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def said(values: dict[str, Any]) -> dict[str, Any]:
    """What of them the user gave; the rest stays as it is remembered."""
    return {name: value for name, value in values.items() if value not in (None, ())}
