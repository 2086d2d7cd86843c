"""A `.jsonl` file as a source: one row a line (see rows.py), checked whole before anything is written."""

import base64
import binascii
import json
import math
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any, BinaryIO, Final, Never

from pydantic import TypeAdapter, ValidationError

from libraryfs.errors import InvalidSource
from libraryfs.ingest import files
from libraryfs.ingest.report import Progress
from libraryfs.ingest.source import AnyRow, Census, Loaded, Scanned
from libraryfs.rows import ArtifactRow, MemoryRow, PartRow, Row, WorkspaceRow, complaint
from libraryfs.store.bodies import CHUNK, Body, of_bytes

MAX_LINE: Final = 64 * 1024 * 1024
"""A longer line is refused: a large content comes in part rows."""

_ROW: Final[TypeAdapter[Any]] = TypeAdapter(Row)
_HAS_NAMESPACE: Final = frozenset({"memory", "workspace", "artifact", "edge"})
_TOLD_EVERY: Final = 1000
_LOOKED_AT: Final = 10  # lines: the first may be empty


def is_rows(path: Path) -> bool:
    """Whether a file is of rows: by its suffix, and the first object in it, which names a store."""
    if path.suffix.lower() not in (".jsonl", ".ndjson"):
        return False
    try:
        with path.open("rb") as file:
            lines = (line for line in (file.readline(MAX_LINE + 1) for _ in range(_LOOKED_AT)) if line.strip())
            first = json.loads(next(lines, b"{}"))
    except (OSError, ValueError, RecursionError):
        return True  # what is wrong with it is said when it is read
    return not isinstance(first, dict) or not first or "store" in first


