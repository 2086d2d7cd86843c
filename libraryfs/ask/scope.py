"""Folders and files → what to search: only what the principal may see gets into a scope at all."""

from libraryfs.library.resolver import Library
from libraryfs.nodes import AGENTS_INO, RINGS_INO, ROOT_INO, Entry, Kind
from libraryfs.paths import SECTIONS
from libraryfs.store.search_scope import SearchScope

_MEMORY_SECTIONS = frozenset(name.encode() for name in SECTIONS) - {b"workspace", b"artifacts"}


def search_scope(library: Library, entry: Entry) -> SearchScope:
    """What lies below `entry`, or the file itself, cut to the namespaces that the principal may see."""
    if entry.ino == ROOT_INO:
        return SearchScope(tuple(sorted(library.visible())))
    if entry.ino in (RINGS_INO, AGENTS_INO):
        kind = "ring" if entry.ino == RINGS_INO else "agent"
        return SearchScope(tuple(namespace.id for namespace in library.namespaces() if namespace.kind == kind))
    if entry.namespace_id is None or not library.may_see(entry):
        return SearchScope(())
    namespaces = (entry.namespace_id,)
    match entry.kind:
        case Kind.NAMESPACE:
            return SearchScope(namespaces)
        case Kind.SECTION if entry.name in _MEMORY_SECTIONS and not library.has_folders(entry):
            return SearchScope(namespaces, section=entry.ino)
        case Kind.SECTION if entry.name == b"memory":  # an agent's only one
            return SearchScope(namespaces)
        case Kind.SECTION | Kind.FOLDER | Kind.PREFIX:
            return SearchScope(namespaces, below=entry.ino)
        case _:
            return SearchScope(namespaces, file=entry.ino)
