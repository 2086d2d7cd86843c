"""The kinds of control files that a mount has."""

from libraryfs.mount.ask_control import AskControl
from libraryfs.mount.control import ControlKind
from libraryfs.mount.eval_control import EvalControl
from libraryfs.mount.walk_controls import DrilldownControl, TreeControl


def control_kinds(mountpoint: str) -> tuple[ControlKind, ...]:
    """All of them, each with a number and a name of its own."""
    return TreeControl(), DrilldownControl(), AskControl(mountpoint), EvalControl(mountpoint)
