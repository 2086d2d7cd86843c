"""libraryfs: what a team knows, mounted as plain files and able to answer."""

__version__ = "0.1.0"
