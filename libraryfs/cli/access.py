"""What grant and revoke share: one change of access, in one transaction."""

import click

from libraryfs.cli.options import common_of
from libraryfs.cli.output import print_json
from libraryfs.errors import PathNotFound
from libraryfs.paths import nearest, parse_namespace
from libraryfs.store import access, namespaces


def change_access(context: click.Context, principal: str, paths: tuple[str, ...], *, give: bool) -> dict[str, bool]:
    """Grant or revoke, all or none. By path, whether that changed something; empty when --json has printed it.

    Raises PathNotFound when there is no such ring or agent, InvalidPath, SnapshotError.
    """
    common = common_of(context)
    common.start_logging()
    chosen = {path: parse_namespace(path) for path in paths}
    changed: dict[str, bool] = {}
    with common.open(write=True) as snapshot, snapshot.transaction() as db:
        for path, (kind, name) in chosen.items():
            namespace = namespaces.find(db, kind, name)
            if namespace is None:
                raise PathNotFound(path, nearest(path, (one.path for one in namespaces.every(db)), 0.8))
            changed[namespace.path] = (access.grant if give else access.revoke)(db, principal, namespace)
    if common.json:
        told = [{"path": path, "changed": one} for path, one in changed.items()]
        print_json({"principal": principal, "granted": give, "paths": told})
        return {}
    return changed
