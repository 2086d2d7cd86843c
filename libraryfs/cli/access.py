"""What grant and revoke share: one change of access, in one transaction."""

import click

from libraryfs.cli.options import common_of
from libraryfs.cli.output import print_json
from libraryfs.errors import PathNotFound
from libraryfs.paths import parse_namespace
from libraryfs.store import access, namespaces


def change_access(context: click.Context, principal: str, path: str, *, give: bool) -> bool | None:
    """Grant or revoke. Whether that changed something; None when --json has printed it.

    Raises PathNotFound when there is no such ring or agent, InvalidPath, SnapshotError.
    """
    common = common_of(context)
    common.start_logging()
    kind, name = parse_namespace(path)
    with common.open(write=True) as snapshot, snapshot.transaction() as db:
        namespace = namespaces.find(db, kind, name)
        if namespace is None:
            raise PathNotFound(path)
        changed = (access.grant if give else access.revoke)(db, principal, namespace)
    if common.json:
        print_json({"principal": principal, "path": namespace.path, "granted": give, "changed": changed})
        return None
    return changed
