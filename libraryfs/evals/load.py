"""Finding and reading the eval set that a request names, as one principal sees it."""

from contextlib import suppress
from typing import NamedTuple

from libraryfs import paths
from libraryfs.ask.request import AskRequest
from libraryfs.ask.request import build as build_ask
from libraryfs.errors import EvalSetError, InvalidPath, InvalidRequest, PathNotFound
from libraryfs.evals.evalset import EvalSet, parse_evalset
from libraryfs.evals.request import EvalRequest
from libraryfs.library.resolver import Library
from libraryfs.nodes import Entry, Kind
from libraryfs.store import evals, namespaces, workspace
from libraryfs.store.evals import DEFAULT_NAME
from libraryfs.store.workspace import Item


class Loaded(NamedTuple):
    """An eval set that can be run: where it is, what it asks, and each question as the pipeline takes it."""

    ring: str
    path: str
    item: Item
    evalset: EvalSet
    requests: tuple[AskRequest, ...]
    hidden: frozenset[int]
    """Inode numbers of this set, the ring's default one, and what was run as a set: no answer comes from them."""


def ring_path(text: str) -> str:
    """`/ring/dev` of `dev` or `/ring/dev`. Raises InvalidPath."""
    path = text if text.startswith("/") else f"/ring/{text}"
    found = paths.parse(path)
    if not isinstance(found, paths.RingPath) or found.section is not None:
        raise InvalidPath(f"{text!r}: name a ring, dev or /ring/dev")
    return paths.format_path(found)


def find_item(library: Library, ring: str, request: EvalRequest) -> tuple[Entry, Item]:
    """The workspace item that the request names. Raises PathNotFound: absent, hidden, and of another ring alike."""
    library.resolve(ring)
    named = request.workspace_item_id
    entry = _default(library, ring) if named is None else _named(library, ring, named)
    item = workspace.get(library.snapshot.db, entry.ino)
    if item is None or entry.kind != Kind.ITEM:
        raise EvalSetError(f"{library.path_of(entry)}: is a folder; an eval set is a Markdown file")
    return entry, item


def _default(library: Library, ring: str) -> Entry:
    try:
        return library.resolve(f"{ring}/workspace/{DEFAULT_NAME}")
    except PathNotFound as error:
        error.args = (
            f"{error}; put workspace/{DEFAULT_NAME} into the ring's folder and import it,"
            " or name another set (--item, in .eval workspace_item_id)",
        )
        raise


def _named(library: Library, ring: str, name: str) -> Entry:
    """The ring's own item of this id, else of this library path, or path below the workspace."""
    namespace = namespaces.find_path(library.snapshot.db, ring)
    item = namespace and workspace.find(library.snapshot.db, namespace.id, name)
    try:
        if item is not None:
            entry = library.entry(item.ino)
            library.path_of(entry)  # raises when no path reaches it
            return entry
        path = paths.parse(name if name.startswith("/") else f"{ring}/workspace/{name}")
        if isinstance(path, paths.RingPath) and paths.format_path(path).startswith(f"{ring}/workspace/"):
            return library.resolve(paths.format_path(path))
    except (PathNotFound, InvalidPath):
        pass
    raise PathNotFound(f"workspace item {name} of {ring}")  # the same words for whatever is not to be had


def load(library: Library, ring: str, request: EvalRequest) -> Loaded:
    """The set, read and checked whole. Raises PathNotFound, EvalSetError with the line."""
    entry, item = find_item(library, ring, request)
    path = library.path_of(entry)
    try:
        evalset = parse_evalset(library.content(entry))
    except EvalSetError as error:
        raise EvalSetError(f"{path}: {error}") from None
    hidden = {entry.ino, *evals.with_runs(library.snapshot.db)}
    with suppress(PathNotFound):
        hidden.add(library.resolve(f"{ring}/workspace/{DEFAULT_NAME}").ino)
    return Loaded(ring, path, item, evalset, _requests(evalset, ring, path), frozenset(hidden))


def _requests(evalset: EvalSet, ring: str, path: str) -> tuple[AskRequest, ...]:
    options = evalset.options
    found = []
    for question in evalset.questions:
        fields = {
            "question": question.text,
            "paths": question.paths or options.paths or (ring,),
            "retrieval": options.retrieval,
            "latency_budget_ms": options.latency_budget_ms,
        }
        try:
            found.append(build_ask(fields))
        except InvalidRequest as error:
            at_paths = str(error).startswith("paths") and question.paths_line
            line = question.paths_line if at_paths else question.line
            raise EvalSetError(f"{path}: line {line}: {error}") from None
    return tuple(found)
