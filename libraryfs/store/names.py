"""Names: from what a store has to what a filesystem can show.

Memory: the file name that its source had, else the title's slug and `.md`. A name that is taken, or the same row's name
in another form, gets `~` and six characters of the row's id before the `.md`.

Workspace and artifacts: kept as they are where a folder can hold them. What it cannot (`/` in an item's name, NUL, `.`,
`..`, empty, over 255 bytes, a control file's name, a name that a sibling has) is shown as

    <escaped>~<eight characters>

where `/`, NUL, `%`, a leading `.` and lone surrogates are escaped as `%2F` and so on, and the eight characters are a
checksum of the true name (of the true name and the row's id where the name was taken). `unmap` reverses the form; where
a name was too long to be held whole, only the attribute `user.library.name` has it. Bytes that are no UTF-8 are kept.
"""

import base64
import re
import unicodedata
from collections.abc import Callable
from hashlib import blake2b
from typing import Final
from urllib.parse import quote_from_bytes, unquote_to_bytes

from libraryfs.paths import CONTROL_NAMES, MAX_SEGMENT_BYTES

_CONTROL: Final = frozenset(name.encode() for name in CONTROL_NAMES)
_WORD: Final = r"[\p{L}\p{N}_][\p{L}\p{N}\p{M}_\u200c\u200d]*"
"""Vowel signs, accents and joiners (categories Mn, Mc, Me, and two of Cf) belong to the letters before them."""
_JOINERS: Final = "\u200c\u200d"
_STYLES: Final = dict.fromkeys(range(0xFE00, 0xFE10)) | {0x130: "i"}
"""Variation selectors say how, not what. The lower case of İ is i; Unicode's has a second dot, to go back by."""
_CLUSTER: Final = r"\X"
_MAPPED: Final = re.compile(rb"(?s)(.*)~([a-z2-7]{8})")
_SURROGATE: Final = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]")  # what `surrogatepass` makes of a lone surrogate
_SLUG_BYTES: Final = 200

Taken = Callable[[bytes], bool]


def to_bytes(text: str) -> bytes:
    """Text to bytes without loss: lone surrogates too, those that stand for raw bytes as the bytes."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        pass
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def from_bytes(raw: bytes) -> str:
    """Bytes to text without loss: `to_bytes(from_bytes(raw)) == raw` for every `raw`."""
    for handler in ("strict", "surrogatepass"):
        try:
            text = raw.decode("utf-8", handler)
        except UnicodeDecodeError:
            continue
        if handler == "strict" or to_bytes(text) == raw:
            return text
    return raw.decode("utf-8", "surrogateescape")


def checksum(*parts: bytes, length: int = 8) -> bytes:
    """`length` characters of base 32 (lower case) of a hash of the parts."""
    digest = blake2b(b"\0".join(parts), digest_size=10).digest()
    return base64.b32encode(digest).lower()[:length]


def slug(title: str) -> bytes:
    """The title as a file name's stem: words of any script in lower case, joined by `-`. At most 200 bytes."""
    import regex  # here: a mount gives no names, and starts sooner without it

    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFKC", title).translate(_STYLES).lower())
    words = "-".join(word.rstrip(_JOINERS) for word in regex.findall(_WORD, folded)).strip("-_")
    stem = cut_name(words.encode("utf-8", "ignore"), _SLUG_BYTES).strip(b"-")
    return stem or b"untitled"


def cut(raw: bytes, size: int) -> bytes:
    """At most `size` bytes of `raw`, never through the middle of a UTF-8 character."""
    if len(raw) <= size:
        return raw
    while size > 0 and raw[size] & 0xC0 == 0x80:
        size -= 1
    return raw[:size]


def cut_name(raw: bytes, size: int) -> bytes:
    """At most `size` bytes of `raw`, never through what a reader sees as one character (a grapheme cluster)."""
    if len(raw) <= size:
        return raw
    import regex  # as in `slug`

    kept = 0
    for cluster in regex.finditer(_CLUSTER, raw[: 2 * size + 4].decode("utf-8", "surrogateescape")):
        length = len(cluster[0].encode("utf-8", "surrogateescape"))
        if kept + length > size:
            break
        kept += length
    return raw[:kept] if kept else cut(raw, size)  # one alone can be longer than a name


def memory_name(title: str, row_id: str, taken: Taken) -> bytes:
    """The file name of a new memory; `taken` says whether the folder has a name already."""
    stem = slug(title)
    name = stem + b".md"
    length = 6
    while taken(name):
        name = stem + b"~" + checksum(row_id.encode(), length=length) + b".md"
        length += 2  # 16 characters at the most: beyond that two ids have one hash
        if length > 18:
            raise ValueError(f"no free name for {title!r}")
    return name


def shown_name(true_name: bytes, row_id: str, taken: Taken) -> bytes:
    """The name that a folder shows for `true_name`, as given in the module's text."""
    if _holdable(true_name) and not taken(true_name):
        return true_name
    name = _mapped(true_name, checksum(true_name))
    if taken(name):
        name = _mapped(true_name, checksum(true_name, row_id.encode()))
    return name


def kept_name(given: str | None, true_name: bytes, row_id: str, taken: Taken) -> bytes:
    """The shown name that an export recorded, where it is usable and free; else a new one."""
    if given is not None:
        name = to_bytes(given)
        if _is_segment(name) and not taken(name):
            return name
    return shown_name(true_name, row_id, taken)


def needs_mapping(true_name: bytes) -> bool:
    """Whether no folder can show this name as it is."""
    return not _holdable(true_name)


def unmap(name: bytes) -> bytes:
    """The true name of a shown name, where the name itself holds it: the reverse of `shown_name` without a clash."""
    match = _MAPPED.fullmatch(name)
    if match:
        true_name = unquote_to_bytes(match[1])
        if checksum(true_name) == match[2]:
            return true_name
    return name


def _is_segment(name: bytes) -> bool:
    if not name or name in (b".", b"..") or name in _CONTROL or len(name) > MAX_SEGMENT_BYTES:
        return False
    return b"/" not in name and b"\0" not in name and not _SURROGATE.search(name)


def _holdable(name: bytes) -> bool:
    return _is_segment(name) and unmap(name) == name  # else it would read as the mapped form of another name


def _mapped(true_name: bytes, mark: bytes) -> bytes:
    escaped = true_name.replace(b"%", b"%25").replace(b"/", b"%2F").replace(b"\0", b"%00")
    escaped = _SURROGATE.sub(lambda match: quote_from_bytes(match[0]).encode(), escaped)
    if escaped.startswith(b"."):
        escaped = b"%2E" + escaped[1:]
    return cut_name(escaped, MAX_SEGMENT_BYTES - 9) + b"~" + mark
