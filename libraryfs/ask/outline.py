"""Text → its outline: headings, paragraphs, lists, code, tables, each with its place in the text."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Final, Literal, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markdown_it.tree import SyntaxTreeNode

from libraryfs import frontmatter
from libraryfs.ask.markup import as_markdown

Kind = Literal["heading", "paragraph", "list", "item", "code", "table", "row", "quote", "facts"]

_LINK: Final = re.compile(r"\[[^\]]*\]\([^)]*\)")
_COMMENT: Final = re.compile(r"<!--.*?-->", re.DOTALL)
_TAG: Final = re.compile(r"</?[a-zA-Z][^>]*>")
_BOLD_LINE: Final = re.compile(r"^(?:\*\*|__)([^*_\n]{2,80}?)[:.]?(?:\*\*|__):?$")


_TABLES: Final = frozenset({"csv", "tsv"})
_CODES: Final = frozenset(
    [
        "py",
        "pyi",
        "js",
        "jsx",
        "ts",
        "tsx",
        "go",
        "rs",
        "c",
        "h",
        "cc",
        "cpp",
        "hpp",
        "java",
        "kt",
        "swift",
        "rb",
        "php",
        "pl",
        "lua",
        "sh",
        "bash",
        "zsh",
        "fish",
        "ps1",
        "sql",
        "css",
        "scss",
        "xml",
        "toml",
        "ini",
        "cfg",
        "conf",
        "json",
        "jsonl",
        "yaml",
        "yml",
        "proto",
        "lock",
        "log",
        "diff",
        "patch",
    ]
)


class Node(NamedTuple):
    """One element: characters `start` to `end` of the text, white space at its ends taken off."""

    kind: Kind
    start: int
    end: int
    level: int = 0
    """Of a heading: 1 to 6, and 7 for a line in bold that stands for one."""
    title: str = ""
    """Of a heading: its words."""
    children: tuple["Node", ...] = ()
    """Items of a list, rows of a table (the header first), elements of an item or of a quotation."""


class _Lines:
    """Where the lines of the text begin."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.starts = [0, *(found.end() for found in re.finditer("\n", text))]

    def span(self, first: int, last: int) -> tuple[int, int]:
        """Characters of the lines `first` up to, not including, `last`, trimmed."""
        start = self.starts[first] if first < len(self.starts) else len(self.text)
        end = self.starts[last] if last < len(self.starts) else len(self.text)
        return trim(self.text, start, end)


def trim(text: str, start: int, end: int) -> tuple[int, int]:
    """The same range without white space at its ends."""
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return start, end


def outline(text: str, name: str = "") -> list[Node]:
    """The elements of the text, in order. Comments and rulers are none; `name` may say the markup by its ending."""
    lines = _Lines(text)
    ending = name.lower().rpartition(".")[2]
    if ending in _TABLES:
        return _table_of_lines(lines)
    if ending in _CODES:
        start, end = trim(text, 0, len(text))
        return [Node("code", start, end)] if end > start else []
    front = frontmatter.find(text)
    after = 0 if front is None else bisect_right(lines.starts, max(0, front.end - 1))
    made = as_markdown(text, name)
    found: list[Node] = []
    if front is not None and front.end:
        start, end = lines.span(1, max(1, after - 1))
        found += [Node("facts", start, end)] if end > start else []
        made[:after] = [""] * min(after, len(made))
    # The parser takes a lone carriage return for the end of a line, which would move all that follows.
    parsed = SyntaxTreeNode(_parse("\n".join(line.replace("\r", " ") for line in made)))
    return found + list(_nodes(parsed.children, lines))


def _table_of_lines(lines: _Lines) -> list[Node]:
    """Each line a row, the first the header."""
    rows = [Node("row", *span) for at in range(len(lines.starts)) if (span := lines.span(at, at + 1))[1] > span[0]]
    return [Node("table", rows[0].start, rows[-1].end, children=tuple(rows))] if rows else []


def _parse(text: str) -> list[Token]:
    markdown = MarkdownIt("commonmark", {"maxNesting": 12}).enable("table")
    markdown.core.ruler.enableOnly(["normalize", "block"])  # the words inside are not looked at
    return markdown.parse(text)


def _nodes(children: Sequence[SyntaxTreeNode], lines: _Lines) -> Iterator[Node]:
    for child in children:
        if child.map is None:
            continue
        start, end = lines.span(*child.map)
        if end <= start:
            continue
        node = _node(child, start, end, lines)
        if node is not None:
            yield node


def _node(child: SyntaxTreeNode, start: int, end: int, lines: _Lines) -> Node | None:
    source = lines.text[start:end]
    match child.type:
        case "heading":
            title = source.split("\n", 1)[0].strip().strip("#=*").strip()
            return Node("heading", start, end, int(child.tag[1:] or 1), title)
        case "paragraph":
            bold = _BOLD_LINE.match(source)
            return Node("heading", start, end, 7, bold[1]) if bold else Node("paragraph", start, end)
        case "bullet_list" | "ordered_list":
            items = tuple(_item(one, lines) for one in child.children if one.map is not None)
            return Node("list", start, end, children=items)
        case "fence" | "code_block":
            return Node("code", start, end)
        case "table":
            rows = [row for part in child.children for row in part.children if row.map is not None]
            return Node(
                "table", start, end, children=tuple(Node("row", *lines.span(*row.map)) for row in rows if row.map)
            )
        case "blockquote":
            return Node("quote", start, end, children=tuple(_nodes(child.children, lines)))
        case "html_block":
            words = _TAG.sub(" ", _COMMENT.sub(" ", source))
            return Node("paragraph", start, end) if any(char.isalnum() for char in words) else None
        case _:
            return None


def _item(child: SyntaxTreeNode, lines: _Lines) -> Node:
    assert child.map is not None
    return Node("item", *lines.span(*child.map), children=tuple(_nodes(child.children, lines)))


def is_contents(text: str, node: Node) -> bool:
    """Whether a list is a table of contents: nothing but links to places of the same text."""
    source = text[node.start : node.end]
    links = _LINK.findall(source)
    inner = sum("](#" in link for link in links)
    bare = re.sub(r"[\s\d.*+-]", "", _LINK.sub("", source))
    return bool(links) and inner * 2 > len(links) and len(bare) < len("".join(links)) / 10
