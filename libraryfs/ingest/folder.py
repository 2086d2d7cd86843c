"""A folder, or one file, as a source: each file a row, at the place that the layout gives it.

What a file is known by (size, time, inode) is remembered: a file that is as it was is not opened. A file that cannot be
taken as it is comes in as it can be, or is left out, and is named either way; only `strict` makes that an error.
"""

import json
import os
from collections.abc import Iterator
from typing import Any, Final

from libraryfs.errors import InvalidSource
from libraryfs.ingest import credentials, document, files
from libraryfs.ingest.ignore import Rules
from libraryfs.ingest.kind import Opening, TreeKind
from libraryfs.ingest.layout import Layout, Place
from libraryfs.ingest.links import Links
from libraryfs.ingest.rows_of_files import folder_row, row_id, row_of
from libraryfs.ingest.source import Census, ContentRow, FileState, Loaded, Scanned
from libraryfs.ingest.walk import A_FOLDER, FOLDER, Found, Stat, Walk
from libraryfs.rows import ArtifactRow, MemoryRow, WorkspaceRow
from libraryfs.store import inodes, names
from libraryfs.store.bodies import of_bytes

SECRET: Final = "looks like a secret; --allow-secrets imports it"
EMPTY_FOLDER: Final = "empty folder, which only workspace/ can hold"
_SECRET_NOTE: Final = "secret "
_SHARED_NOTE: Final = "shared id"
_TOLD_EVERY: Final = 500
_ERRORS_NAMED: Final = 5
_ROWS: Final[dict[str, Any]] = {"memory": MemoryRow, "workspace": WorkspaceRow, "artifact": ArtifactRow}
_STORE_NAMES: Final = {"memory": "memory", "workspace": "item", "artifact": "artifact"}  # in inode numbers


