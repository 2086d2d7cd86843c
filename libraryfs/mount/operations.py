"""The handlers: each turns a kernel request into a call of the library or of a control file. Thin on purpose."""

import errno
import logging
import os
from collections.abc import Callable, Sequence
from typing import Final

import pyfuse3
from pyfuse3 import EntryAttributes, FileInfo, FUSEError, RequestContext

from libraryfs.errors import PathNotFound
from libraryfs.mount.attributes import PAGE, Attributes
from libraryfs.mount.content import PREFIX, Content, ExtendedAttributes
from libraryfs.mount.controls import CONTROL_BASE, Controls
from libraryfs.mount.guard import handler, silent
from libraryfs.mount.guide import Guide
from libraryfs.mount.listing import Listing
from libraryfs.mount.refusals import Refusals
from libraryfs.mount.requests import RequestLog
from libraryfs.mount.view import View
from libraryfs.nodes import ROOT_INO
from libraryfs.paths import MAX_SEGMENT_BYTES

log = logging.getLogger(__name__)

REQUESTS: Final = PREFIX + b"requests"
"""An attribute of the root that no list shows: how often the kernel asked for what (a JSON object)."""

UNSUPPORTED: Final = (b"system.", b"security.", b"trusted.")
"""Attributes that there are none of. `ls -l` asks for a file's ACL, and after one ENOTSUP for no other file's."""

WRITES: Final = os.O_WRONLY | os.O_RDWR | os.O_TRUNC


