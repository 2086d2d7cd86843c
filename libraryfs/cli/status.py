"""`libraryfs status`: what is mounted, from which snapshot, how fresh, with which models."""

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import click

from libraryfs.cli.options import common_of, json_option, logging_options, snapshot_option
from libraryfs.cli.output import count, faint, print_json
from libraryfs.cli.sources import ago
from libraryfs.errors import LibraryError
from libraryfs.paths import shown
from libraryfs.settings import settings
from libraryfs.store import namespaces, sources, vectors

EPILOG = """\b
Examples:
  libraryfs status
  libraryfs status --json
"""


class MountStatus(NamedTuple):
    """A mounted library; what cannot be told of another user's mount is None."""

    point: str
    snapshot: str | None
    principal: str | None
    pid: int | None


@click.command("status", epilog=EPILOG)
@snapshot_option
@json_option
@logging_options
@click.pass_context
def command(context: click.Context) -> None:
    """Say what is mounted, what is in the snapshot, how fresh it is, and which models answer."""
    common = common_of(context)
    common.start_logging()
    mounts = list(mounted())
    try:
        contents: dict[str, Any] = _contents(common.snapshot_path, common.open)
    except LibraryError as error:
        contents = {"error": error.message}
    chosen = settings()
    models = {"embedder": chosen.embedder, "language_model": chosen.llm}
    if common.json:
        rows = [mount._asdict() for mount in mounts]
        print_json({"snapshot": str(common.snapshot_path), **contents, "models": models, "mounts": rows})
        return
    click.echo(f"snapshot  {shown(str(common.snapshot_path))}")
    if "error" in contents:
        click.echo(f"          {shown(contents['error'])}")
    else:
        _tell(contents)
    click.echo(f"models    embedding: {models['embedder']}; language: {models['language_model']}")
    for mount in mounts:
        of = f"of {shown(mount.snapshot)}" if mount.snapshot else "of a snapshot that this user cannot see"
        seen = f", as {shown(mount.principal)}" if mount.principal else ""
        click.echo(f"mounted   {shown(mount.point)} {of}{seen}")
    if not mounts:
        click.echo(f"mounted   {faint('nothing; libraryfs mount ~/library')}")


def _contents(path: Path, opening: Any) -> dict[str, Any]:
    with opening() as snapshot:
        db = snapshot.db
        found = sources.every(db)
        embedder = vectors.embedder(db)
        return {
            "bytes": path.stat().st_size,
            "namespaces": [one.path for one in namespaces.every(db)],
            "sources": [
                {
                    "source": str(one.path or one.uri),
                    "namespace": one.namespace or None,
                    "rows": one.rows,
                    "imported": ago(one),
                    "imported_at": one.imported_ns / 1_000_000_000,
                    "exists": one.path is not None and one.path.exists(),
                    "options": json.loads(one.options),
                }
                for one in found
            ],
            "vectors_from": embedder.model if embedder else None,
            "waiting": vectors.count_queued(db),
        }


def _tell(contents: dict[str, Any]) -> None:
    size = f"{contents['bytes'] / 1_000_000:,.1f} MB"
    where = ", ".join(contents["namespaces"]) or "nothing"
    click.echo(f"          {size}: {shown(where)}")
    for one in contents["sources"]:
        gone = "" if one["exists"] else ", which is not there now"
        click.echo(f"source    {shown(one['source'])}{gone}: {count(one['rows'], 'row')}, in step {one['imported']}")
    waiting = f"; {count(contents['waiting'], 'file')} without: libraryfs embed" if contents["waiting"] else ""
    click.echo(f"vectors   from {contents['vectors_from'] or 'no model yet'}{waiting}")


def mounted() -> list[MountStatus]:
    """The libraries that are mounted on this machine."""
    from libraryfs.mount.mountpoint import FILESYSTEM, every_mount

    found = []
    for point, mount in every_mount():
        if mount.filesystem == FILESYSTEM:
            pid = _daemon(mount.device.rpartition(":")[2])
            found.append(MountStatus(os.fsdecode(point), _snapshot_of(pid), _principal_of(pid), pid))
    return found


def _daemon(connection: str) -> int | None:
    """The process that serves a FUSE connection, as the kernel tells of its device's descriptor."""
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            for link in (folder / "fd").iterdir():
                if os.readlink(link) == "/dev/fuse":
                    told = (folder / "fdinfo" / link.name).read_text(encoding="utf-8")
                    if f"fuse_connection:\t{connection}\n" in told:
                        return int(folder.name)
        except OSError:  # another user's, or gone meanwhile
            continue
    return None


def _snapshot_of(pid: int | None) -> str | None:
    if pid is None:
        return None
    try:
        opened = {os.readlink(link) for link in Path(f"/proc/{pid}/fd").iterdir()}
    except OSError:
        return None
    return next((path for path in sorted(opened) if f"{path}-wal" in opened or f"{path}-shm" in opened), None)


def _principal_of(pid: int | None) -> str | None:
    if pid is None:
        return None
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace").split("\0")
    except OSError:
        return None
    for number, word in enumerate(words):
        if word == "--as" and number + 1 < len(words):
            return words[number + 1]
        if word.startswith("--as="):
            return word.removeprefix("--as=")
    return None
