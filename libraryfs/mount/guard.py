"""The one guard around every handler: pyfuse3 ends the whole mount on any exception but FUSEError.

It also looks at what a handler returns: pyfuse3 takes that apart in its own code, outside of any guard, and a string
where bytes should be ends the mount as well.
"""

import errno
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, Final, ParamSpec, Protocol, TypeVar

from pyfuse3 import EntryAttributes, FileInfo, FUSEError, StatvfsData

from libraryfs.errors import LibraryError, PathNotFound, SnapshotError
from libraryfs.mount.requests import RequestLog
from libraryfs.store.snapshot import meaning

log = logging.getLogger(__name__)

SAID: Final = 256
"""Faults of the snapshot that are remembered, so that each is logged once and not at each read of one file."""
MOST_IN_A_LIST: Final = 65_536
"""Bytes of an attribute's value and of a list of their names: what the kernel takes."""

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Counted(Protocol):
    """What has handlers: it counts their requests."""

    requests: RequestLog


Owner = TypeVar("Owner", bound=Counted)


def _is_data(result: Any, arguments: tuple[Any, ...]) -> bool:
    return type(result) in (bytes, memoryview) and len(result) <= arguments[-1]


def _is_list(result: Any, _: Any) -> bool:
    names = type(result) in (list, tuple) and all(type(name) is bytes and b"\0" not in name for name in result)
    return names and sum(len(name) + 1 for name in result) <= MOST_IN_A_LIST


def _is_number(result: Any, most: int) -> bool:
    return type(result) is int and 0 <= result <= most


FITS: Final[dict[str, Callable[[Any, tuple[Any, ...]], bool]]] = {
    "lookup": lambda result, _: type(result) is EntryAttributes,
    "getattr": lambda result, _: type(result) is EntryAttributes,
    "setattr": lambda result, _: type(result) is EntryAttributes,
    "open": lambda result, _: type(result) is FileInfo,
    "read": _is_data,
    "write": lambda result, arguments: _is_number(result, len(arguments[-1])),
    "opendir": lambda result, _: _is_number(result, (1 << 64) - 1),
    "statfs": lambda result, _: type(result) is StatvfsData,
    "access": lambda result, _: type(result) is bool,
    "getxattr": lambda result, _: type(result) is bytes and len(result) <= MOST_IN_A_LIST,
    "listxattr": _is_list,
    "readlink": lambda result, _: type(result) is bytes,
}
"""Whether pyfuse3 can send what a handler returned for these arguments. The handlers not named here return None."""


def _is_nothing(result: Any, _: Any) -> bool:
    return result is None


def handler(
    function: Callable[Concatenate[Owner, Arguments], Awaitable[Result]],
) -> Callable[Concatenate[Owner, Arguments], Coroutine[Any, Any, Result]]:
    """Counts the request, and turns what is raised into an errno: a LibraryError into its own, a bug into EIO."""
    name = function.__name__
    fits: Callable[[Any, tuple[Any, ...]], bool] = FITS.get(name, _is_nothing)

    @wraps(function)
    async def guarded(self: Owner, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        try:
            self.requests.count(name)
            result = await function(self, *args, **kwargs)
            if fits(result, args):
                return result
            log.error("%s: a bug: it returned %s for %.200r", name, _described(result), args)
        except FUSEError:
            raise
        except LibraryError as error:
            if isinstance(error, SnapshotError):
                _say(name, error)
            raise FUSEError(errno_of(error, name)) from None
        except Exception as error:
            known = meaning(error)
            if known is None:
                log.exception("%s: a bug, or a snapshot that cannot be read", name)
            else:
                _say(name, known)
        raise FUSEError(errno.EIO)

    return guarded


def silent(
    function: Callable[Concatenate[Owner, Arguments], Awaitable[None]],
) -> Callable[Concatenate[Owner, Arguments], Coroutine[Any, Any, None]]:
    """The guard for a request that has no reply: nothing at all may be raised."""
    name = function.__name__

    @wraps(function)
    async def guarded(self: Owner, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
        try:
            self.requests.count(name)
            await function(self, *args, **kwargs)
        except Exception:
            log.exception("%s: a bug", name)

    return guarded


_said: OrderedDict[str, None] = OrderedDict()


def _say(name: str, error: SnapshotError) -> None:
    if error.message not in _said:
        log.error("%s: %s", name, error.message)
    _said[error.message] = None
    _said.move_to_end(error.message)
    if len(_said) > SAID:
        _said.popitem(last=False)


def _described(result: object) -> str:
    length = f" of {len(result)}" if isinstance(result, bytes | str | list | tuple | memoryview) else ""
    return f"{type(result).__name__}{length}"


def errno_of(error: LibraryError, name: str) -> int:
    """The errno that a handler answers with.

    By inode number a missing entry is ESTALE: the kernel then looks the name up again, and gives ENOENT, or the entry
    that has the name now, in place of one that it remembered too long.
    """
    if isinstance(error, PathNotFound) and name != "lookup":
        return errno.ESTALE
    return error.errno
