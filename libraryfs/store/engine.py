"""What the SQLite that apsw brings can do on this machine."""

from typing import NamedTuple

import apsw


class Engine(NamedTuple):
    """SQLite's version, whether it has FTS5, and sqlite-vec's version or why it does not load."""

    version: str
    keywords: bool
    vectors: str | None
    vectors_error: str | None


def engine() -> Engine:
    """The engine as it is here. Never raises: what is missing is in the result."""
    version = apsw.sqlite_lib_version()
    keywords = "ENABLE_FTS5" in apsw.compile_options
    db = apsw.Connection(":memory:")
    try:
        import sqlite_vec

        db.enable_load_extension(True)
        db.load_extension(sqlite_vec.loadable_path())
        return Engine(version, keywords, str(db.execute("SELECT vec_version()").get), None)
    except (ImportError, apsw.Error, AttributeError) as error:
        return Engine(version, keywords, None, f"{type(error).__name__}: {error}")
    finally:
        db.close()
