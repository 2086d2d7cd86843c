"""The text of bytes in any coding: by a byte order mark, else as UTF-8, as the text declares, or as a detector says.

The bytes of a file stay as they are; this is how search reads them.
"""

import codecs
import re
from typing import Final, NamedTuple

UTF8: Final = "utf-8"

_MARKS: Final = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_DECLARED: Final = re.compile(
    rb"""(?ix)<\?xml[^>]{0,200}?encoding\s*=\s*["']([\w.:-]+)  # XML
    | <meta[^>]{0,200}?charset\s*=\s*["']?([\w.:-]+)           # HTML
    | @charset\s+["']([\w.:-]+)                                # CSS
    | (?:file)?(?:en)?coding[:=][ \t]*([\w.-]+)                # Python, Emacs, Vim
    """
)
_DETECTED: Final = [
    *("cp1252", "cp932", "shift_jis_2004", "euc_jp", "gb18030", "big5", "big5hkscs", "euc_kr", "cp949", "johab"),
    *("cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "tis_620", "cp874"),
    *("koi8_r", "koi8_u", "cp866", "cp855", "mac_cyrillic"),
    *("iso8859_2", "iso8859_5", "iso8859_6", "iso8859_7", "iso8859_8", "iso8859_9", "iso8859_13", "iso8859_15"),
]
"""The codings that texts are found in; of the others, a detector finds mostly mistakes."""
_ESCAPED: Final = ((b"\x1b$)C", "iso2022_kr"), (b"\x1b$", "iso2022_jp_2"), (b"\x1b(J", "iso2022_jp_2"))
_HEAD: Final = 1024
_CONTROL: Final = bytes(byte for byte in range(32) if byte not in b"\t\n\v\f\r\x1b\x0e\x0f")
_SAMPLE: Final = 64 * 1024
_MAY_BE_CONTROL: Final = 0.02  # of a sample's bytes, in text
_NUL_SHARE: Final = 0.3  # of the odd or of the even bytes, in UTF-16 of a European language


class Decoded(NamedTuple):
    """The text, and the coding that it was read in."""

    text: str
    encoding: str


def decode(data: bytes) -> Decoded | None:
    """The text of a whole file; None when it is no text, or in no coding that is known."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _try(data, encoding)
    if b"\0" in data:
        return _wide(data)
    for escape, encoding in _ESCAPED:  # of ASCII bytes only, so that they would be UTF-8 too
        if escape in data[:_SAMPLE] and (found := _try(data, encoding)):
            return found
    if found := _try(data, UTF8):
        return found
    sample = data[:_SAMPLE]
    if len(sample) - len(sample.translate(None, _CONTROL)) > _MAY_BE_CONTROL * len(sample):
        return None
    if (declared := _declared(data[:_HEAD])) and (found := _try(data, declared)):
        return found
    return _detected(data, sample)


def _try(data: bytes, encoding: str) -> Decoded | None:
    try:
        return Decoded(data.decode(encoding), encoding)
    except (UnicodeError, LookupError, ValueError):
        return None


def _declared(head: bytes) -> str | None:
    found = _DECLARED.search(head)
    if found is None:
        return None
    name = next(group for group in found.groups() if group).decode("ascii")
    try:
        info = codecs.lookup(name)
    except (LookupError, ValueError):
        return None
    return info.name if info._is_text_encoding and info.name not in ("unicode_escape", "raw_unicode_escape") else None


def _wide(data: bytes) -> Decoded | None:
    """UTF-16 without a byte order mark: every other byte of most scripts' punctuation and of all ASCII is NUL."""
    sample = data[:_SAMPLE]
    half = len(sample) // 2
    if not half or len(data) % 2:
        return None
    even, odd = sample[0::2].count(0), sample[1::2].count(0)
    if odd > _NUL_SHARE * half and not even:
        found = _try(data, "utf-16-le")
    elif even > _NUL_SHARE * half and not odd:
        found = _try(data, "utf-16-be")
    else:
        return None
    return found if found and "\0" not in found.text else None


def _detected(data: bytes, sample: bytes) -> Decoded | None:
    import charset_normalizer  # here: nearly every file is UTF-8

    best = charset_normalizer.from_bytes(sample, cp_isolation=_DETECTED, preemptive_behaviour=False).best()
    found = _try(data, best.encoding) if best is not None else None
    usual = _try(data, "cp1252")  # the name that most know, where it gives the same text
    return usual if found and usual and usual.text == found.text else found
