"""A folder as a source: a ring's sections, or an agent's Markdown files.

    SOURCE/charter.md, SOURCE/skills/**.md, …   memories: Markdown only, flat, titled by front matter or by path
    SOURCE/workspace/**                         the tree as it is
    SOURCE/artifacts/**                         every file, named by its path

For an agent every Markdown file is a memory, `memory/` or not. A memory without an id has its path as one.
"""

import json
import mimetypes
import os
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Final

from libraryfs.errors import InvalidSource
from libraryfs.ingest import files
from libraryfs.ingest.front_matter import HEAD_BYTES, FrontMatter, read
from libraryfs.ingest.report import ImportReport, Progress
from libraryfs.ingest.source import AnyRow, Loaded, Scanned, path_id
from libraryfs.paths import AGENT_SECTION, SECTION_OF_TYPE, SECTIONS, TYPE_OF_SECTION
from libraryfs.rows import ArtifactRow, EdgeRow, MemoryRow, WorkspaceRow
from libraryfs.store import names
from libraryfs.store.bodies import CHUNK, Body, of_bytes

DEFAULT_TYPE: Final = "semantic"
EDGE_KINDS: Final = ("supersedes", "derives_from")
_MARKDOWN: Final = (".md", ".markdown")
_TOLD_EVERY: Final = 500
_ERRORS_NAMED: Final = 5

_MEDIA_TYPES: Final = mimetypes.MimeTypes()  # the built-in table: the machine's own would differ from the next one's
for _type, _suffix in (("application/yaml", ".yaml"), ("application/yaml", ".yml"), ("application/jsonl", ".jsonl")):
    _MEDIA_TYPES.add_type(_type, _suffix)
_MEDIA_TYPES.add_type("text/markdown", ".md")


