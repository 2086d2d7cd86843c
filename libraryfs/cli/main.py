"""`libraryfs`: the group of commands, and what an error prints and exits with."""

import contextlib
import importlib
import io
import json
import logging
import os
import sys
from typing import Final

import click

import libraryfs
from libraryfs.cli.options import Common, common_of, logging_options, snapshot_option
from libraryfs.errors import LibraryError, SystemFault, UsageFault
from libraryfs.paths import nearest, shown
from libraryfs.settings import unknown_variables

OK: Final = 0
FOUND: Final = 1
USER_ERROR: Final = 2
BUG: Final = 3
INTERRUPTED: Final = 130

COMMANDS: Final = {
    "init": ("init", "Make a library of a folder: look around, import, embed, mount."),
    "status": ("status", "Say what is mounted, how fresh it is, with which models."),
    "import": ("import_", "Bring a folder of documents, or rows, into the snapshot."),
    "sync": ("sync", "Bring what was imported in step with its sources."),
    "sources": ("sources", "List what was imported, and from where."),
    "embed": ("embed", "Make the search vectors that are missing."),
    "export": ("export", "Write the snapshot as rows, the lossless form."),
    "ask": ("ask", "Answer a question from the library, with citations."),
    "mount": ("mount", "Mount the library as a filesystem."),
    "umount": ("umount", "Unmount it."),
    "tree": ("tree", "Show what is below a path."),
    "drilldown": ("drilldown", "Show what is below a path, with excerpts, under caps."),
    "grant": ("grant", "Let a principal see a ring or an agent."),
    "revoke": ("revoke", "Revoke access to a ring or an agent."),
    "grants": ("grants", "List who may see what."),
    "eval": ("eval", "Run an eval set, and say what drifted."),
    "check": ("check", "Say what is wrong in a snapshot."),
    "doctor": ("doctor", "Say what is missing on this machine."),
    "completion": ("completion", "Print the shell's completion script."),
}
"""name: (module in libraryfs.cli, what `libraryfs --help` says). The module is imported when the command runs."""

OTHER_WORDS: Final = {
    **dict.fromkeys(("search", "question", "find", "grep", "chat"), "ask"),
    **dict.fromkeys(("ls", "list", "dir", "show"), "tree"),
    **dict.fromkeys(("cat", "read", "head"), "drilldown"),
    **dict.fromkeys(("add", "load", "ingest"), "import"),
    **dict.fromkeys(("update", "refresh"), "sync"),
    **dict.fromkeys(("dump", "backup"), "export"),
    **dict.fromkeys(("unmount", "fusermount", "stop"), "umount"),
    **dict.fromkeys(("start", "open"), "mount"),
    **dict.fromkeys(("share", "allow", "chmod"), "grant"),
    **dict.fromkeys(("deny", "unshare"), "revoke"),
    **dict.fromkeys(("who", "users", "access"), "grants"),
    **dict.fromkeys(("test", "evaluate", "score"), "eval"),
    **dict.fromkeys(("verify", "fsck", "lint"), "check"),
    **dict.fromkeys(("info", "diagnose", "config", "settings"), "doctor"),
    **dict.fromkeys(("index", "vectors", "reindex"), "embed"),
}
"""What users try that is no command → the command that does it."""

EPILOG: Final = """\b
Exit codes:
  0    done
  1    it worked, and found a fault, no answer, or drift (check, doctor, ask, eval)
  2    a wrong option, path, file or setting: stderr says which
  3    a bug in libraryfs; --debug shows where
  130  interrupted

\b
Start:
  libraryfs init                        in any folder
  libraryfs import notes/ --ring dev
  libraryfs mount ~/library
"""


