"""`libraryfs init`: the first five minutes, from a folder to a mounted library and three commands worth trying."""

import os
import re
import shlex
import sys
from pathlib import Path
from typing import Any, Final

import click

from libraryfs.cli.embed import described
from libraryfs.cli.import_ import embed, opened, tell
from libraryfs.cli.options import Common, FilePathType, as_option, common_of, logging_options, snapshot_option
from libraryfs.cli.output import count, progress_bar, table
from libraryfs.cli.source_options import said, source_options
from libraryfs.errors import LibraryError, MountError
from libraryfs.paths import shown

EPILOG = """\b
Examples:
  libraryfs init                       this folder, mounted at ./.library
  libraryfs init notes/ --ring dev --mount ~/library
  libraryfs init --no-mount --yes
"""

MOUNT_NAME: Final = ".library"
_UNFIT: Final = re.compile(r"[^\w.-]+")


@click.command("init", epilog=EPILOG)
@click.argument("folder", type=FilePathType(exists=True, file_okay=False), default=".")
@click.option("--ring", metavar="NAME", help="The ring to import into. Default: the folder's name.")
@click.option("--mount", "point", type=FilePathType(), metavar="PATH", help="Mount here. Default: FOLDER/.library.")
@click.option("--no-mount", is_flag=True, help="Mount nothing.")
@click.option("--no-embed", is_flag=True, help="Leave the search vectors for `libraryfs embed`.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@source_options
@as_option
@snapshot_option
@logging_options
@click.pass_context
def command(
    context: click.Context,
    /,
    folder: Path,
    ring: str | None,
    point: Path | None,
    no_mount: bool,
    no_embed: bool,
    yes: bool,
    principal: str,
    **options: Any,
) -> None:
    """Look around in FOLDER, import it, embed it, mount it, and say what to try."""
    from libraryfs.ingest.importer import import_source
    from libraryfs.ingest.survey import survey

    common = common_of(context)
    common.start_logging()
    folder = folder.resolve()
    ring = ring or _UNFIT.sub("-", folder.name).strip("-.") or "notes"
    found = survey(folder, said(options), frozenset({str(common.snapshot_path)}))
    click.echo(f"{shown(str(folder))}: {found.taken_as}")
    rows: list[tuple[str, ...]] = [("files", "go to")]
    rows += [(f"{number:,}", f"/ring/{ring}/{section}") for section, number in found.sections.items()]
    rows += [(f"{number:,}", f"left out: {reason}") for reason, number in found.left_out.items()]
    for line in table(rows):
        click.echo(f"  {shown(line)}")
    if not found.sections:
        click.echo("nothing here to import", err=True)
        return
    if not yes and sys.stdin.isatty():
        click.confirm("Import this?", default=True, abort=True)
    with opened(common) as snapshot, progress_bar() as progress:
        report = import_source(snapshot, folder, f"/ring/{ring}", principal, progress, options=said(options))
        embedded, failure = (None, None) if no_embed else embed(snapshot, progress)
    tell(report)
    if embedded is not None and embedded.chunks:
        click.echo(f"  {described(embedded)}")
    if failure is not None:
        click.echo(f"  not embedded, so found by keywords only: {failure}; `libraryfs embed` makes up for it", err=True)
    mounted = None if no_mount else _mounted(common, folder, point, principal)
    _suggest(common, f"/ring/{ring}", mounted, principal)


def _mounted(common: Common, folder: Path, point: Path | None, principal: str) -> Path | None:
    """The mount point, served. A machine that cannot mount keeps the library all the same."""
    from libraryfs.mount.daemon import MountOptions, serve
    from libraryfs.mount.mountpoint import FILESYSTEM, mounted_on

    point = (point or folder / MOUNT_NAME).absolute()
    found = mounted_on(point)
    if found is not None and found.filesystem == FILESYSTEM:
        return point
    try:
        is_inside = folder in point.parents
        if is_inside:
            _ignore(folder, point.relative_to(folder).as_posix())
        point.mkdir(parents=True, exist_ok=True)
        serve(MountOptions(snapshot=common.snapshot_path, mountpoint=point, principal=principal))
    except (MountError, OSError) as error:
        click.echo(f"  not mounted: {shown(str(error))}", err=True)
        return None
    return point


def _ignore(folder: Path, name: str) -> None:
    """The mount point in .gitignore, where there is a repository, and in .libraryfsignore: no tool walks into it."""
    files = [folder / ".libraryfsignore"] if name != MOUNT_NAME else []
    if (folder / ".git").exists() or (folder / ".gitignore").exists():
        files.append(folder / ".gitignore")
    for file in files:
        text = file.read_text(encoding="utf-8", errors="surrogateescape") if file.exists() else ""
        if f"/{name}/" not in text.splitlines():
            gap = "" if not text or text.endswith("\n") else "\n"
            file.write_text(f"{text}{gap}/{name}/\n", encoding="utf-8", errors="surrogateescape")


def _suggest(common: Common, path: str, mounted: Path | None, principal: str) -> None:
    from libraryfs.ask.suggest import questions
    from libraryfs.library.resolver import Library

    try:
        with common.open() as snapshot:
            found = questions(Library(snapshot, principal), path)
    except LibraryError:
        found = []
    extra = f" --snapshot {shlex.quote(str(common.snapshot))}" if common.snapshot is not None else ""
    click.echo("\nTry:")
    for question in found:
        click.echo(f"  libraryfs ask {shlex.quote(shown(question))}{extra}")
    if mounted is not None:
        click.echo(f"  ls {shlex.quote(os.path.relpath(mounted))}{shlex.quote(path)}")
    if len(found) < 3:
        click.echo(f"  libraryfs tree {shlex.quote(path)} --depth 2{extra}")
    click.echo(f"  libraryfs sync --watch{extra}        keeps it in step ({count(1, 'source')})")
