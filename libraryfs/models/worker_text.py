"""A reply's bytes as they come → text that can be shown."""

from __future__ import annotations

import codecs
from collections.abc import Sequence


class Text:
    """A reply as it grows: bytes of tokens → text, cut before the first stop string.

    A character's bytes can come in several tokens, and a stop string in several pieces: both are held back until whole.
    """

    def __init__(self, stop: Sequence[str]) -> None:
        self._stop = [text for text in stop if text]
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._given = 0
        self.whole = ""
        self.stopped = False

    def add(self, data: bytes) -> str:
        """The text that is safe to show now."""
        return self._take(self._decoder.decode(data))

    def end(self) -> str:
        """What was held back, at the reply's end."""
        new = "" if self.stopped else self._take(self._decoder.decode(b"", final=True))
        new += self.whole[self._given :]
        self._given = len(self.whole)
        return new

    def _take(self, text: str) -> str:
        longest = max(map(len, self._stop), default=1)
        searched = max(0, len(self.whole) - longest + 1)
        self.whole += text
        found = [at for at in (self.whole.find(stop, searched) for stop in self._stop) if at >= 0]
        if found:
            self.stopped = True
            self.whole = self.whole[: min(found)]
        safe = len(self.whole) if self.stopped else len(self.whole) - self._held()
        new = self.whole[self._given : safe]
        self._given = max(self._given, safe)
        return new

    def _held(self) -> int:
        """Characters at the end that may be the start of a stop string."""
        return max(
            (n for stop in self._stop for n in range(1, len(stop)) if self.whole.endswith(stop[:n])),
            default=0,
        )
