"""A file system for SQLite that fails or kills at the n-th change of a file."""

import os
import signal
from pathlib import Path

import apsw


class FaultyVFS(apsw.VFS):
    """The system's own, until change number `at` of `path` or a file beside it: then SIGKILL, or `error` is raised.

    Changes are counted from 1; `seen` is how many there were.
    """

    def __init__(self, path: Path, at: int, error: type[apsw.Error] | None = None) -> None:
        self.path = str(path)
        self.at = at
        self.error = error
        self.seen = 0
        super().__init__(f"faulty-{id(self)}", "unix", makedefault=True)

    def xOpen(self, name: apsw.URIFilename | str | None, flags: list[int]) -> "_File":
        return _File(self, name, flags)

    def change(self, name: str) -> None:
        """One more change."""
        if not name.startswith(self.path):
            return
        self.seen += 1
        if self.error is not None and self.seen >= self.at:
            raise self.error("injected")
        if self.error is None and self.seen == self.at:
            os.kill(os.getpid(), signal.SIGKILL)


class _File(apsw.VFSFile):
    def __init__(self, vfs: FaultyVFS, name: apsw.URIFilename | str | None, flags: list[int]) -> None:
        self._vfs = vfs
        self._name = name.filename() if isinstance(name, apsw.URIFilename) else name or ""
        super().__init__("unix", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:
        self._vfs.change(self._name)
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:
        self._vfs.change(self._name)
        super().xSync(flags)

    def xTruncate(self, size: int) -> None:
        self._vfs.change(self._name)
        super().xTruncate(size)
