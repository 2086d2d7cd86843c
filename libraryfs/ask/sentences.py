"""Text → sentences with their places, for every script: what is quoted, compared and checked.

Blocks first (paragraphs, headings, list items, table rows, lines of code or front matter), then the sentence ends of
the scripts inside a block. A hard-wrapped paragraph is one block. Ranges of characters, so that a quote stays verbatim.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from libraryfs import frontmatter

# Full stops that need a space after them, and those of scripts that need none (CJK, danda, Arabic, Ethiopic, …).
_NEEDS_SPACE: Final = ".!?…\u0589\u061f\u06d4\u0964\u0965\u0f0d\u0f0e\u1362\u1367\u1368\u17d4\u17d5"
_NEEDS_NONE: Final = "。！？｡．\u104b"
_END: Final = re.compile(rf"(?:[{_NEEDS_SPACE}]+[\"'”’»)\]*_]*(?=\s)|[{_NEEDS_NONE}]+[”’」』）]*)\s*")
_BLOCK: Final = re.compile(r"^(?:\s*$|\s*(?:[-*+•]|\d{1,3}[.)])\s|#{1,6}\s|\s*\||```|~~~|---+\s*$|===+\s*$|>\s)")
_KEY_LINE: Final = re.compile(r"^[\w .-]{1,40}:\s")
_SHORT: Final = re.compile(
    r"\b(?:[^\W\d_]|Mr|Mrs|Ms|Dr|St|Sr|Jr|Prof|vs|etc|e\.g|i\.e|cf|al|No|Nr|Inc|Ltd|Co|ca|approx|Fig|bzw|usw|z\.B)\.$"
)
_ORDINAL: Final = re.compile(r"(?:^|\s)\d{1,2}\.$")
_NOUN_AFTER_ORDINAL: Final = re.compile(r"(?:Jan|Feb|März|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez|Jahrhundert)")
_MARK: Final = re.compile(r"(?:\s*(?:[-*+•]|\d{1,3}[.)]|#{1,6}|>)\s+)+")


class Sentence(NamedTuple):
    """`text` is the source's characters from `start` to `end`, without the marks of a list or heading before it."""

    start: int
    end: int
    text: str


def split(source: str) -> list[Sentence]:
    """The sentences of the text, in order. Front matter, rulers and blank lines are none."""
    found = []
    for start, end in _blocks(source):
        mark = _MARK.match(source, start, end)
        position = mark.end() if mark else start
        for stop in _ends(source, position, end):
            left, right = _trim(source, position, stop)
            if any(char.isalnum() for char in source[left:right]):
                found.append(Sentence(left, right, source[left:right]))
            position = stop
    return found


def _blocks(source: str) -> Iterator[tuple[int, int]]:
    front = frontmatter.find(source)
    position = front.end if front else 0
    start = position
    fenced = False
    for line in re.finditer(r"[^\n]*(?:\n|\Z)", source[position:]):
        begin, end = position + line.start(), position + line.end()
        text = line[0]
        fence = text.lstrip().startswith(("```", "~~~"))
        if fence or fenced or _BLOCK.match(text) or (_KEY_LINE.match(text) and _is_key(source, start, begin)):
            if start < begin:
                yield start, begin
            start = begin
            if not text.strip() or fence:
                start = end
        elif start < begin and source[start:begin].lstrip().startswith(("#", "|")):
            yield start, begin
            start = begin
        fenced ^= fence
    if start < len(source):
        yield start, len(source)


def _is_key(source: str, start: int, begin: int) -> bool:
    """A `Key: value` line begins a block where a block begins or the line before it is one too."""
    return start == begin or bool(_KEY_LINE.match(source[start:begin]))


def _ends(source: str, start: int, end: int) -> Iterator[int]:
    for match in _END.finditer(source, start, end):
        if match.end() >= end:
            break
        stop = match.group().rstrip()
        following = source[match.end()]
        if stop[0] in ".!?…" and (following.islower() or (stop == "." and _goes_on(source, start, match))):
            continue
        yield match.end()
    yield end


def _goes_on(source: str, start: int, match: re.Match[str]) -> bool:
    """Whether a full stop ends an abbreviation or a German ordinal, not the sentence."""
    before = source[max(start, match.start() - 12) : match.start() + 1]
    ordinal = _ORDINAL.search(before) and _NOUN_AFTER_ORDINAL.match(source, match.end())
    return bool(_SHORT.search(before) or ordinal)


def _trim(source: str, start: int, end: int) -> tuple[int, int]:
    while start < end and source[start].isspace():
        start += 1
    while start < end and source[end - 1].isspace():
        end -= 1
    return start, end


def words(text: str) -> int:
    """How many words; two characters of a script that is written without spaces count as one."""
    dense = len(UNSPACED.findall(text))
    return len(UNSPACED.sub(" ", text).split()) + (dense + 1) // 2


UNSPACED: Final = re.compile(
    r"[\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]"
)
"""Characters of scripts without spaces between words: Thai, Lao, Tibetan, Burmese, Khmer, kana, Han."""
