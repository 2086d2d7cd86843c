"""Extended attributes through the kernel."""

import os
from pathlib import Path

from libraryfs.store import edges
from tests.mount.conftest import Mounted
from tests.mount.live import until
from tests.store.build import Builder


def attributes(path: Path) -> dict[str, bytes]:
    return {name.removeprefix("user.library."): os.getxattr(path, name) for name in os.listxattr(path)}


def test_metadata_and_supersession_from_both_ends(build: Builder, mounted: Mounted) -> None:
    namespace = build.namespace("/ring/dev", "me")
    build.memory("/ring/dev", "old", metadata={"owner": "ann"}, confidence=0.5)
    build.memory("/ring/dev", "new")
    with build.snapshot.transaction():
        edges.put(build.db, edges.Edge(namespace.id, "new", "supersedes", namespace.id, "old"), None)
    skills = mounted(build.path).point / "ring" / "dev" / "skills"
    old, new = attributes(skills / "old.md"), attributes(skills / "new.md")
    assert (old["owner"], old["confidence"], old["superseded_by"]) == (b"ann", b"0.5", b"new")
    assert (new["id"], new["type"], new["supersedes"]) == (b"new", b"skill", b"old")


def test_what_another_process_writes_shows_at_the_next_look(build: Builder, mounted: Mounted) -> None:
    build.namespace("/ring/dev", "me")
    build.memory("/ring/dev", "m", metadata={"status": "draft"})
    file = mounted(build.path).point / "ring" / "dev" / "skills" / "m.md"
    assert attributes(file)["status"] == b"draft"
    build.memory("/ring/dev", "m", metadata={"status": "final"})
    until(lambda: attributes(file)["status"] == b"final", 2)


def test_a_thousand_attributes(build: Builder, mounted: Mounted) -> None:
    build.namespace("/ring/dev", "me")
    wanted = {f"key-{number}": str(number) for number in range(1000)}
    build.memory("/ring/dev", "m", metadata=wanted)
    found = attributes(mounted(build.path).point / "ring" / "dev" / "skills" / "m.md")
    assert {name: value.encode() for name, value in wanted.items()}.items() <= found.items()
