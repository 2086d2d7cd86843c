"""Text → blocks, the units of an answer: a paragraph, or a lead-in with its list, code or table, verbatim.

A block has at most MAX_WORDS words. A longer paragraph is cut between sentences, a list between items, a table between
rows (its header goes with each), code between lines; the lead-in goes with each part. Headings, tables of contents,
header rows, questions and lead-ins that lead to nothing are no blocks; headings and questions caption what follows.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Final, Literal, NamedTuple

from libraryfs.ask.outline import Node, is_contents, outline, trim
from libraryfs.ask.sentences import split, words

MAX_WORDS: Final = 110
PART_WORDS: Final = 80
"""Of a part of what is too long for one block, its lead-in counted."""
LEAD_WORDS: Final = 40
"""A longer paragraph before a list, code or table gives its last sentence as lead-in."""

Kind = Literal["paragraph", "list", "code", "table", "facts"]
Span = tuple[int, int]

_IMAGE: Final = re.compile(r"!\[[^\]]*\](?:\([^)]*\)|\[[^\]]*\])|<img[^>]*>")
_QUESTION_MARKS: Final = "?\uff1f\u061f\u2047\u203d\u055e\u1367"
_CLOSING: Final = " \t\r\n\"'”’»)]*_"


class Block(NamedTuple):
    """Characters `start` to `end` of a text, and before them those of `lead`: a lead-in, or a table's header."""

    kind: Kind
    start: int
    end: int
    lead: Span | None = None
    headings: tuple[str, ...] = ()

    def spans(self, source: str) -> tuple[Span, ...]:
        """The ranges that it consists of: one where nothing but white space stands between lead-in and rest."""
        if self.lead is None:
            return ((self.start, self.end),)
        if not source[self.lead[1] : self.start].strip():
            return ((self.lead[0], self.end),)
        return (self.lead, (self.start, self.end))

    def text(self, source: str) -> str:
        """Its words: each span verbatim, a line each."""
        return "\n".join(source[start:end] for start, end in self.spans(source))


def blocks(source: str, name: str = "") -> list[Block]:
    """The blocks of a text, in order. What is not UTF-8 (U+FFFD in the text) is in none: it cannot be quoted."""
    made = _Blocks(source)
    found = list(made.of(outline(source, name), ()))
    return [block for block in found if "\ufffd" not in block.text(source)]


def asks(text: str) -> bool:
    """Whether the text ends as a question."""
    return text.rstrip(_CLOSING).endswith(tuple(_QUESTION_MARKS))


