"""`libraryfs umount`: ends a mount."""

from pathlib import Path

import click

from libraryfs.cli.options import FILE_PATH, logging_options

EPILOG = """\b
Example:
  libraryfs umount ~/library
\b
A folder that is not mounted is no error. A mount in use is detached: it is gone for everybody else at once.
"""


@click.command("umount", epilog=EPILOG)
@click.argument("mountpoint", type=FILE_PATH)
@logging_options
def command(mountpoint: Path) -> None:
    """Unmount the library on MOUNTPOINT."""
    from libraryfs.mount.daemon import umount

    click.echo(umount(mountpoint))
