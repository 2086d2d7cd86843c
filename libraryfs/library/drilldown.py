"""drilldown(path): what is below a path, with excerpts, under four caps, breadth first.

A cap cuts the far parts and says so: `stopped` names the cap that ended the walk, and each folder that is cut says how
many of its entries were left out.
"""

from collections import deque
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from libraryfs.errors import InvalidRequest
from libraryfs.library.resolver import Library
from libraryfs.library.tree import kind_name, listing
from libraryfs.nodes import Entry, Kind
from libraryfs.paths import shown
from libraryfs.store import names

EXCERPT_BYTES = 1200
"""How much of a file is read for its excerpt; the token budget may cut it further."""
BYTES_PER_TOKEN = 4
"""A token is counted as four bytes of UTF-8: no model is loaded to walk a tree."""

Stopped = Literal["completed", "max_depth", "max_items_per_level", "max_total_tokens", "circuit_breaker"]


class DrilldownRequest(BaseModel):
    """The four caps: levels below the path, entries of one folder, tokens of all excerpts, nodes of the whole walk."""

    model_config = ConfigDict(extra="forbid")

    max_depth: int = Field(3, ge=1, le=20)
    max_items_per_level: int = Field(20, ge=1, le=1000)
    max_total_tokens: int = Field(4000, ge=1, le=1_000_000)
    circuit_breaker: int = Field(200, ge=1, le=10_000)


def build(fields: dict[str, Any]) -> DrilldownRequest:
    """The request of these fields. Raises InvalidRequest naming the first that is wrong."""
    try:
        return DrilldownRequest.model_validate(fields)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise InvalidRequest(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None


class DrilldownNode(BaseModel):
    """A folder or a file. `left_out` counts the entries of a folder that a cap cut, `cut_by` names that cap."""

    name: str
    path: str
    kind: str
    size: int
    excerpt: str | None = None
    excerpt_cut: bool = False
    children: list["DrilldownNode"] = []
    left_out: int = 0
    cut_by: Stopped | None = None


class Drilldown(BaseModel):
    """The walk's result. `stopped` is the strongest cap that was met, in the order of `_STRENGTH`."""

    root: DrilldownNode
    stopped: Stopped
    nodes: int
    tokens: int
    left_out: int


_STRENGTH: tuple[Stopped, ...] = (
    "completed",
    "max_depth",
    "max_items_per_level",
    "max_total_tokens",
    "circuit_breaker",
)


class _Walk:
    def __init__(self, library: Library, request: DrilldownRequest) -> None:
        self.library = library
        self.request = request
        self.nodes = 0
        self.tokens = 0
        self.left_out = 0
        self.stopped: Stopped = "completed"

    def stop(self, node: DrilldownNode, reason: Stopped, left_out: int) -> None:
        node.left_out += left_out
        node.cut_by = reason
        self.left_out += left_out
        if _STRENGTH.index(reason) > _STRENGTH.index(self.stopped):
            self.stopped = reason

    def node(self, entry: Entry, path: str) -> DrilldownNode:
        self.nodes += 1
        node = DrilldownNode(name=names.from_bytes(entry.name), path=path, kind=kind_name(entry), size=entry.size)
        if not entry.is_folder:
            self.excerpt(entry, node)
        return node

    def excerpt(self, entry: Entry, node: DrilldownNode) -> None:
        left = (self.request.max_total_tokens - self.tokens) * BYTES_PER_TOKEN
        wanted = min(entry.size, EXCERPT_BYTES)
        data = names.cut(self.library.read(entry, 0, wanted + 4), min(wanted, max(left, 0)))
        if b"\0" in data:
            return
        try:
            node.excerpt = data.decode()
        except UnicodeDecodeError:
            return
        node.excerpt_cut = len(data) < entry.size
        self.tokens += -(-len(data) // BYTES_PER_TOKEN)
        if left < wanted:
            self.stop(node, "max_total_tokens", 0)


def drilldown(library: Library, path: str, request: DrilldownRequest | None = None) -> Drilldown:
    """The walk from `path`. Raises InvalidPath, PathNotFound."""
    walk = _Walk(library, request or DrilldownRequest())
    entry = library.resolve(path)
    root = walk.node(entry, library.path_of(entry))
    queue: deque[tuple[Entry, DrilldownNode, int]] = deque([(entry, root, 0)])
    while queue:
        folder, node, depth = queue.popleft()
        if not folder.is_folder:
            continue
        if depth >= walk.request.max_depth:
            if count := library.count(folder):
                walk.stop(node, "max_depth", count)
            continue
        _expand(walk, folder, node, depth, queue)
    return Drilldown(root=root, stopped=walk.stopped, nodes=walk.nodes, tokens=walk.tokens, left_out=walk.left_out)


def _expand(
    walk: _Walk, folder: Entry, node: DrilldownNode, depth: int, queue: deque[tuple[Entry, DrilldownNode, int]]
) -> None:
    limit = walk.request.max_items_per_level
    if folder.kind in (Kind.NAMESPACE, Kind.ROOT):
        found = listing(walk.library, folder)[: limit + 1]
    else:
        found = walk.library.children_by_name(folder, limit=limit + 1)
    prefix = node.path.rstrip("/")
    for number, child in enumerate(found[:limit]):
        if walk.nodes >= walk.request.circuit_breaker:
            walk.stop(node, "circuit_breaker", walk.library.count(folder) - number)
            return
        if walk.tokens >= walk.request.max_total_tokens and not child.is_folder:
            walk.stop(node, "max_total_tokens", walk.library.count(folder) - number)
            return
        made = walk.node(child, f"{prefix}/{names.from_bytes(child.name)}")
        node.children.append(made)
        queue.append((child, made, depth + 1))
    if len(found) > limit:
        walk.stop(node, "max_items_per_level", walk.library.count(folder) - limit)


def render(result: Drilldown) -> str:
    """The walk as text: an outline with excerpts below the files, then one line that says why it stopped."""
    lines: list[str] = []

    def write(node: DrilldownNode, level: int) -> None:
        indent = "  " * level
        label = node.path if level == 0 else shown(node.name)
        lines.append(f"{indent}{label}{'/' if node.kind == 'folder' and level else ''}")
        if node.excerpt:
            lines.extend(f"{indent}  | {line}" for line in node.excerpt.splitlines())
            if node.excerpt_cut:
                lines.append(f"{indent}  | … ({node.size} bytes in all)")
        for child in node.children:
            write(child, level + 1)
        if node.left_out:
            lines.append(f"{indent}  … {node.left_out} left out ({node.cut_by})")

    write(result.root, 0)
    lines.append("")
    lines.append(
        f"stopped: {result.stopped}; {result.nodes} nodes, {result.tokens} tokens, {result.left_out} entries left out"
    )
    return "\n".join(lines) + "\n"
