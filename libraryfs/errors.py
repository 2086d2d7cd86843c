"""Every error that a user can meet: a code, one line of message, the mount's errno and the HTTP status.

LibraryError
├── PathNotFound         LIBRARY_PATH_NOT_FOUND     ENOENT   404   absent, or hidden from this principal: same words
├── InvalidPath          LIBRARY_INVALID_PATH       EINVAL   400   breaks the path grammar
├── InvalidRequest       LIBRARY_INVALID_REQUEST    EINVAL   400   a request that does not validate; names the field
├── LimitExceeded        LIBRARY_LIMIT_EXCEEDED     EINVAL   400   over a documented cap; refused, never clipped
├── ReadOnly             LIBRARY_READ_ONLY          EROFS    405   something that would write
├── InvalidSource        LIBRARY_INVALID_SOURCE     EINVAL   422   an import source that cannot be read as one
│   └── SourceShrank         LIBRARY_SOURCE_SHRANK       EINVAL     409   more than half of its rows would go
├── MountError           LIBRARY_MOUNT              EIO      500   a mount point that cannot be used, or FUSE is missing
├── ModelError           LIBRARY_MODEL              EIO      503   a model that is missing, refused, crashed or late
│   ├── ModelUnavailable     LIBRARY_MODEL_UNAVAILABLE   EIO        503   cannot be used as set; says how to fix it
│   ├── ModelCrashed         LIBRARY_MODEL_CRASHED       EIO        503   its process died; the next use starts it again
│   ├── ModelFailed          LIBRARY_MODEL_FAILED        EIO        502   it, or its endpoint, answered with an error
│   ├── PromptTooLong        LIBRARY_PROMPT_TOO_LONG     EIO        413   more than the model's context
│   ├── ModelBusy            LIBRARY_MODEL_BUSY          EAGAIN     503   its queue is full
│   ├── DeadlineExceeded     LIBRARY_DEADLINE_EXCEEDED   ETIMEDOUT  504   the work's time was up
│   └── Cancelled            LIBRARY_CANCELLED           EINTR      499   the user of the answer went away
├── ShapeNotSatisfied    LIBRARY_SHAPE_NOT_SATISFIED  EIO     422   no answer of the shape that was asked for
├── UsageFault           LIBRARY_USAGE              EINVAL   400   a wrong command, option or argument
├── SystemFault          LIBRARY_SYSTEM             EIO      500   the operating system refused a file or a call
├── EvalSetError         LIBRARY_EVAL_SET           EINVAL   422   an eval set that cannot be run; names the line
└── SnapshotError        LIBRARY_SNAPSHOT           EIO      500   the snapshot file itself
    ├── SnapshotMissing      LIBRARY_SNAPSHOT_MISSING    ENOENT   500
    ├── SnapshotDamaged      LIBRARY_SNAPSHOT_DAMAGED    EIO      500   not SQLite, not libraryfs's, truncated
    ├── SnapshotTooNew       LIBRARY_SNAPSHOT_TOO_NEW    EIO      500   made by a newer libraryfs
    ├── SnapshotBusy         LIBRARY_SNAPSHOT_BUSY       EAGAIN   503   another process writes, for longer than we wait
    ├── SnapshotReadOnly     LIBRARY_SNAPSHOT_READ_ONLY  EROFS    500   the file or its folder cannot be written
    └── SnapshotFull         LIBRARY_SNAPSHOT_FULL       ENOSPC   507   no room on the disk
"""

import errno


class LibraryError(Exception):
    """A user's mistake or a known fault. `str()` is one line: what, where, what to do."""

    code = "LIBRARY_ERROR"
    errno = errno.EIO
    http_status = 500

    @property
    def message(self) -> str:
        """The one line, without the code."""
        return str(self)


class PathNotFound(LibraryError):
    """Absent or hidden. The message is made here only, so that both read the same."""

    code = "LIBRARY_PATH_NOT_FOUND"
    errno = errno.ENOENT
    http_status = 404

    def __init__(self, path: str, meant: str | None = None) -> None:
        """`meant`: a path that the principal sees and that is much like this one."""
        hint = f"; did you mean {meant}?" if meant else ""
        super().__init__(f"{path}: no such path in the library, or not visible to you{hint}")
        self.path = path


class InvalidPath(LibraryError):
    """Text that is not a library path."""

    code = "LIBRARY_INVALID_PATH"
    errno = errno.EINVAL
    http_status = 400


class InvalidRequest(LibraryError):
    """A request that does not validate; the message names the field."""

    code = "LIBRARY_INVALID_REQUEST"
    errno = errno.EINVAL
    http_status = 400


class LimitExceeded(LibraryError):
    """A value over a documented cap."""

    code = "LIBRARY_LIMIT_EXCEEDED"
    errno = errno.EINVAL
    http_status = 400


