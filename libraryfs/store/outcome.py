"""What storing a row did, and the times that a row gets."""

from enum import Enum
from typing import Protocol


class Outcome(Enum):
    """ADDED and CHANGED wrote to the snapshot, UNCHANGED did not."""

    ADDED = "added"
    CHANGED = "changed"
    UNCHANGED = "unchanged"


class GivesTimes(Protocol):
    """A row that may give its times, in nanoseconds since the epoch."""

    @property
    def created_at(self) -> int | None:
        """When the row was made; None when it does not say."""

    @property
    def updated_at(self) -> int | None:
        """When the row was last changed; None when it does not say."""


def times(row: GivesTimes, created_ns: int, updated_ns: int) -> tuple[int, int]:
    """(created, updated): the row's own, else those given."""
    return (
        created_ns if row.created_at is None else row.created_at,
        updated_ns if row.updated_at is None else row.updated_at,
    )