class LazyGroup(click.Group):
    """A group that imports a command's module when it is used."""

    def list_commands(self, context: click.Context) -> list[str]:
        """The names, in the order of COMMANDS."""
        return list(COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """The command, from its module's `command`."""
        if name not in COMMANDS:
            return None
        command = importlib.import_module(f"libraryfs.cli.{COMMANDS[name][0]}").command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click's, with the command that was meant in the refusal of another word."""
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            meant = OTHER_WORDS.get(name.lower()) or nearest(name, COMMANDS, 0.7)
            hint = f"; did you mean 'libraryfs {meant}'?" if meant else ""
            context.fail(f"No such command {name!r}{hint}")
        return super().resolve_command(context, args)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """The list in --help, without importing the commands."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_module, text) in COMMANDS.items()])


@click.group(
    cls=LazyGroup,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(libraryfs.__version__, "-V", "--version", prog_name="libraryfs")
@snapshot_option
@logging_options
@click.pass_context
def main(context: click.Context) -> None:
    """What a team knows, mounted as plain files.

    Memory, workspace and artifacts live in one SQLite file, the snapshot. Import documents into it,
    mount it, and use ls, cat, grep -r and every other tool on it.
    """
    common_of(context)
    if os.environ.get("NO_COLOR"):
        context.color = False


def run(arguments: list[str] | None = None) -> int:
    """Run the command line, and give the exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    if given and given[0] not in COMMANDS:
        from libraryfs.cli import mount_helper

        if mount_helper.is_mount_call(given):
            return mount_helper.run(given)
    _warn_of_unknown_settings()
    return guarded(main, given, "libraryfs", Common())


def _warn_of_unknown_settings() -> None:
    if "_LIBRARYFS_COMPLETE" in os.environ:
        return  # a shell completes a line: nothing else may be written
    for name, meant in unknown_variables().items():
        hint = f"; did you mean {meant}?" if meant else ""
        click.echo(f"libraryfs: warning: {name} is no setting, and is ignored{hint}", err=True)


def guarded(command: click.Command, arguments: list[str], program: str, common: Common) -> int:
    """Run a command, print its error in one line, and give the exit code."""
    if sys.stdout is None:  # started with it closed
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8", closefd=False)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # names need not be valid Unicode
    try:
        result = command.main(arguments, prog_name=program, standalone_mode=False, obj=common)
        sys.stdout.flush()
    except click.exceptions.Exit as exit_:
        return exit_.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()  # the help, on stderr
        return USER_ERROR
    except click.ClickException as error:
        return _user_error(UsageFault.code, _usage(error), common)
    except LibraryError as error:
        logging.getLogger(__name__).debug("a user's error, raised here", exc_info=error)
        return _user_error(error.code, error.message, common)
    except (KeyboardInterrupt, click.Abort):
        click.echo("libraryfs: interrupted", err=True)
        return INTERRUPTED
    except (BrokenPipeError, SystemExit):  # click makes the one into the other
        _drop_output()  # its reader went away, as `| head` does
        return OK
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        logging.getLogger(__name__).debug("the system refused this", exc_info=error)
        return _user_error(SystemFault.code, f"{where}{error.strerror or error}", common)
    except Exception as error:
        return _bug(error, common)
    return result if isinstance(result, int) else OK


def _usage(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    hint = f" (see {context.command_path} --help)" if context is not None else ""
    return " ".join(error.format_message().split()) + hint


def _user_error(code: str, message: str, common: Common) -> int:
    if common.json:
        with contextlib.suppress(OSError):  # where stdout itself is at fault
            click.echo(json.dumps({"error": {"code": code, "message": message}}))
    click.echo(f"libraryfs: {shown(message)}", err=True)  # it may name a path with a new line in it
    try:
        sys.stdout.flush()
    except OSError:
        _drop_output()
    return USER_ERROR


def _drop_output() -> None:
    """What is still to be written goes nowhere: Python's flush at its end would fail, and say so."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _bug(error: Exception, common: Common) -> int:
    if common.debug or common.log_file is not None:
        common.start_logging()
        logging.getLogger(__name__).error("a bug in libraryfs", exc_info=error)
    how = f"see {common.log_file}" if common.log_file else "run it again with --debug to see where"
    first = (str(error).splitlines() or [""])[0]
    click.echo(f"libraryfs: a bug: {type(error).__name__}: {first} ({how})", err=True)
    return BUG


if __name__ == "__main__":
    sys.exit(run())
