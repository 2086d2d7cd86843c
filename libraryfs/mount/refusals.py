"""Every request that would change something, refused as a read-only disk refuses it: EROFS.

Not with the mount option `ro`: then the kernel would refuse writing into a control file too.
"""

import errno
from typing import NoReturn

import pyfuse3
from pyfuse3 import FUSEError, RequestContext

from libraryfs.mount.guard import handler
from libraryfs.mount.requests import RequestLog


class Refusals(pyfuse3.Operations):
    """The mutating half of the operations; `requests` is set by the class that has the other half."""

    requests: RequestLog

    @handler
    async def create(self, parent_inode: int, name: bytes, mode: int, flags: int, ctx: RequestContext) -> NoReturn:
        """A new file."""
        raise FUSEError(errno.EROFS)

    @handler
    async def mknod(self, parent_inode: int, name: bytes, mode: int, rdev: int, ctx: RequestContext) -> NoReturn:
        """A new device, pipe or socket."""
        raise FUSEError(errno.EROFS)

    @handler
    async def mkdir(self, parent_inode: int, name: bytes, mode: int, ctx: RequestContext) -> NoReturn:
        """A new folder."""
        raise FUSEError(errno.EROFS)

    @handler
    async def symlink(self, parent_inode: int, name: bytes, target: bytes, ctx: RequestContext) -> NoReturn:
        """A new symbolic link."""
        raise FUSEError(errno.EROFS)

    @handler
    async def link(self, inode: int, new_parent_inode: int, new_name: bytes, ctx: RequestContext) -> NoReturn:
        """A new name."""
        raise FUSEError(errno.EROFS)

    @handler
    async def unlink(self, parent_inode: int, name: bytes, ctx: RequestContext) -> NoReturn:
        """A file's removal."""
        raise FUSEError(errno.EROFS)

    @handler
    async def rmdir(self, parent_inode: int, name: bytes, ctx: RequestContext) -> NoReturn:
        """A folder's removal."""
        raise FUSEError(errno.EROFS)

    @handler
    async def rename(
        self,
        parent_inode_old: int,
        name_old: bytes,
        parent_inode_new: int,
        name_new: bytes,
        flags: int,
        ctx: RequestContext,
    ) -> NoReturn:
        """Another name or place."""
        raise FUSEError(errno.EROFS)

    @handler
    async def setxattr(self, inode: int, name: bytes, value: bytes, ctx: RequestContext) -> NoReturn:
        """Another attribute."""
        raise FUSEError(errno.EROFS)

    @handler
    async def removexattr(self, inode: int, name: bytes, ctx: RequestContext) -> NoReturn:
        """An attribute less."""
        raise FUSEError(errno.EROFS)