class FolderSource:
    """The files below a folder (or one file), as rows of a namespace."""

    may_repeat = True

    def __init__(self, opening: Opening, kind: TreeKind) -> None:
        path = opening.path
        self._one = None if path.is_dir() else path.name
        self.root = path if self._one is None else path.parent
        self.uri = ("folder:" if self._one is None else "file:") + files.show(os.path.realpath(path))
        self.namespace = opening.namespace
        self._options = opening.options
        self._report = opening.report
        self._progress = opening.progress
        self._own = opening.own
        self._known = opening.known
        self._strict = opening.strict
        self._kind = kind
        self._is_ring = self.namespace.startswith("/ring/")
        self._new()

    def _new(self) -> None:
        """Forgets a scan that has to be made again."""
        self._layout = Layout(self.root, self._options, self._kind.place, is_ring=self._is_ring)
        self._links = Links(self._kind.links, self.namespace)
        self._states: list[FileState] = []
        self._folders: set[str] = set()
        self._ids: dict[str, str] = {}
        self._unread: list[str] = []
        self._errors: list[str] = []
        self._census: Census | None = None

    def scan(self) -> Iterator[Scanned]:
        """The rows of what is new or changed: of all files, where one can change what others say."""
        if not self._known.files:
            yield from self._scan({}, trust=False)
            return
        mark = self._report.model_copy(deep=True)
        for known, trust in ((self._known.files, True), (self._known.files, False), ({}, False)):
            rows = list(self._scan(known, trust=trust))
            if self._holds(trust, bool(known)):
                yield from rows
                return
            self._report.reset(mark)
            self._new()

    def _holds(self, trust: bool, is_part: bool) -> bool:
        """Whether a scan that left out what is as it was can stand for a whole one."""
        assert self._census is not None
        if trust and self._census.rules != self._known.rules:
            return False
        if not is_part:
            return True
        touched = [*self._census.gone, *(state.path for state in self._states)]
        before = self._known.files
        if touched and any(state.note == _SHARED_NOTE for state in before.values()):
            return False
        owners = {state.ino: state.path for state in before.values() if state.ino} if self._ids else {}
        for state in self._states:
            if state.ino in owners and owners[state.ino] != state.path and owners[state.ino] not in self._census.gone:
                return False
        if not self._links.by_name:
            return True
        # A new name may be what others link to, and a decision record may declare an edge that starts elsewhere.
        gone = set(self._census.gone)
        return all(path in before and path not in gone and not self._is_record(path) for path in touched)

    def _is_record(self, path: str) -> bool:
        place = self._layout.place(path, is_folder=False)
        return isinstance(place, Place) and place.section == "decisions"

    def census(self) -> Census | None:
        """What the scan found out of the files themselves."""
        return self._census

    def load(self, locator: str) -> Loaded:
        """The row of one file or folder with its content. Raises Moved when it changed since the first pass."""
        name, given, fields, is_path_id = json.loads(locator)
        path = names.to_bytes(name).decode("utf-8", "surrogateescape")
        stat = Stat(*given)
        row: ContentRow = _ROWS[fields["store"]].model_construct(**fields)
        body = of_bytes(b"") if stat.size == FOLDER else files.read_body(self.root, path, stat)
        time_ns = stat.mtime_ns if stat.size != FOLDER else None
        return Loaded(row, body, time_ns, is_path_id)

    def again(self, locator: str) -> Scanned | None:
        """The row of a file that changed since the first pass, as it is now; None when it is no file any more."""
        name = json.loads(locator)[0]
        path = names.to_bytes(name).decode("utf-8", "surrogateescape")
        try:
            status = os.stat(self.root / path, follow_symlinks=False)
            found = Found(path, Stat(status.st_size, status.st_mtime_ns, status.st_ino))
            place = self._layout.place(path, is_folder=False)
            if not isinstance(place, Place) or self._known_secret(found):
                return None
            row = next(iter(self._file(found, place)), None)
        except (OSError, InvalidSource):
            return None
        return row

    def close(self) -> None:
        """Nothing stays open between two files."""

    # the scan

    def _scan(self, known: dict[str, FileState], *, trust: bool) -> Iterator[Scanned]:
        stats = {path: Stat(state.size, state.mtime_ns, state.inode) for path, state in known.items()}
        rules = Rules(self.root, self._options, self._kind.wanted)
        walk = Walk(self.root, rules, stats, self._skip, self._enter, self._own, trust=trust)
        for count, found in enumerate(walk if self._one is None else self._single(stats)):
            if count % _TOLD_EVERY == 0:
                self._progress("read", count, 0)
            yield from self._found(found)
        for path, reason in walk.unreadable.items():
            self._trouble(path, f"cannot be read: {reason}")
        if known and self._links.by_name and self._states:
            self._links.seed(self._known.memories())
        yield from self._links.edges()
        self._end()
        changed = {state.path for state in self._states}
        gone = [path for path in stats if path not in changed and not self._is_unread(path)]
        self._keep_told(known, stats, changed)
        kept = sum(1 for path, state in known.items() if state.ino and path not in stats)
        before = self._known.files.values()
        stays = {state.ino for state in before if state.ino and self._is_unread(state.path)}
        self._census = Census(not known, kept, gone, stays, self._states, rules.digest())

    def _enter(self, folder: str, names_in: frozenset[str]) -> None:
        self._layout.enter(folder, names_in)
        if folder and not names_in and self._layout.place(folder, is_folder=True) is None:
            self._skip(folder + "/", EMPTY_FOLDER)

    def _single(self, stats: dict[str, Stat]) -> Iterator[Found]:
        """The one file that is the source."""
        assert self._one is not None
        status = os.stat(self.root / self._one)
        found = Found(self._one, Stat(status.st_size, status.st_mtime_ns, status.st_ino))
        if stats.get(self._one) == found.stat:
            del stats[self._one]
        else:
            yield found

    def _found(self, found: Found) -> Iterator[Scanned]:
        place = self._layout.place(found.path, is_folder=found.is_folder)
        if place is None:
            return
        if isinstance(place, str):
            self._skip(found.path, place)
            return
        try:
            if found.is_folder:
                yield from self._folder(found.path, place)
            else:
                yield from self._file(found, place)
        except InvalidSource as error:
            self._trouble(found.path, str(error).removeprefix(files.show(self.root / found.path) + ": "))

    def _folder(self, path: str, place: Place) -> Iterator[Scanned]:
        """A workspace folder, after those above it, each once."""
        above = place.path.rpartition("/")[0]
        if above:
            yield from self._folder("", Place(place.section, above))
        if row_id(place) in self._folders:
            return
        self._folders.add(row_id(place))
        row = folder_row(self.namespace, place)
        if path:
            self._note(path, A_FOLDER, row)
        yield self._scanned(path or place.path, A_FOLDER, row, is_path_id=True)

    def _file(self, found: Found, place: Place) -> Iterator[Scanned]:
        read = document.read(self.root, found.path, found.stat)
        if not self._options.allow_secrets and read.text and (secret := credentials.find(read.text)):
            self._left_out(found, secret)
            return
        for remark in read.reading.remarks:
            self._remark(found.path, remark.line, remark.text)
        explicit = read.reading.front.id if place.is_memory else None
        first = self._ids.setdefault(explicit, found.path) if explicit else found.path
        if first != found.path:
            shown = files.show(self.root / first)
            self._remark(found.path, 1, f"the id {explicit} is that of {shown} too; kept by its path")
        row, misplaced = row_of(
            self.namespace, place, read, by_title=self._options.names == "title", by_path=first != found.path
        )
        if self._kind.describe is not None and isinstance(row, MemoryRow):
            row.metadata.update({**self._kind.describe(read), **row.metadata})
        if misplaced:
            self._report.warn(f"{files.show(self.root / found.path)}: {misplaced}")
        if isinstance(row, WorkspaceRow) and (above := place.path.rpartition("/")[0]):
            yield from self._folder("", Place(place.section, above))
        note = _SHARED_NOTE if first != found.path else ""
        self._note(found.path, found.stat, row, note)
        if read.text is None and (isinstance(row, MemoryRow) or not _is_media(row)):
            self._report.no_text += 1
        is_path_id = not isinstance(row, MemoryRow) or row.id != explicit
        yield self._scanned(found.path, found.stat, row, is_path_id=is_path_id)
        if isinstance(row, MemoryRow):
            self._links.add(found.path, row.id, read)
            for edge in self._links.declared(found.path, row.id, read.reading.front):
                yield Scanned(edge, "", files.show(self.root / found.path))

    def _scanned(self, path: str, stat: Stat, row: ContentRow, *, is_path_id: bool) -> Scanned:
        name = names.from_bytes(os.fsencode(path))
        fields = {"store": row.store, **row.__dict__}
        return Scanned(row, json.dumps((name, stat, fields, is_path_id)), files.show(self.root / path))

    # what is said and remembered

    def _note(self, path: str, stat: Stat, row: ContentRow, note: str = "") -> None:
        ino = inodes.row_ino(self.namespace, _STORE_NAMES[row.store], row.id)
        self._states.append(FileState(path, *stat, ino, note))

    def _left_out(self, found: Found, secret: credentials.Credential) -> None:
        self._states.append(FileState(found.path, *found.stat, 0, f"{_SECRET_NOTE}{secret.line} {secret.what}"))
        self._tell_secret(found.path, secret.line, secret.what)

    def _keep_told(self, known: dict[str, FileState], stats: dict[str, Stat], changed: set[str]) -> None:
        """What was left out before and is as it was is said again."""
        for path, state in known.items():
            if state.note.startswith(_SECRET_NOTE) and path not in stats and path not in changed:
                line, what = state.note.removeprefix(_SECRET_NOTE).split(" ", 1)
                self._tell_secret(path, int(line), what)

    def _tell_secret(self, path: str, line: int, what: str) -> None:
        self._report.skip(f"{files.show(self.root / path)}:{line}: {what}", SECRET)

    def _known_secret(self, found: Found) -> bool:
        if self._options.allow_secrets:
            return False
        read = document.read(self.root, found.path, found.stat)
        return bool(read.text and credentials.find(read.text))

    def _skip(self, path: str, reason: str) -> None:
        self._report.skip(files.show(path), reason)

    def _remark(self, path: str, line: int, text: str) -> None:
        message = f"{files.show(self.root / path)}:{line}: {text}"
        if self._strict:
            self._errors.append(message)
        else:
            self._report.warn(message)

    def _trouble(self, path: str, text: str) -> None:
        """A file or folder that could not be read: its rows stay as they are."""
        self._unread.append(path)
        message = f"{files.show(self.root / path)}: {text}"
        if self._strict:
            self._errors.append(message)
        else:
            self._report.warn(message)

    def _is_unread(self, path: str) -> bool:
        return any(path == one or path.startswith(one + "/") for one in self._unread)

    def _end(self) -> None:
        if self._errors:
            more = f"; and {len(self._errors) - _ERRORS_NAMED} more" if len(self._errors) > _ERRORS_NAMED else ""
            raise InvalidSource("; ".join(self._errors[:_ERRORS_NAMED]) + more + ". Nothing was imported")


def _is_media(row: ContentRow) -> bool:
    media_type = getattr(row, "media_type", None) or ""
    return media_type.startswith(("image/", "audio/", "video/", "font/"))
