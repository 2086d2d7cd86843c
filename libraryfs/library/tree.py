"""tree(path, depth): what is below a path, to a depth, whole."""

from pydantic import BaseModel, ConfigDict, Field

from libraryfs.errors import LimitExceeded
from libraryfs.library.resolver import Library
from libraryfs.nodes import Entry, Kind
from libraryfs.paths import shown
from libraryfs.settings import settings
from libraryfs.store import names

_PAGE = 1000


class TreeRequest(BaseModel):
    """`depth` 1 is the path's own children."""

    model_config = ConfigDict(extra="forbid")

    depth: int = Field(1, ge=0)


class TreeNode(BaseModel):
    """A folder or a file. `size` in bytes; `children` is None where the depth ends or the node is a file.

    `more` counts the entries of a folder at which the depth ends.
    """

    name: str
    path: str
    kind: str
    size: int
    children: list["TreeNode"] | None = None
    more: int = 0


def kind_name(entry: Entry) -> str:
    """The entry's kind as a reader writes it: memory, item, artifact, or folder."""
    return "folder" if entry.is_folder else Kind(entry.kind).name.lower()


def tree(library: Library, path: str, depth: int = 1) -> TreeNode:
    """The node of `path` with its descendants down to `depth` levels, sections in their order, others by name.

    Raises LimitExceeded over LIBRARYFS_MAX_DEPTH (refused, not clipped), InvalidPath, PathNotFound.
    """
    limit = settings().max_depth
    if not 0 <= depth <= limit:
        raise LimitExceeded(f"depth {depth}: at most {limit} (LIBRARYFS_MAX_DEPTH), at least 0")
    entry = library.resolve(path)
    return _node(library, entry, library.path_of(entry), depth)


def _node(library: Library, entry: Entry, path: str, depth: int) -> TreeNode:
    node = TreeNode(name=names.from_bytes(entry.name), path=path, kind=kind_name(entry), size=entry.size)
    if entry.is_folder and depth > 0:
        prefix = path.rstrip("/")
        node.children = [
            _node(library, child, f"{prefix}/{names.from_bytes(child.name)}", depth - 1)
            for child in listing(library, entry)
        ]
    elif entry.is_folder:
        node.more = library.count(entry)
    return node


def listing(library: Library, folder: Entry) -> list[Entry]:
    """All entries of a folder, sections in their order, others by name."""
    found: list[Entry] = []
    after = b""
    while page := library.children_by_name(folder, after, _PAGE):
        found += page
        after = page[-1].name
        if folder.kind == Kind.NAMESPACE:
            break
    return found


def render(node: TreeNode) -> str:
    """The tree as text, one line a node, folders with a trailing `/`; ends with a new line."""
    lines = [node.path + _more(node)]

    def walk(children: list[TreeNode], indent: str) -> None:
        for number, child in enumerate(children):
            last = number == len(children) - 1
            lines.append(
                f"{indent}{'└── ' if last else '├── '}{shown(child.name)}{'/' if child.kind == 'folder' else ''}"
                + _more(child)
            )
            walk(child.children or [], indent + ("    " if last else "│   "))

    walk(node.children or [], "")
    return "\n".join(lines) + "\n"


def _more(node: TreeNode) -> str:
    return f"  … {node.more} more" if node.more else ""
