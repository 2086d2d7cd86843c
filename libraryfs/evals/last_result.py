"""The last stored result of a ring's eval set. A mount shows it, so nothing large is imported here."""

from libraryfs.errors import LibraryError
from libraryfs.evals.statistics import Count, wilson
from libraryfs.library.resolver import Library
from libraryfs.store import evals as store
from libraryfs.store import workspace


def last_result(library: Library, ring: str) -> bytes:
    """The last result of the ring's default set in two lines; b"" where none is, or the set is not to be seen.

    Starts nothing.
    """
    try:
        entry = library.resolve(f"{ring}/workspace/{store.DEFAULT_NAME}")
    except LibraryError:
        return b""
    item = workspace.get(library.snapshot.db, entry.ino)
    if item is None:
        return b""
    text = store.latest_summary(library.snapshot.db, entry.ino)
    rate = store.stored_rate(item.metadata)
    if text is None and rate is not None:
        first = f"{library.path_of(entry)}: {rate_in_words(Count(rate.passed, rate.total))}, {rate.at}"
        text = f"{first}\nof this run only the rate is kept"
    return b"" if text is None else text.encode("utf-8", "surrogateescape") + b"\n"


def rate_in_words(count: Count, errors: int = 0) -> str:
    """`17/20 passed (0.85, 95 % interval 0.64 to 0.95), 1 error`."""
    low, high = wilson(count)
    failed = f", {errors} error{'s' * (errors != 1)}" if errors else ""
    return f"{count.passed}/{count.total} passed ({count.rate:.2f}, 95 % interval {low:.2f} to {high:.2f}){failed}"