class JsonlSource:
    """The rows of a file. `namespace` is taken by rows that name none; one that names another is refused."""

    may_repeat = False

    def __init__(self, path: Path, namespace: str | None, progress: Progress) -> None:
        self.path = path
        self.namespace = namespace
        self.uri = "jsonl:" + files.show(path.resolve())
        self._shown = files.show(path)
        self._progress = progress
        self._file: BinaryIO | None = None

    def scan(self) -> Iterator[Scanned]:
        """Every row but the parts, checked. Raises InvalidSource with the line's number at the first that is wrong."""
        pending: tuple[AnyRow, int, int, int] | None = None  # row, line, offset, parts
        for number, offset, row in self._rows():
            if not isinstance(row, PartRow):
                if pending:
                    yield self._scanned(*pending)
                pending = (row, number, offset, 0)
            elif pending and isinstance(pending[0], MemoryRow | WorkspaceRow | ArtifactRow):
                pending = (*pending[:3], pending[3] + 1)
            else:
                self._refuse(number, "a part follows a memory, an item or an artifact")
            self._check(row, number, pending)
        if pending:
            yield self._scanned(*pending)

    def load(self, locator: str) -> Loaded:
        """The row at an offset, with its content; one in parts is read through for its digest and again to store it."""
        number, offset, parts = (int(text) for text in locator.split(":"))
        if self._file is None:
            self._file = self._open()
        self._file.seek(offset)
        row = self._row(self._file.readline(), number)
        if not isinstance(row, MemoryRow | WorkspaceRow | ArtifactRow):
            self._refuse(number, "the file changed during the import")
        if not parts:
            return Loaded(row, of_bytes(row.data()))

        def pieces() -> Iterator[bytes]:
            return _rechunk(self._content(number, offset, parts))

        size, state = 0, blake2b(digest_size=16)
        for piece in pieces():
            size += len(piece)
            state.update(piece)
        return Loaded(row, Body(size, state.digest(), pieces))

    def census(self) -> Census | None:
        """A file of rows is read whole."""
        return None

    def again(self, locator: str) -> Scanned | None:
        """A file of rows that changed is refused."""
        return None

    def close(self) -> None:
        """Closes the file."""
        if self._file is not None:
            self._file.close()

    def _content(self, number: int, offset: int, parts: int) -> Iterator[bytes]:
        with self._open() as file:
            file.seek(offset)
            for line in range(number, number + parts + 1):
                yield _bytes(self._row(file.readline(), line))

    def _rows(self) -> Iterator[tuple[int, int, AnyRow | PartRow]]:
        offset = 0
        with self._open() as file:
            number = 0
            while line := file.readline(MAX_LINE + 1):
                number += 1
                if len(line) > MAX_LINE:
                    self._refuse(number, f"longer than {MAX_LINE >> 20} MiB; give the content in part rows")
                if number % _TOLD_EVERY == 1:
                    self._progress("read", offset, self.path.stat().st_size)
                if line.strip():
                    yield number, offset, self._row(line, number)
                offset += len(line)

    def _row(self, line: bytes, number: int) -> Any:
        try:
            value = json.loads(line.rstrip(b"\r\n"), parse_constant=_no_constant, parse_float=_finite)
        except UnicodeDecodeError:
            self._refuse(number, "not UTF-8")
        except json.JSONDecodeError as error:
            self._refuse(number, f"not JSON: {error.msg} at column {error.colno}")
        except (ValueError, RecursionError) as error:
            self._refuse(number, f"not JSON: {error}")
        if not isinstance(value, dict):
            self._refuse(number, 'not a JSON object such as {"store": "memory", …}')
        if self.namespace and str(value.get("store")) in _HAS_NAMESPACE:
            value.setdefault("namespace", self.namespace)
        try:
            return _ROW.validate_python(value)
        except ValidationError as error:
            self._refuse(number, _reason(error))

    def _check(self, row: AnyRow | PartRow, number: int, owner: tuple[AnyRow, int, int, int] | None) -> None:
        """What holds for a row beside its fields."""
        namespace = getattr(row, "namespace", None) or getattr(row, "path", None)
        if self.namespace and namespace not in (None, self.namespace):
            self._refuse(number, f"is of {namespace}, but the import is into {self.namespace}")
        if isinstance(row, WorkspaceRow | ArtifactRow) and not row.namespace.startswith("/ring/"):
            self._refuse(number, f"an agent has memory only, no {row.store}")
        if not isinstance(row, MemoryRow | WorkspaceRow | ArtifactRow | PartRow):
            return
        holder = owner[0] if owner else row
        has_content = isinstance(row, PartRow) or row.content is not None or row.content_base64 is not None
        if isinstance(holder, WorkspaceRow) and holder.folder and has_content:
            self._refuse(number, "a folder has no content")
        try:
            if row.content_base64 is not None:
                _bytes(row)
        except ValueError as error:
            self._refuse(number, str(error))

    def _scanned(self, row: AnyRow, number: int, offset: int, parts: int) -> Scanned:
        return Scanned(row, f"{number}:{offset}:{parts}", f"{self._shown}:{number}")

    def _refuse(self, number: int, reason: str) -> Never:
        raise InvalidSource(f"{self._shown}:{number}: {reason}. Nothing was imported")

    def _open(self) -> BinaryIO:
        try:
            return self.path.open("rb")
        except OSError as error:
            raise InvalidSource(f"{files.unreadable(self.path, error)}. Nothing was imported") from None


def _bytes(row: MemoryRow | WorkspaceRow | ArtifactRow | PartRow) -> bytes:
    if not isinstance(row, PartRow):
        return row.data()
    try:
        return base64.b64decode(row.content_base64, validate=True)
    except binascii.Error as error:
        raise ValueError(f"content_base64: {error}") from None


def _no_constant(name: str) -> Never:
    raise ValueError(f"{name} is not a JSON number")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is not a finite number")
    return value


def _reason(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    path = first["loc"][1:]  # the first step is the kind of row
    field = ".".join(str(step) for step in path)
    value = repr(first["input"])
    shown = "" if isinstance(first["input"], dict) else f" (it is {value[:60]}{'…' if len(value) > 60 else ''})"
    return f"{field}: {complaint(error)}{shown}" if field else complaint(error)


def _rechunk(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """The same bytes in pieces of CHUNK, the last one shorter."""
    rest = b""
    for block in blocks:
        rest += block
        whole = len(rest) - len(rest) % CHUNK
        for start in range(0, whole, CHUNK):
            yield rest[start : start + CHUNK]
        rest = rest[whole:]
    if rest:
        yield rest
