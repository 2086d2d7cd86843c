"""`libraryfs mount`: a principal's view of a snapshot as a filesystem."""

from pathlib import Path

import click

from libraryfs.cli.options import FILE_PATH, as_option, common_of, logging_options, snapshot_option

EPILOG = """\b
Examples:
  libraryfs mount ~/library
  libraryfs mount ~/library --as alice --foreground --log-level info
  libraryfs mount ~/library --systemd-unit > ~/.config/systemd/user/libraryfs.service
\b
It returns when the mount serves. Without --log-file, a mount in the background logs to
$XDG_STATE_HOME/libraryfs/mount.log (~/.local/state/libraryfs/mount.log).
"""


@click.command("mount", epilog=EPILOG)
@click.argument("mountpoint", type=FILE_PATH)
@as_option
@click.option("--foreground", "-f", is_flag=True, help="Stay in the foreground; Ctrl-C unmounts.")
@click.option("--allow-other", is_flag=True, help="Let other users of this machine in: they get this same view.")
@click.option("--systemd-unit", is_flag=True, help="Print a systemd user unit for this mount, and mount nothing.")
@click.option("-o", "fuse_options", metavar="OPTION", multiple=True, help="A FUSE option, as for mount(8).")
@snapshot_option
@logging_options
@click.pass_context
def command(
    context: click.Context,
    mountpoint: Path,
    principal: str,
    foreground: bool,
    allow_other: bool,
    systemd_unit: bool,
    fuse_options: tuple[str, ...],
) -> None:
    """Mount the library on MOUNTPOINT, an empty folder, as one principal sees it."""
    from libraryfs.mount.daemon import MountOptions, serve

    common = common_of(context)
    options = MountOptions(
        snapshot=common.snapshot_path,
        mountpoint=mountpoint,
        principal=principal,
        foreground=foreground,
        allow_other=allow_other,
        log_file=common.log_file,
        log_level=common.level,
        fuse_options=tuple(part for option in fuse_options for part in option.split(",") if part),
    )
    if systemd_unit:
        from libraryfs.cli.systemd import unit

        click.echo(unit(options), nl=False)
        return
    serve(options)
