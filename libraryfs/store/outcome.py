"""What storing a row did."""

from enum import Enum


class Outcome(Enum):
    """ADDED and CHANGED wrote to the snapshot, UNCHANGED did not."""

    ADDED = "added"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
