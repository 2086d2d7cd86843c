"""A systemd user unit for a mount."""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from pydantic import SecretStr

from libraryfs.mount.options import MountOptions
from libraryfs.settings import PREFIX, Settings, settings


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
{"".join(_environment())}ExecStartPre=-mkdir -p {_quote(os.path.abspath(options.mountpoint))}
ExecStart={" ".join(map(_quote, command))}
ExecStop={" ".join(map(_quote, stop))}
Restart=on-failure
RestartSec=2

[Install]
WantedBy=default.target
"""


def _environment() -> Iterator[str]:
    """The settings in force, a line each. Keys are named and not written down: others may read the file."""
    chosen = settings()
    for name, field in Settings.model_fields.items():
        variable, value = PREFIX + name.upper(), getattr(chosen, name)
        if name == "snapshot" or value == field.default:
            continue
        if isinstance(value, SecretStr):
            yield f"# {variable} is set here, and not written down: name a file that sets it, as EnvironmentFile=\n"
            continue
        text = str(value)
        if os.path.exists(text):
            text = os.path.abspath(text)  # the unit starts elsewhere
        yield f"Environment={_assignment(variable, text)}\n"
    if os.environ.get("XDG_CACHE_HOME") and chosen.cache is None:
        yield f"Environment={_assignment(PREFIX + 'CACHE', os.path.abspath(chosen.cache_path))}\n"


def _assignment(name: str, value: str) -> str:
    """One word of an Environment line, where $ means nothing."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{name}={_escape(escaped)}"'


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