class FolderSource:
    """The files below `root`, as rows of `namespace`."""

    def __init__(
        self, root: Path, namespace: str, report: ImportReport, progress: Progress, leave_out: frozenset[str]
    ) -> None:
        """`leave_out` are real paths that are never imported: the snapshot's own files."""
        self.root = root
        self.namespace = namespace
        self.uri = "folder:" + files.show(os.path.realpath(root))
        self._report = report
        self._progress = progress
        self._leave_out = leave_out
        self._is_ring = namespace.startswith("/ring/")

    def scan(self) -> Iterator[Scanned]:
        """Every row of the folder. A front matter that cannot be read ends the import, after all of them were tried."""
        errors: list[str] = []
        for count, found in enumerate(self._ring() if self._is_ring else self._agent()):
            if count % _TOLD_EVERY == 0:
                self._progress("read", count, 0)
            if self._is_own(found):
                self._skip(found.path, files.OWN_SNAPSHOT)
                continue
            try:
                yield from self._scanned(found)
            except InvalidSource as error:
                errors.append(str(error).removesuffix(". Nothing was imported"))
        if errors:
            more = f"; and {len(errors) - _ERRORS_NAMED} more" if len(errors) > _ERRORS_NAMED else ""
            raise InvalidSource("; ".join(errors[:_ERRORS_NAMED]) + more + ". Nothing was imported")

    def load(self, locator: str) -> Loaded:
        """The row of one file or folder with its content. Raises InvalidSource when it changed since the first pass."""
        name, size, mtime_ns, noted = json.loads(locator)
        path = names.to_bytes(name).decode("utf-8", "surrogateescape")
        place = self._place(path)
        if noted is True:
            return Loaded(self._item(path, is_folder=True), of_bytes(b""), mtime_ns, is_path_id=True)
        body = read_body(self.root, path, size, mtime_ns)
        if place == "workspace":
            return Loaded(self._item(path, is_folder=False), body, mtime_ns, is_path_id=True)
        if place == "artifacts":
            return Loaded(self._artifact(path), body, mtime_ns, is_path_id=True)
        front = FrontMatter(*noted)
        return Loaded(self._memory(path, front), body, mtime_ns, is_path_id=front.id is None)

    def close(self) -> None:
        """Nothing stays open between two files."""

    # what there is

    def _ring(self) -> Iterator[files.Found]:
        found = list(files.walk_one(self.root, "", self._skip, hidden=False))
        sections = [one for one in found if one.is_folder]
        for one in sections:
            if one.path not in SECTIONS:
                raise InvalidSource(
                    f"{files.show(self.root / one.path)}: no section of a ring has this name; the sections are"
                    f" {', '.join(SECTIONS)}. Nothing was imported"
                )
        charters = [
            one for one in found if not one.is_folder and one.path.lower() in ("charter.md", "charter.markdown")
        ]
        if not sections and not charters:
            raise InvalidSource(
                f"{files.show(self.root)}: holds no charter.md and no section folder ({', '.join(SECTIONS)})."
                " Nothing was imported"
            )
        for one in found:
            if not one.is_folder and one not in charters:
                self._skip(one.path, files.NOT_IN_A_SECTION)
        yield from charters
        for one in sections:
            if one.path == "workspace":
                yield from files.walk(self.root, one.path, self._skip, hidden=True)
            elif one.path == "artifacts":
                yield from self._files(files.walk(self.root, one.path, self._skip, hidden=True))
            else:
                yield from self._markdown(files.walk(self.root, one.path, self._skip, hidden=False))

    def _agent(self) -> Iterator[files.Found]:
        return self._markdown(files.walk(self.root, "", self._skip, hidden=False))

    def _markdown(self, found: Iterator[files.Found]) -> Iterator[files.Found]:
        for one in found:
            if one.is_folder:
                continue
            if one.path.lower().endswith(_MARKDOWN):
                yield one
            else:
                self._skip(one.path, files.NOT_MARKDOWN)

    def _files(self, found: Iterator[files.Found]) -> Iterator[files.Found]:
        """Artifacts are files only: a folder that holds nothing is told of, since it cannot come back."""
        empty: dict[str, None] = {}
        for one in found:
            empty.pop(one.path.rpartition("/")[0], None)
            if one.is_folder:
                empty[one.path] = None
            else:
                yield one
        for path in empty:
            self._skip(path, files.EMPTY_FOLDER)

    def _skip(self, path: str, reason: str) -> None:
        self._report.skip(files.show(path), reason)

    def _is_own(self, found: files.Found) -> bool:
        """Whether this is the snapshot that is imported into."""
        name = found.path.rpartition("/")[2]
        if not any(name == os.path.basename(own) for own in self._leave_out):
            return False
        return os.path.realpath(self.root / found.path) in self._leave_out

    # what it says

    def _scanned(self, found: files.Found) -> Iterator[Scanned]:
        shown, place = files.show(self.root / found.path), self._place(found.path)
        noted: FrontMatter | bool = found.is_folder
        rows: list[AnyRow]
        if place == "workspace":
            rows = [self._item(found.path, is_folder=found.is_folder)]
        elif place == "artifacts":
            rows = [self._artifact(found.path)]
        else:
            front = read(read_head(self.root, found.path, found.size), shown)
            memory = self._memory(found.path, front, tell=True)
            rows = [memory]
            for kind in EDGE_KINDS:
                targets = getattr(front, kind)
                rows += [
                    EdgeRow.model_construct(namespace=self.namespace, source=memory.id, kind=kind, target=one)
                    for one in targets
                ]
            noted = front
        name = names.from_bytes(os.fsencode(found.path))
        locator = json.dumps((name, found.size, found.mtime_ns, noted))
        for row in rows:
            yield Scanned(row, locator, shown)

    def _place(self, path: str) -> str:
        """The section that a path is in; of an agent, memory."""
        section, below, _ = path.partition("/")
        return (section if below else "charter") if self._is_ring else AGENT_SECTION

    def _memory(self, path: str, front: FrontMatter, *, tell: bool = False) -> MemoryRow:
        memory_type, metadata = self._type(path, front, tell)
        return MemoryRow.model_construct(
            namespace=self.namespace,
            id=front.id or path_id(path),
            memory_type=memory_type,
            title=front.title or _title(path, self._is_ring, front),
            confidence=front.confidence,
            metadata=metadata,
            created_at=front.created_ns,
            updated_at=front.updated_ns,
        )

    def _type(self, path: str, front: FrontMatter, tell: bool) -> tuple[str, dict[str, object]]:
        """In a ring the folder decides, since that is where the user has put the file."""
        if not self._is_ring:
            return front.memory_type or DEFAULT_TYPE, front.metadata
        section = self._place(path)
        if section == "memories":
            if not front.memory_type or front.memory_type not in SECTION_OF_TYPE:
                return front.memory_type or DEFAULT_TYPE, front.metadata
            memory_type = DEFAULT_TYPE
        else:
            memory_type = TYPE_OF_SECTION[section]
        if front.memory_type in (None, memory_type):
            return memory_type, front.metadata
        if tell:
            self._report.warn(
                f"{files.show(self.root / path)}: memory_type {front.memory_type} does not belong in {section}/;"
                f" imported as {memory_type}"
            )
        return memory_type, {**front.metadata, "memory_type": front.memory_type}

    def _item(self, path: str, *, is_folder: bool) -> WorkspaceRow:
        parent, _, name = path.rpartition("/")
        return WorkspaceRow.model_construct(
            namespace=self.namespace,
            id=path_id(path),
            parent_id=None if parent == "workspace" else path_id(parent),
            folder=is_folder,
            name=names.from_bytes(os.fsencode(name)),
            media_type=None if is_folder else _MEDIA_TYPES.guess_type(name)[0],
        )

    def _artifact(self, path: str) -> ArtifactRow:
        return ArtifactRow.model_construct(
            namespace=self.namespace,
            id=path_id(path),
            filename=names.from_bytes(os.fsencode(path.removeprefix("artifacts/"))),
            media_type=_MEDIA_TYPES.guess_type(path)[0],
        )


