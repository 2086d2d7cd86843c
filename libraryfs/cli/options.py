"""Options that commands share, and what they mean: the snapshot, the principal, logging."""

import logging
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
from click.shell_completion import CompletionItem

from libraryfs.errors import InvalidPath, LibraryError
from libraryfs.paths import check_principal, parse
from libraryfs.settings import login_name, settings

if TYPE_CHECKING:
    from libraryfs.library.resolver import Library
    from libraryfs.store.snapshot import Snapshot

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

LOG_LEVELS: Final = ("debug", "info", "warning", "error")
LOG_FORMAT: Final = "%(asctime)s %(levelname)s %(name)s[%(process)d]: %(message)s"


@dataclass
class Common:
    """The shared options of one run; `--snapshot x tree` and `tree --snapshot x` are the same."""

    snapshot: Path | None = None
    log_file: Path | None = None
    log_level: str = "warning"
    debug: bool = False
    json: bool = False
    _logging: bool = field(default=False, repr=False)

    @property
    def snapshot_path(self) -> Path:
        """--snapshot, else $LIBRARYFS_SNAPSHOT, else library.db in the user's data folder."""
        return self.snapshot if self.snapshot is not None else settings().snapshot_path

    @property
    def level(self) -> str:
        """--log-level, or debug with --debug."""
        return "debug" if self.debug else self.log_level

    def open(self, *, write: bool = False, create: bool = False) -> "Snapshot":
        """The snapshot, opened. Raises SnapshotError."""
        from libraryfs.store.snapshot import Snapshot

        return Snapshot.open(self.snapshot_path, write=write, create=create)

    def start_logging(self) -> None:
        """Log to --log-file, else to stderr, from --log-level up. Raises click.BadParameter."""
        if self._logging:
            return
        self._logging = True
        try:
            handler = logging.StreamHandler() if self.log_file is None else logging.FileHandler(self.log_file)
        except OSError as error:
            raise click.BadParameter(
                f"cannot write {self.log_file}: {error.strerror}", param_hint="--log-file"
            ) from None
        logging.basicConfig(level=self.level.upper(), format=LOG_FORMAT, handlers=[handler])


class FilePathType(click.Path):
    """A path of this machine. An empty one, as of an unset variable, is refused: pathlib would take the current folder.

    Nothing asks whether it is readable: a dead mount point is not, and each command says better what is wrong.
    """

    def __init__(self, **checks: bool) -> None:
        super().__init__(path_type=Path, readable=False, **checks)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path. Raises click.BadParameter."""
        if not os.fspath(value):
            self.fail("is empty; name a path", param, ctx)
        return super().convert(value, param, ctx)


FILE_PATH: Final = FilePathType()


def common_of(context: click.Context) -> Common:
    """The run's shared options."""
    return context.ensure_object(Common)


def _store(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    source = context.get_parameter_source(parameter.name or "")
    if source is not None and source is not click.core.ParameterSource.DEFAULT:
        setattr(common_of(context), parameter.name or "", value)


def _shared(*declarations: str, **attributes: Any) -> Callable[[Decorated], Decorated]:
    return click.option(*declarations, expose_value=False, callback=_store, **attributes)


def logging_options(command: Decorated) -> Decorated:
    """--log-file, --log-level, --debug."""
    for option in (
        _shared("--debug", is_flag=True, help="Log everything, and show the traceback of a bug."),
        _shared(
            "--log-level",
            type=click.Choice(LOG_LEVELS),
            default="warning",
            show_default=True,
            help="Log from this level up.",
        ),
        _shared("--log-file", type=FilePathType(dir_okay=False), help="Log to FILE instead of stderr."),
    ):
        command = option(command)
    return command


def snapshot_option(command: Decorated) -> Decorated:
    """--snapshot."""
    return _shared(
        "--snapshot",
        type=FILE_PATH,
        metavar="FILE",
        help="Snapshot file. Default: $LIBRARYFS_SNAPSHOT, else library.db in $XDG_DATA_HOME/libraryfs.",
    )(command)


def json_option(command: Decorated) -> Decorated:
    """--json."""
    return _shared("--json", is_flag=True, help="Print JSON.")(command)


class PrincipalType(click.ParamType[str]):
    """The name of a principal."""

    name = "principal"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name as it is. Raises InvalidRequest."""
        return check_principal(value)


PRINCIPAL: Final = PrincipalType()


def as_option(command: Decorated) -> Decorated:
    """--as PRINCIPAL, given to the command as `principal`."""
    return click.option(
        "--as",
        "principal",
        type=PRINCIPAL,
        metavar="PRINCIPAL",
        default=login_name,
        show_default="your login name",
        help="Whose view of the library.",
    )(command)


class LibraryPathType(click.ParamType[str]):
    """A library path, or a path in a mounted library; the shell completes it as the principal sees the snapshot."""

    name = "path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The library path. What is none is given on as it is: who uses it says what is wrong."""
        text = str(value)
        try:
            parse(text)
        except InvalidPath:
            from libraryfs.mount.mountpoint import library_path

            return (text and library_path(text)) or text
        return text

    def shell_complete(self, context: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The paths that go on from what was typed. Nothing when there is no snapshot: completion never fails."""
        from libraryfs.library.resolver import Library

        folder, _, start = incomplete.rpartition("/")
        try:
            with common_of(context).open() as snapshot:
                library = Library(snapshot, context.params.get("principal") or login_name())
                return [CompletionItem(f"{folder}/{name}") for name in _names(library, folder or "/", start)]
        except (LibraryError, click.ClickException):
            return []


def _names(library: "Library", folder: str, start: str) -> list[str]:
    from libraryfs.store.names import from_bytes

    entries = library.children_by_name(library.resolve(folder))
    names = [from_bytes(entry.name) + ("/" if entry.is_folder else "") for entry in entries]
    return [name for name in names if name.startswith(start) and name.isprintable()]


LIBRARY_PATH: Final = LibraryPathType()


class RegularFileType(click.Path):
    """An existing file to read. A pipe is none: opening one that nobody writes to would wait for ever."""

    name = "file"

    def __init__(self) -> None:
        super().__init__(dir_okay=False, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path, refused where it leads to a pipe, a socket or a device."""
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        if path.exists() and not path.is_file():
            self.fail(f"{str(path)!r} is not a regular file", param, ctx)
        return path


REGULAR_FILE: Final = RegularFileType()