class _Blocks:
    def __init__(self, source: str) -> None:
        self.source = source

    def of(self, nodes: Sequence[Node], above: tuple[str, ...], lead: Span | None = None) -> Iterator[Block]:
        """The blocks of some elements in a row."""
        stack: list[tuple[int, str]] = []
        question = ""
        at = 0
        while at < len(nodes):
            node = nodes[at]
            after = nodes[at + 1] if at + 1 < len(nodes) else None
            headings = (*above, *(title for _, title in stack), *((question,) if question else ()))
            at += 1
            if node.kind == "heading":
                stack = [one for one in stack if one[0] < node.level] + [(node.level, node.title)]
                question = ""
            elif node.kind == "paragraph":
                asked, rest = self._without_questions(node)
                question = asked or question
                if asked:
                    headings = (*headings, asked)
                if rest is None:
                    continue
                if after is not None and self._leads(rest, after):
                    yield from self._led(rest, after, headings, lead)
                    at += 1
                else:
                    yield from self._paragraph(rest, headings, lead)
                question = "" if not asked else question
            else:
                yield from self._body(node, headings, lead)

    def _without_questions(self, node: Node) -> tuple[str, Node | None]:
        """The questions that a paragraph begins with, and the paragraph after them; None where nothing follows."""
        source = _IMAGE.sub(lambda found: " " * len(found[0]), self.source[node.start : node.end])
        if not any(char.isalnum() for char in source):
            return "", None
        start, asked = node.start, ""
        if any(mark in source for mark in _QUESTION_MARKS):
            for sentence in split(source):
                if not asks(sentence.text):
                    start = node.start + sentence.start if asked else start
                    break
                asked = sentence.text
            else:
                return asked, None
        return asked, node._replace(start=start)

    def _leads(self, node: Node, after: Node) -> bool:
        """Whether a paragraph is a lead-in of what follows it."""
        if after.kind not in ("list", "code", "table", "quote"):
            return False
        colon = self._is_lead(node.start, node.end)
        return colon or (after.kind in ("code", "table") and self._words((node.start, node.end)) <= LEAD_WORDS)

    def _is_lead(self, start: int, end: int) -> bool:
        return self.source[start:end].rstrip(" *_`").endswith((":", "：", "::"))

    def _words(self, *spans: Span | None) -> int:
        return sum(words(self.source[span[0] : span[1]]) for span in spans if span is not None)

    def _led(self, node: Node, after: Node, headings: tuple[str, ...], outer: Span | None) -> Iterator[Block]:
        """A lead-in and what it leads to: together where they fit, else the lead-in with each part."""
        whole = (node.start, after.end)
        kind = _KINDS[after.kind]
        if self._words(outer, whole) <= MAX_WORDS:
            yield Block(kind, after.start, after.end, (node.start, node.end), headings)
            return
        lead = (node.start, node.end)
        if self._words(lead) > LEAD_WORDS:
            sentences = split(self.source[node.start : node.end])
            if len(sentences) > 1:
                cut = node.start + sentences[-1].start
                yield from self._paragraph(Node("paragraph", *trim(self.source, node.start, cut)), headings, outer)
                lead = (cut, node.end)
        yield from self._body(after, headings, lead if self._words(lead) <= LEAD_WORDS else None)

    def _paragraph(self, node: Node, headings: tuple[str, ...], lead: Span | None) -> Iterator[Block]:
        start, end = node.start, node.end
        if self._is_lead(start, end):  # leads to nothing that belongs to it
            sentences = split(self.source[start:end])
            if len(sentences) < 2:
                return
            start, end = trim(self.source, start, start + sentences[-1].start)
        if self._words(lead, (start, end)) <= MAX_WORDS:
            yield Block("paragraph", start, end, lead, headings)
            return
        pieces = [(start + one.start, start + one.end) for one in split(self.source[start:end])]
        for first, last in self._runs(pieces, PART_WORDS - self._words(lead)):
            yield Block("paragraph", first, last, lead, headings)

    def _body(self, node: Node, headings: tuple[str, ...], lead: Span | None) -> Iterator[Block]:
        if node.kind == "list" and is_contents(self.source, node):
            return
        if node.kind == "quote" and any(child.kind != "paragraph" for child in node.children):
            yield from self.of(node.children, headings, lead)
        elif self._words(lead, (node.start, node.end)) <= MAX_WORDS and (
            node.kind != "table" or len(node.children) < 8
        ):
            yield Block(_KINDS[node.kind], node.start, node.end, lead, headings)
        else:
            part: Callable[[Node, tuple[str, ...], Span | None], Iterator[Block]] = {
                "list": self._items,
                "table": self._rows,
            }.get(node.kind, self._lines)
            yield from part(node, headings, lead)

    def _items(self, node: Node, headings: tuple[str, ...], lead: Span | None) -> Iterator[Block]:
        """Neighbouring items together; one that is too long gives its own blocks, led by its first paragraph."""
        room = PART_WORDS - self._words(lead)
        run: list[Span] = []
        for item in (*node.children, None):
            if item is None or self._words((item.start, item.end)) > room:
                for first, last in self._runs(run, room):
                    yield Block("list", first, last, lead, headings)
                run = []
            else:
                run.append((item.start, item.end))
            if item is not None and not run:
                first_child = item.children[0] if item.children else None
                if first_child is None or len(item.children) == 1:
                    yield from self._paragraph(Node("paragraph", item.start, item.end), headings, lead)
                elif first_child.kind == "paragraph" and self._words((item.start, first_child.end)) <= LEAD_WORDS:
                    opening = first_child._replace(start=item.start)
                    if item.children[1].kind == "paragraph":
                        yield Block("list", opening.start, opening.end, lead, headings)
                        yield from self.of(item.children[1:], headings, (opening.start, opening.end))
                    else:
                        yield from self._led(opening, item.children[1], headings, None)
                        yield from self.of(item.children[2:], headings, (opening.start, opening.end))
                else:
                    yield from self.of(item.children, headings, None)

    def _rows(self, node: Node, headings: tuple[str, ...], lead: Span | None) -> Iterator[Block]:
        if len(node.children) < 2:
            return
        header = trim(self.source, node.start, node.children[1].start)
        for row in node.children[1:]:
            yield Block("table", row.start, row.end, header, headings)

    def _lines(self, node: Node, headings: tuple[str, ...], lead: Span | None) -> Iterator[Block]:
        """Parts of code, of front matter or of a quotation, cut between lines."""
        pieces, at = [], node.start
        for line in self.source[node.start : node.end].splitlines(keepends=True):
            piece = trim(self.source, at, at + len(line))
            pieces += [piece] if piece[1] > piece[0] else []
            at += len(line)
        for first, last in self._runs(pieces, PART_WORDS - self._words(lead)):
            yield Block(_KINDS[node.kind], first, last, lead, headings)

    def _runs(self, pieces: Sequence[Span], room: int) -> Iterator[Span]:
        """Neighbours joined to about equal runs of at most `room` words; a longer piece is cut between words."""
        sizes = [self._words(piece) for piece in pieces]
        if not pieces:
            return
        room = max(room, 20)
        parts = -(-sum(sizes) // room)
        share = min(room, -(-sum(sizes) // parts) + max(sizes, default=0) // 2) if parts else room
        first, held = 0, 0
        for at, size in enumerate(sizes):
            if held and held + size > share:
                yield pieces[first][0], pieces[at - 1][1]
                first, held = at, 0
            if size > MAX_WORDS:
                yield from self._cut(pieces[at])
                first, held = at + 1, 0
            else:
                held += size
        if first < len(pieces):
            yield pieces[first][0], pieces[-1][1]

    def _cut(self, piece: Span) -> Iterator[Span]:
        """Runs of PART_WORDS words of what has no better place to be cut."""
        places = [piece[0] + found.start() for found in re.finditer(r"\S+", self.source[piece[0] : piece[1]])]
        if len(places) * 2 < words(self.source[piece[0] : piece[1]]):  # a script without spaces
            places = list(range(*piece))
        step = max(1, len(places) * PART_WORDS // max(1, words(self.source[piece[0] : piece[1]])))
        cuts = [*places[::step], piece[1]]
        for start, end in pairwise(cuts):
            left, right = trim(self.source, start, end)
            if right > left:
                yield left, right


_KINDS: Final[dict[str, Kind]] = {
    "paragraph": "paragraph",
    "quote": "paragraph",
    "list": "list",
    "item": "list",
    "code": "code",
    "table": "table",
    "row": "table",
    "facts": "facts",
}