def _title(path: str, is_ring: bool, front: FrontMatter) -> str:
    """The path below the section, without its suffix. A skill folder's SKILL.md is called by the skill's name."""
    parts = path.split("/")
    if (is_ring or parts[0] == AGENT_SECTION) and len(parts) > 1:
        parts = parts[1:]
    parts[-1] = os.path.splitext(parts[-1])[0]
    if len(parts) > 1 and parts[-1].lower() == "skill":
        name = front.metadata.get("name")
        return name if isinstance(name, str) and name else names.from_bytes(os.fsencode("/".join(parts[:-1])))
    return names.from_bytes(os.fsencode("/".join(parts)))


def read_head(root: Path, path: str, size: int) -> bytes:
    """The first HEAD_BYTES of a file of `size` bytes. Raises InvalidSource."""
    fd = files.open_file(root, path)
    try:
        return os.read(fd, min(HEAD_BYTES, size))
    except OSError as error:
        raise files.unreadable(root / path, error) from None
    finally:
        os.close(fd)


def read_body(root: Path, path: str, size: int, mtime_ns: int) -> Body:
    """A file's content. A large one is read in pieces: once for its digest here, once to store it.

    Raises InvalidSource when the file is not of this size and time any more.
    """

    def pieces() -> Iterator[bytes]:
        fd = files.open_file(root, path)
        try:
            status, left = os.fstat(fd), size
            if (status.st_size, status.st_mtime_ns) != (size, mtime_ns):
                raise InvalidSource(
                    f"{files.show(root / path)}: changed during the import; import again. Nothing was imported"
                )
            # never more than there is: a large buffer for each small file costs more than all else here
            while left and (piece := os.read(fd, min(CHUNK, left))):
                left -= len(piece)
                yield piece
        except OSError as error:
            raise files.unreadable(root / path, error) from None
        finally:
            os.close(fd)

    if size <= CHUNK:
        return of_bytes(b"".join(pieces()))
    state = blake2b(digest_size=16)
    for piece in pieces():
        state.update(piece)
    return Body(size, state.digest(), pieces)
