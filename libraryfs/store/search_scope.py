"""A part of the library to search, as the store can tell it from the rest without looking at a single row of it."""

from typing import Final, NamedTuple

BELOW: Final = (
    "WITH RECURSIVE below (ino) AS (VALUES (?) UNION"
    " SELECT e.ino FROM entries e JOIN below b ON e.parent = b.ino) SELECT ino FROM below"
)
"""Everything under a folder, the folder too. UNION, not UNION ALL: a cycle ends."""


class SearchScope(NamedTuple):
    """Whole namespaces, or within the one that is named: a section of memories, what is below a folder, or one file.

    It may still hold rows that no path reaches (workspace orphans, charters that a newer one shadows).
    """

    namespaces: tuple[int, ...]
    section: int | None = None
    below: int | None = None
    file: int | None = None