class Operations(Refusals):
    """The mount's operations over a View and its control files."""

    supports_dot_lookup = False
    enable_writeback_cache = False
    enable_acl = False

    def __init__(
        self,
        view: View,
        content: Content,
        controls: Controls,
        attributes: Attributes,
        guide: Guide,
        requests: RequestLog,
        connected: Callable[[], None],
    ) -> None:
        super().__init__()
        self.requests = requests
        self._view = view
        self._content = content
        self._extended = ExtendedAttributes(view)
        self._controls = controls
        self._attributes = attributes
        self._guide = guide
        self._connected = connected
        self._listing = Listing(view)
        self._fit = 64  # how many entries the last listing's buffer took

    def init(self) -> None:
        """The kernel has connected: from here on requests are answered."""
        self._connected()

    @handler
    async def lookup(self, parent_inode: int, name: bytes, ctx: RequestContext) -> EntryAttributes:
        """The entry of a name; one that is not there is an answer too, which the kernel keeps."""
        if len(name) > MAX_SEGMENT_BYTES:
            raise FUSEError(errno.ENAMETOOLONG)
        library = self._view.library
        folder = library.entry(parent_inode)
        if self._controls.is_name(name, folder):
            return await self._controls.lookup(folder, name, ctx)
        if (found := self._guide.lookup(folder, name)) is not None:
            return found
        try:
            return self._attributes.of(library.lookup(folder, name))
        except PathNotFound:
            return self._attributes.absent()

    @silent
    async def forget(self, inode_list: Sequence[tuple[int, int]]) -> None:
        """Nothing to do: inode numbers are computed, not handed out."""

    @handler
    async def getattr(self, inode: int, ctx: RequestContext) -> EntryAttributes:
        """The attributes of an inode."""
        if inode >= CONTROL_BASE:
            return await self._controls.getattr(inode, ctx)
        if self._guide.has(inode):
            return self._guide.attributes(inode)
        return self._attributes.of(self._view.library.entry(inode))

    @handler
    async def setattr(
        self,
        inode: int,
        attr: EntryAttributes,
        fields: pyfuse3.SetattrFields,
        fh: int | None,
        ctx: RequestContext,
    ) -> EntryAttributes:
        """Refused, but for a control file's truncation, which comes before a request is written."""
        others = fields.update_mode or fields.update_uid or fields.update_gid or fields.update_mtime
        if inode >= CONTROL_BASE and fields.update_size and not others:
            return await self._controls.getattr(inode, ctx)
        raise FUSEError(errno.EROFS)

    @handler
    async def access(self, inode: int, mode: int, ctx: RequestContext) -> bool:
        """Whether access(2) may say yes. Reading is for all who can reach the mount."""
        if inode >= CONTROL_BASE:
            return not mode & os.X_OK
        if mode & os.W_OK:
            raise FUSEError(errno.EROFS)
        if self._guide.has(inode):
            return not mode & os.X_OK
        return not mode & os.X_OK or self._view.library.entry(inode).is_folder

    @handler
    async def open(self, inode: int, flags: int, ctx: RequestContext) -> FileInfo:
        """A handle. For content it is the inode itself: no table, and the kernel keeps the pages."""
        if inode >= CONTROL_BASE:
            return await self._controls.open(inode, flags, ctx)
        if flags & WRITES:
            raise FUSEError(errno.EROFS)
        if not self._guide.has(inode):
            self._content.opened(inode)
        return FileInfo(fh=inode, keep_cache=True)

    @handler
    async def read(self, fh: int, off: int, size: int) -> bytes | memoryview:  # type: ignore[override]
        """Bytes of a file."""
        if fh >= CONTROL_BASE:
            return await self._controls.read(fh, off, size)
        if self._guide.has(fh):
            return self._guide.read(off, size)
        return await self._content.read(fh, off, size)

    @handler
    async def write(self, fh: int, off: int, buf: bytes) -> int:
        """Bytes of a request; only a control file can be open for writing."""
        if fh >= CONTROL_BASE:
            return self._controls.write(fh, buf)
        raise FUSEError(errno.EROFS)

    @handler
    async def flush(self, fh: int) -> None:
        """Not needed by anything here. The kernel remembers this answer and saves a round trip at every close."""
        raise FUSEError(errno.ENOSYS)

    @handler
    async def release(self, fh: int) -> None:
        """The last close of a handle."""
        if fh >= CONTROL_BASE:
            self._controls.release(fh)
        elif not self._guide.has(fh):
            self._content.released(fh)

    @handler
    async def fsync(self, fh: int, datasync: bool) -> None:
        """Nothing is ever dirty."""

    @handler
    async def opendir(self, inode: int, ctx: RequestContext) -> int:
        """A folder's handle."""
        folder = self._view.library.entry(inode)
        self._controls.sessions.listed(folder.ino, ctx.pid)
        return self._controls.walks.opened(folder.ino, ctx.pid)

    @handler
    async def readdir(self, fh: int, start_id: int, token: pyfuse3.ReaddirToken) -> None:
        """Entries with their attributes, in inode order. The place to go on from is the last inode: no list is kept."""
        library = self._view.library
        folder = library.entry(self._controls.walks.folder_of(fh))
        filled, fill, reply = self._attributes.blank(), self._attributes.fill, pyfuse3.readdir_reply
        after, count = start_id, 0
        while after < CONTROL_BASE:
            page, is_damaged = self._listing.page(folder, after, self._fit)
            if is_damaged:
                log.error("folder %d: has damaged rows, which are not listed; see 'libraryfs check'", folder.ino)
                self._controls.walks.left_out(fh)
            if not page:
                break
            for ino, name, kind, size, mtime_ns, ctime_ns in page:
                fill(filled, ino, kind, size, mtime_ns, ctime_ns)
                if not reply(token, name, filled, ino):
                    self._fit = max(16, count + 1)
                    self._listing.expect(folder, after, self._fit)
                    return
                after = ino
                count += 1
        for name, attributes in self._guide.listed(folder) + self._controls.listed(folder):
            ino = attributes.st_ino
            if ino > start_id:
                count += 1
                if not reply(token, name, attributes, ino):
                    return
        if not count and not self._controls.walks.is_whole(fh):
            raise FUSEError(errno.EIO)  # after all that can be shown, so that nobody takes it for all there is

    @handler
    async def releasedir(self, fh: int) -> None:
        """The last close of a folder."""
        self._controls.walks.released(fh)

    @handler
    async def fsyncdir(self, fh: int, datasync: bool) -> None:
        """Nothing is ever dirty."""

    @handler
    async def readlink(self, inode: int, ctx: RequestContext) -> bytes:
        """There are no symbolic links."""
        raise FUSEError(errno.EINVAL)

    @handler
    async def statfs(self, ctx: RequestContext) -> pyfuse3.StatvfsData:
        """The longest name and the block size. No counts: they would tell of what is hidden."""
        data = pyfuse3.StatvfsData()
        data.f_bsize = data.f_frsize = PAGE
        data.f_namemax = MAX_SEGMENT_BYTES
        return data

    @handler
    async def getxattr(self, inode: int, name: bytes, ctx: RequestContext) -> bytes:
        """One attribute's value."""
        if name.startswith(UNSUPPORTED):
            raise FUSEError(errno.ENOTSUP)
        if name == REQUESTS and inode == ROOT_INO:
            return self.requests.as_json()
        value = None
        if name.startswith(PREFIX) and inode < CONTROL_BASE and not self._guide.has(inode):
            value = self._extended.of(inode).get(name)
        if value is None:
            raise FUSEError(pyfuse3.ENOATTR)
        return value

    @handler
    async def listxattr(self, inode: int, ctx: RequestContext) -> Sequence[bytes]:
        """The names of an entry's attributes."""
        if inode >= CONTROL_BASE or self._guide.has(inode):
            return []
        return list(self._extended.of(inode))