class ReadOnly(LibraryError):
    """Something that would write to the library."""

    code = "LIBRARY_READ_ONLY"
    errno = errno.EROFS
    http_status = 405


class InvalidSource(LibraryError):
    """An import source that cannot be read; the message names the file and line. Nothing was imported."""

    code = "LIBRARY_INVALID_SOURCE"
    errno = errno.EINVAL
    http_status = 422


class SourceShrank(InvalidSource):
    """Bringing a source in step would remove more than half of its rows, and nobody has said yes to that."""

    code = "LIBRARY_SOURCE_SHRANK"
    http_status = 409


class MountError(LibraryError):
    """A mount point that cannot be used, or a machine without FUSE."""

    code = "LIBRARY_MOUNT"
    errno = errno.EIO
    http_status = 500


class ModelError(LibraryError):
    """A model that is missing, unreachable, crashed or late."""

    code = "LIBRARY_MODEL"
    errno = errno.EIO
    http_status = 503


class ModelUnavailable(ModelError):
    """Cannot be used as it is set (missing, damaged, refused, unreachable); the message says how to fix it."""

    code = "LIBRARY_MODEL_UNAVAILABLE"


class ModelCrashed(ModelError):
    """The model's process died at work. This answer is lost; the next use starts it again."""

    code = "LIBRARY_MODEL_CRASHED"


class ModelFailed(ModelError):
    """The model or its endpoint answered with an error, or with something that is not an answer."""

    code = "LIBRARY_MODEL_FAILED"
    http_status = 502


class PromptTooLong(ModelError):
    """The prompt has more tokens than the model's context."""

    code = "LIBRARY_PROMPT_TOO_LONG"
    http_status = 413


class ModelBusy(ModelError):
    """Too many requests wait for the model already."""

    code = "LIBRARY_MODEL_BUSY"
    errno = errno.EAGAIN


class DeadlineExceeded(ModelError):
    """The work's time was up."""

    code = "LIBRARY_DEADLINE_EXCEEDED"
    errno = errno.ETIMEDOUT
    http_status = 504

    def __init__(self, message: str = "the time for this answer was up") -> None:
        super().__init__(message)


class Cancelled(ModelError):
    """Whoever asked went away, or asked to stop."""

    code = "LIBRARY_CANCELLED"
    errno = errno.EINTR
    http_status = 499

    def __init__(self, message: str = "cancelled") -> None:
        super().__init__(message)


class ShapeNotSatisfied(LibraryError):
    """No answer of the shape that was asked for; the message says what failed."""

    code = "LIBRARY_SHAPE_NOT_SATISFIED"
    http_status = 422


class UsageFault(LibraryError):
    """A wrong command, option or argument."""

    code = "LIBRARY_USAGE"
    errno = errno.EINVAL
    http_status = 400


class SystemFault(LibraryError):
    """The operating system refused a file or a call; the message names it."""

    code = "LIBRARY_SYSTEM"


class EvalSetError(LibraryError):
    """An eval set that cannot be run; the message names the line."""

    code = "LIBRARY_EVAL_SET"
    errno = errno.EINVAL
    http_status = 422


class SnapshotError(LibraryError):
    """The snapshot file cannot be used."""

    code = "LIBRARY_SNAPSHOT"
    errno = errno.EIO
    http_status = 500


class SnapshotMissing(SnapshotError):
    """No such file."""

    code = "LIBRARY_SNAPSHOT_MISSING"
    errno = errno.ENOENT


class SnapshotDamaged(SnapshotError):
    """Not a SQLite file, not a libraryfs snapshot, or truncated."""

    code = "LIBRARY_SNAPSHOT_DAMAGED"


class SnapshotTooNew(SnapshotError):
    """Its schema is newer than this program."""

    code = "LIBRARY_SNAPSHOT_TOO_NEW"


class SnapshotBusy(SnapshotError):
    """Another process holds the write lock for longer than the busy time-out."""

    code = "LIBRARY_SNAPSHOT_BUSY"
    errno = errno.EAGAIN
    http_status = 503


class SnapshotReadOnly(SnapshotError):
    """The file, or the folder that its journal needs, cannot be written."""

    code = "LIBRARY_SNAPSHOT_READ_ONLY"
    errno = errno.EROFS


class SnapshotFull(SnapshotError):
    """The disk is full; the transaction was rolled back."""

    code = "LIBRARY_SNAPSHOT_FULL"
    errno = errno.ENOSPC
    http_status = 507


def of_code(code: str, message: str) -> LibraryError:
    """The error that another process had, of the class that has this code; a plain LibraryError for an unknown code."""
    kinds = [LibraryError]
    for kind in kinds:
        kinds += kind.__subclasses__()
    found = next((kind for kind in kinds if kind.code == code), LibraryError)
    error = found.__new__(found, message)  # not its own constructor, which may make the message from other things
    Exception.__init__(error, message)
    return error
