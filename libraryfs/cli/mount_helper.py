"""`mount.libraryfs SNAPSHOT MOUNTPOINT [-o OPTIONS]`: what mount(8) and /etc/fstab call.

Own options: as=PRINCIPAL, log_file=FILE, log_level=LEVEL, allow_other, foreground. Options that mount(8) knows for
every file system (ro, nofail, _netdev, x-systemd.…) are accepted; some go on to the kernel; any other one is refused.
"""

import sys
from pathlib import Path
from typing import Final

import click

from libraryfs.cli.options import FILE_PATH, LOG_LEVELS, Common
from libraryfs.paths import check_principal
from libraryfs.settings import login_name

_ON_OR_OFF: Final = frozenset(
    ("auto", "user", "users", "owner", "group", "dev", "suid", "exec", "atime", "relatime", "diratime", "lazytime")
)
_PLAIN: Final = frozenset(
    ("defaults", "rw", "ro", "nofail", "_netdev", "strictatime", "async", "sync", "silent", "loud")
)
FOR_FUSE: Final = frozenset({"noexec", "nosuid", "nodev", "dirsync", "noatime"})
EPILOG = """\b
Examples:
  mount.libraryfs /srv/library.db /mnt/library -o as=alice,allow_other
  mount -t fuse.libraryfs /srv/library.db /mnt/library -o as=alice
\b
In /etc/fstab:
  /srv/library.db  /mnt/library  fuse.libraryfs  as=alice,allow_other,log_file=/var/log/libraryfs.log,nofail  0 0
"""


def _is_for_mount(option: str) -> bool:
    """Whether mount(8) itself means something by this option of /etc/fstab."""
    return (
        option in _PLAIN
        or option.removeprefix("no") in _ON_OR_OFF
        or option.lower().startswith("x-")
        or option.startswith("comment=")
    )


def is_mount_call(arguments: list[str]) -> bool:
    """Whether `libraryfs …` is called as mount(8) does it for `-t fuse.libraryfs`: SOURCE FOLDER -o OPTIONS."""
    return len(arguments) == 4 and arguments[2] == "-o" and not arguments[0].startswith("-")


@click.command("mount.libraryfs", epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("snapshot", type=FILE_PATH)
@click.argument("mountpoint", type=FILE_PATH)
@click.option("-o", "options", metavar="OPTIONS", multiple=True, help="Options, separated by commas.")
@click.option("-s", "sloppy", is_flag=True, help="Pass over options that are not known.")
@click.option("-f", "fake", is_flag=True, help="Check the options, and mount nothing.")
@click.option("-n", "_no_table", is_flag=True, help="For mount(8); does nothing.")
@click.option("-v", "verbose", is_flag=True, help="Log from level info up.")
@click.option("-t", "_type", metavar="TYPE", help="For mount(8); does nothing.")
def command(
    snapshot: Path,
    mountpoint: Path,
    options: tuple[str, ...],
    sloppy: bool,
    fake: bool,
    verbose: bool,
    _no_table: bool,
    _type: str | None,
) -> None:
    """Mount SNAPSHOT on MOUNTPOINT, called by mount(8)."""
    from libraryfs.mount.daemon import MountOptions, serve

    own: dict[str, str] = {}
    flags: list[str] = []
    for option in (part for text in options for part in text.split(",") if part):
        name, _, value = option.partition("=")
        if name in ("as", "log_file", "log_level"):
            own[name] = value
        elif option in ("allow_other", "foreground"):
            own[option] = "yes"
        elif option in FOR_FUSE:
            flags.append(option)
        elif not (_is_for_mount(option) or sloppy):
            raise click.BadParameter(
                f"no option {option!r}; libraryfs has as=, log_file=, log_level=, allow_other", param_hint="-o"
            )
    level = own.get("log_level", "info" if verbose else "warning")
    if level not in LOG_LEVELS:
        raise click.BadParameter(f"log_level={level}: one of {', '.join(LOG_LEVELS)}", param_hint="-o")
    if own.get("as") == "":
        raise click.BadParameter("as=: name a principal, for example as=alice", param_hint="-o")
    made = MountOptions(
        snapshot=snapshot,
        mountpoint=mountpoint,
        principal=check_principal(own.get("as") or login_name()),
        foreground="foreground" in own,
        allow_other="allow_other" in own,
        log_file=Path(own["log_file"]) if own.get("log_file") else None,
        log_level=level,
        fuse_options=tuple(flags),
    )
    if not fake:
        serve(made)


def run(arguments: list[str] | None = None) -> int:
    """Run as `mount.libraryfs`, and give the exit code."""
    from libraryfs.cli.main import guarded

    return guarded(command, sys.argv[1:] if arguments is None else arguments, "mount.libraryfs", Common())
