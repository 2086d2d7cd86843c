"""The one guard around every handler: pyfuse3 ends the whole mount on any exception but FUSEError."""

import errno
import logging
from collections.abc import Awaitable, Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from pyfuse3 import FUSEError

from libraryfs.errors import LibraryError, PathNotFound
from libraryfs.mount.requests import RequestLog

log = logging.getLogger(__name__)

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Counted(Protocol):
    """What has handlers: it counts their requests."""

    requests: RequestLog


Owner = TypeVar("Owner", bound=Counted)


def handler(
    function: Callable[Concatenate[Owner, Arguments], Awaitable[Result]],
) -> Callable[Concatenate[Owner, Arguments], Coroutine[Any, Any, Result]]:
    """Counts the request, and turns what is raised into an errno: a LibraryError into its own, a bug into EIO."""
    name = function.__name__

    @wraps(function)
    async def guarded(self: Owner, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        try:
            self.requests.count(name)
            return await function(self, *args, **kwargs)
        except FUSEError:
            raise
        except LibraryError as error:
            raise FUSEError(errno_of(error, name)) from None
        except Exception:
            log.exception("%s: a bug, or a snapshot that cannot be read", name)
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


def errno_of(error: LibraryError, name: str) -> int:
    """The errno that a handler answers with.

    By inode number a missing entry is ESTALE: the kernel then looks the name up again, and gives ENOENT, or the entry
    that has the name now, in place of one that it remembered too long.
    """
    if isinstance(error, PathNotFound) and name != "lookup":
        return errno.ESTALE
    return error.errno
