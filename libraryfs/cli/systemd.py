"""A systemd user unit for a mount."""

import os
import shutil
import sys
from pathlib import Path

from libraryfs.mount.options import MountOptions


def unit(options: MountOptions) -> str:
    """The unit's text: in the foreground, started again when it fails, its log in the journal."""
    command = [
        *_program(),
        "mount",
        os.path.abspath(options.mountpoint),
        f"--snapshot={os.path.abspath(options.snapshot)}",
        f"--as={options.principal}",
        "--foreground",
        f"--log-level={options.log_level}",
    ]
    if options.allow_other:
        command.append("--allow-other")
    if options.log_file is not None:
        command.append(f"--log-file={os.path.abspath(options.log_file)}")
    command += [part for option in options.fuse_options for part in ("-o", option)]
    # mkdir may fail (-): it does so on a dead mount, which the start recovers
    stop = [*_program(), "umount", os.path.abspath(options.mountpoint)]
    return f"""\
[Unit]
Description=libraryfs on {_escape(os.path.abspath(options.mountpoint))}

[Service]
Type=exec
ExecStartPre=-mkdir -p {_quote(os.path.abspath(options.mountpoint))}
ExecStart={" ".join(map(_quote, command))}
ExecStop={" ".join(map(_quote, stop))}
Restart=on-failure
RestartSec=2

[Install]
WantedBy=default.target
"""


def _program() -> list[str]:
    beside = Path(sys.executable).with_name("libraryfs")
    if beside.exists():
        return [str(beside)]
    found = shutil.which("libraryfs")
    return [found] if found else [sys.executable, "-m", "libraryfs.cli.main"]


def _escape(text: str) -> str:
    """systemd expands % everywhere; control characters would end the line."""
    return "".join(f"\\x{ord(char):02x}" if ord(char) < 32 else char for char in text).replace("%", "%%")


def _quote(text: str) -> str:
    """One word of an Exec line: systemd expands % and $ in it, and reads C escapes between double quotes."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    escaped = _escape(escaped).replace("$", "$$")
    return escaped if escaped and not set(escaped) & set(" \t'\"\\;#") else f'"{escaped}"'
