"""Regular expressions that somebody else wrote, matched in time linear in the text.

Python's `re` backtracks, and holds the interpreter while it does: `^(a+)+$` on forty characters stops every thread of
the process for ever. RE2 does not backtrack; what it cannot do for that reason (look-around, back references) is
refused. It never compiles to more than a few MiB, and refuses counts over 1,000.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import re2

_ESCAPE: Final = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|(.))", re.DOTALL)
_BACKTRACKS: Final = re.compile(r"^invalid perl operator|\\[1-9]$")
_MEMORY: Final = 1 << 20
"""Bytes of one compiled pattern and its cache of states."""


@lru_cache(maxsize=128)
def searcher(pattern: str) -> Callable[[str], bool]:
    """A function that says whether the pattern is found anywhere in a text. Raises ValueError with the reason.

    The syntax is that of JSON Schema (ECMA-262) as far as RE2 has it: `$` is the end of the text, `\\d` is 0 to 9.
    """
    options = re2.Options()
    options.max_mem = _MEMORY
    options.log_errors = False
    options.never_capture = True
    try:
        compiled: Any = re2.compile(_ESCAPE.sub(_translated, pattern).encode(), options)
    except (re2.error, UnicodeEncodeError) as error:
        raise ValueError(_reason(error)) from None
    return lambda text: compiled.search(text.encode("utf-8", "replace")) is not None


def _translated(found: re.Match[str]) -> str:
    """ECMA's `\\u00e9` in RE2's form; every other escape as it is."""
    return f"\\x{{{found[1]}}}" if found[1] else found[0]


def _reason(error: Exception) -> str:
    if isinstance(error, UnicodeEncodeError):
        return "not valid Unicode"
    said = error.args[0] if error.args else ""
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
    if _BACKTRACKS.search(text):
        text += " (look-around and back references are not to be had: they cannot be matched in linear time)"
    return text
