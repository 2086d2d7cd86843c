"""Where the daemon's processes log."""

import errno
import logging
import os
from pathlib import Path
from typing import Final

LOG_FORMAT: Final = "%(asctime)s %(levelname)s %(name)s[%(process)d]: %(message)s"


def start_logging(log_file: Path | None, level: str) -> None:
    """To the log file (made for its owner alone), else to stderr, in place of what the forking process had."""
    if log_file is not None:
        os.close(os.open(log_file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600))
    handler: logging.Handler = logging.StreamHandler() if log_file is None else logging.FileHandler(log_file)
    handler.addFilter(_is_news)
    logging.basicConfig(level=level.upper(), format=LOG_FORMAT, handlers=[handler], force=True)


def _is_news(record: logging.LogRecord) -> bool:
    """False for pyfuse3's complaint that a caller was gone before the reply: an interrupted read, not a fault."""
    gone = record.args == (os.strerror(errno.ENOENT),)
    return not (record.name == "pyfuse3" and "fuse_reply_* failed" in str(record.msg) and gone)
