"""The sample ring: libraryfs's own knowledge, which is also its documentation. Files only; see `ring/charter.md`."""

from importlib.resources import files
from pathlib import Path


def ring() -> Path:
    """The folder of the sample ring, ready for `libraryfs import FOLDER --ring libraryfs`."""
    return Path(str(files("libraryfs.sample").joinpath("ring")))
