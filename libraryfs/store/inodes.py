"""Inode numbers, computed from what a row is: nothing is handed out, so they are the same in every rebuilt snapshot.

60 bits: 12 of the namespace, 48 of (namespace, store, key). The namespace comes first so that one namespace's rows,
whose bodies are stored in inode order, lie together on disk. The four bits above are the mount's, for control files.
"""

from functools import lru_cache
from hashlib import blake2b
from typing import Final

from libraryfs.paths import AGENT_SECTION, SECTIONS

ROW_BITS: Final = 48
ENTRY_BITS: Final = 60
LARGEST_INO: Final = (1 << ENTRY_BITS) - 1
_ROW_MASK: Final = (1 << ROW_BITS) - 1


@lru_cache(maxsize=1024)
def _cluster(namespace: str) -> int:
    # never 0, so that no computed number meets the fixed ones of /, /ring and /agent
    return int.from_bytes(blake2b(namespace.encode(), digest_size=8).digest()) % 4095 + 1


def row_ino(namespace: str, store: str, key: str | bytes) -> int:
    """The number of the row `key` of `store` in `namespace` ("/ring/dev")."""
    raw = key if isinstance(key, bytes) else key.encode("utf-8", "surrogatepass")
    # The namespace again: two that share a cluster (one pair in 4095) must not share the numbers of equal keys.
    digest = blake2b(namespace.encode() + b"\0" + store.encode() + b"\0" + raw, digest_size=8).digest()
    return _cluster(namespace) << ROW_BITS | int.from_bytes(digest) & _ROW_MASK


def namespace_ino(namespace: str) -> int:
    """The number of the folder of a ring or an agent."""
    return row_ino(namespace, "namespace", "")


def section_ino(namespace: str, section: str) -> int:
    """The number of a section's folder; a ring's sections are numbered in listing order."""
    first = row_ino(namespace, "section", "") & ~0xF
    return first | (0 if section == AGENT_SECTION else SECTIONS.index(section))


def cluster_of(ino: int) -> tuple[int, int]:
    """The first and the last number that rows of this number's namespace can have (others may share them)."""
    first = ino >> ROW_BITS << ROW_BITS
    return first, first | _ROW_MASK
