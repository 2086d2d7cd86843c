"""`libraryfs eval new`: a draft of an eval set from a ring; `libraryfs eval add`: one question more in a set's file."""

import os
import tempfile
from pathlib import Path

import click

from libraryfs.cli.options import FILE_PATH, as_option, common_of, logging_options, snapshot_option
from libraryfs.cli.output import show
from libraryfs.errors import EvalSetError

NEW_EPILOG = """\b
Examples:
  libraryfs eval new dev
  libraryfs eval new dev --questions 50 --output notes/workspace/eval-set.md
  libraryfs eval new dev --output -
"""
ADD_EPILOG = """\b
Examples:
  libraryfs eval add "When do we deploy?" --expect Thursday
  libraryfs eval add "Who founded Rome?" --expect "(not in the library)" --must
  libraryfs eval add "Who approves?" --expect "two reviewers" --path /ring/dev/policies
"""
DEFAULT_FILE = Path("eval-set.md")


@click.command("new", epilog=NEW_EPILOG)
@click.argument("ring")
@click.option(
    "--questions", metavar="N", type=click.IntRange(1, 1000), default=20, show_default=True, help="At most N."
)
@click.option("--output", metavar="FILE", type=FILE_PATH, default=DEFAULT_FILE, show_default=True, help="- is stdout.")
@as_option
@snapshot_option
@logging_options
@click.pass_context
def new(context: click.Context, /, ring: str, questions: int, output: Path, principal: str) -> int:
    """Draft an eval set from a ring's own files, for you to edit.

    Each question is about a section of a file, with fragments copied from it and the place where they stand. The draft
    is refused by 'libraryfs eval' until you remove the line 'draft: true'. Put it into the ring's folder as
    workspace/eval-set.md and import that.
    """
    from libraryfs.evals import draft, load
    from libraryfs.library.resolver import Library

    common = common_of(context)
    common.start_logging()
    if str(output) != "-" and output.exists():
        raise click.UsageError(f"{output} exists already; name another file with --output", context)
    with common.open() as snapshot:
        path = load.ring_path(ring)
        drafted = draft.draft(Library(snapshot, principal), path, questions)
    if not drafted:
        raise EvalSetError(f"{path}: no Markdown file with a section of text in it, so there is nothing to ask about")
    text = draft.render(path, drafted)
    if str(output) == "-":
        show(text)
        return 0
    output.write_text(text, encoding="utf-8", errors="replace")
    files = len({one.path for one in drafted})
    click.echo(
        f"{output}: {len(drafted)} questions over {files} files. Edit them, remove the line 'draft: true', then import"
        " the file as workspace/eval-set.md of the ring."
    )
    return 0


@click.command("add", epilog=ADD_EPILOG)
@click.argument("question")
@click.option("--expect", "fragments", metavar="TEXT", multiple=True, required=True, help="What a right answer holds.")
@click.option("--path", "paths", metavar="PATH", multiple=True, help="Ask below this library path. Default: the ring.")
@click.option("--must", is_flag=True, help="A pass that is lost on this question fails the run.")
@click.option("--file", metavar="FILE", type=FILE_PATH, default=DEFAULT_FILE, show_default=True, help="The set's file.")
@logging_options
@click.pass_context
def add(
    context: click.Context, /, question: str, fragments: tuple[str, ...], paths: tuple[str, ...], must: bool, file: Path
) -> int:
    """Append a question to an eval set's file, which is made if it does not exist.

    The set is checked first, so a question that would be refused is not written. Import the file to run it.
    """
    from libraryfs.evals import draft
    from libraryfs.evals.evalset import parse_evalset

    common_of(context).start_logging()
    before = file.read_bytes() if file.exists() else b""
    added = draft.appended(_text(before, file), question, fragments, paths, must=must).encode(
        "utf-8", "surrogateescape"
    )
    try:
        questions = parse_evalset(added.replace(b"draft: true", b"draft: false", 1)).questions
    except EvalSetError as error:
        raise EvalSetError(f"{file}: {error}; nothing was written") from None
    last = questions[-1]
    if last.text != " ".join(question.split()) or len(last.fragments) != len(set(fragments)) or last.must != must:
        raise click.UsageError("the question or a fragment is Markdown that would be read as something else", context)
    _replace(file, added)
    click.echo(f"{file}: {len(questions)} question{'s' * (len(questions) != 1)}; the new one is in line {last.line}")
    return 0


def _text(data: bytes, file: Path) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise EvalSetError(f"{file}: not UTF-8; save the set as UTF-8") from None


def _replace(file: Path, data: bytes) -> None:
    """Writes the file whole or not at all, through a link if it is one, and keeps its permissions."""
    target = Path(os.path.realpath(file))
    with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.", delete=False) as new_file:
        try:
            new_file.write(data)
            new_file.flush()
            umask = os.umask(0)
            os.umask(umask)
            os.fchmod(new_file.fileno(), target.stat().st_mode & 0o7777 if target.exists() else 0o666 & ~umask)
            os.replace(new_file.name, target)
        except BaseException:
            os.unlink(new_file.name)
            raise
