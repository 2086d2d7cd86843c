"""What is told to the kernel without being asked: what to forget, and pages that it will want."""

import errno
import logging

import pyfuse3

from libraryfs.store.inodes import LARGEST_INO

log = logging.getLogger(__name__)


def _is_known(ino: int) -> bool:
    """Whether the kernel can have heard of this number; of a parent below 0, where shadowed charters stand, it never
    has, and pyfuse3 raises OverflowError."""
    return 0 < ino <= LARGEST_INO


class KernelCaches:
    """Notifications to the kernel. `end` makes all later ones do nothing: there is no session to send them through."""

    def __init__(self) -> None:
        self._ended = False

    def end(self) -> None:
        """The mount is ending."""
        self._ended = True

    def forget_name(self, parent: int, name: bytes) -> None:
        """Drops a name, known or known to be absent, and what is below it. Blocks while its folder is being read.

        A number that no folder or file that is shown can have (a shadowed charter's parent) is passed over.
        """
        if not self._ended and _is_known(parent):
            try:
                pyfuse3.invalidate_entry(parent, name)
            except OSError as error:
                self._failed(error)

    def forget_inode(self, ino: int, *, attributes_only: bool = False) -> None:
        """Drops attributes, and pages too. Blocks while a READ of the file waits for its answer."""
        if not self._ended and _is_known(ino):
            try:
                pyfuse3.invalidate_inode(ino, attributes_only)
            except OSError as error:
                self._failed(error)

    def push(self, ino: int, data: bytes) -> None:
        """Stores a file's first pages. Raises OSError, ENOENT where the kernel does not know the inode."""
        if not self._ended:
            pyfuse3.notify_store(ino, 0, data)

    def _failed(self, error: OSError) -> None:
        # ENOENT: it never knew, or has let go; ENOTDIR: what was a folder is a file by now
        if error.errno not in (errno.ENOENT, errno.ENOTDIR):
            log.warning("the kernel refused a notification: %s", error)
