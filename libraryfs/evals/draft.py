"""A draft of an eval set, made from a ring's own files: for a person to edit, and refused to run until edited.

Each question is about one section of a Markdown file, and its expected fragments are copied from that section: what is
set in bold or as code, figures with their word, else the beginning of its first sentence.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

from libraryfs import frontmatter
from libraryfs.errors import EvalSetError
from libraryfs.evals.evalset import parse_evalset
from libraryfs.evals.matching import fold, fold_fragment
from libraryfs.library.resolver import Library
from libraryfs.library.tree import listing
from libraryfs.nodes import Entry
from libraryfs.store import evals

MOST_BYTES: Final = 1024 * 1024
"""Larger files are no prose that a person would ask about."""
MOST_FRAGMENTS: Final = 2
SHORTEST_SECTION: Final = 25
"""Characters of text below a heading, from which on it is worth a question."""
_FIGURE: Final = re.compile(r"\d[\d.,:]*(?:\s?%|\s\w+)")
_FIRST_WORDS: Final = 7
_WORD_OR_MORE: Final = re.compile(r"\w{2,}")


class Section(NamedTuple):
    """The first text below a heading. `line` is that of the heading in the file, from 1."""

    title: str
    heading: str | None
    line: int
    inlines: tuple[Token, ...]

    @property
    def text(self) -> str:
        """The text, one paragraph or bullet after the other."""
        return " ".join(_plain(inline) for inline in self.inlines)


class Drafted(NamedTuple):
    """One question of the draft, and where its fragments stand."""

    question: str
    fragments: tuple[str, ...]
    path: str
    line: int


def draft(library: Library, ring: str, most: int) -> list[Drafted]:
    """At most `most` questions over the ring's Markdown files, in the order of its listing, spread over all files.

    `ring` is a path such as "/ring/dev". Raises PathNotFound.
    """
    by_file = [found for entry, path in _files(library, ring) if (found := list(_drafted(library, entry, path)))]
    chosen: list[Drafted] = []
    seen: set[str] = set()
    for depth in range(max(map(len, by_file), default=0)):  # the first question of each file, then the second…
        for questions in by_file:
            if depth < len(questions) and fold(questions[depth].question) not in seen and len(chosen) < most:
                seen.add(fold(questions[depth].question))
                chosen.append(questions[depth])
    return sorted(chosen, key=lambda one: [drafted.path for drafted in chosen].index(one.path))


def render(ring: str, questions: Sequence[Drafted]) -> str:
    """The draft as Markdown: an eval set with `draft: true` in its front matter."""
    head = (
        "---\ndraft: true\n---\n"
        f"<!-- A draft, made from {ring}. Ask each question as your colleagues would, keep the fragments that a right\n"
        "     answer must hold, delete what is not worth asking, then remove the line `draft: true`. -->\n"
    )
    parts = []
    for one in questions:
        bullets = "\n".join(f"- {fragment}" for fragment in one.fragments)
        parts.append(f"\n## {one.question}\n\n<!-- {one.path}, line {one.line} -->\n\n{bullets}\n")
    return head + "".join(parts)


def appended(text: str, question: str, fragments: Sequence[str], paths: Sequence[str] = (), *, must: bool) -> str:
    """The text of a set with one question more, at its end. What it is worth, `parse_evalset` says."""
    lines = [f"## {' '.join(question.split())}{' [must]' if must else ''}", ""]
    if paths:
        lines += [f"paths: {', '.join(paths)}", ""]
    lines += [f"- {' '.join(fragment.split())}" for fragment in fragments]
    return (f"{text.rstrip()}\n\n" if text.strip() else "") + "\n".join(lines) + "\n"


def _files(library: Library, ring: str) -> Iterator[tuple[Entry, str]]:
    """Markdown files below the ring that are no eval sets."""
    sets = evals.with_runs(library.snapshot.db)
    below = [library.resolve(ring)]
    while below:
        folder = below.pop(0)
        folders = []
        for entry in listing(library, folder):
            path = library.path_of(entry)
            if entry.is_folder:
                folders.append(entry)
            elif path.endswith(".md") and not evals.is_default(path) and entry.ino not in sets:
                yield entry, path
        below = folders + below


def _drafted(library: Library, entry: Entry, path: str) -> Iterator[Drafted]:
    if entry.size > MOST_BYTES:
        return
    text = library.content(entry).decode("utf-8", "replace").replace("\r\n", "\n")
    if "\0" in text:
        return
    stem = path.rpartition("/")[2].removesuffix(".md").replace("-", " ")
    for section in sections(text, stem):
        fragments = _fragments(section)
        one = Drafted(_question(section), fragments, path, section.line)
        if fragments and _reads_back(one):
            yield one


def _reads_back(one: Drafted) -> bool:
    """Whether the question is read as it was written: its words may be Markdown's own signs."""
    try:
        read = parse_evalset(appended("", one.question, one.fragments, must=False).encode()).questions
    except EvalSetError:
        return False
    return [(question.text, question.fragments) for question in read] == [(one.question, one.fragments)]


def sections(text: str, stem: str) -> Iterator[Section]:
    """The sections of a Markdown text that hold something; `stem` is its title where no heading gives one."""
    block = frontmatter.find(text) if frontmatter.is_open(text) else None
    body = text if block is None else "\n" * text.count("\n", 0, block.end) + text[block.end :]
    title, heading, line = stem, None, 1
    inlines: list[Token] = []
    tokens = MarkdownIt("commonmark").parse(body)
    for number, token in enumerate(tokens):
        if token.type == "heading_open" and token.level == 0:
            if inlines:
                yield Section(title, heading, line, tuple(inlines))
            inlines = []
            words = _plain(tokens[number + 1])
            title, heading = (words or stem, None) if token.tag == "h1" else (title, words or None)
            line = token.map[0] + 1 if token.map else 1
        elif token.type == "inline" and tokens[number - 1].type != "heading_open":
            inlines.append(token)
    if inlines:
        yield Section(title, heading, line, tuple(inlines))


def _question(section: Section) -> str:
    if section.heading is None:
        return section.title if section.title.endswith("?") else f"What should I know about “{section.title}”?"
    if section.heading.endswith("?"):
        return section.heading
    return f"What does “{section.title}” say about “{section.heading}”?"


def _fragments(section: Section) -> tuple[str, ...]:
    """Of the section's first paragraph that has some; each is found in the section's text as an answer's would be."""
    if len(section.text) < SHORTEST_SECTION:
        return ()
    whole = fold(section.text)
    for inline in section.inlines:
        plain = _plain(inline)
        candidates = [*_emphasized(inline.children or ()), *_FIGURE.findall(plain)]
        found = tuple(dict.fromkeys(text for text in candidates if _worth(text) and fold_fragment(text) in whole))
        if found:
            return found[:MOST_FRAGMENTS]
    words = _plain(section.inlines[0]).split()[:_FIRST_WORDS]
    first = " ".join(words)
    return (first,) if _worth(first) and fold_fragment(first) in whole else ()


def _worth(fragment: str) -> bool:
    return bool(_WORD_OR_MORE.search(fragment)) and len(fragment) <= 120 and not fragment.endswith(":")


def _emphasized(children: Iterable[Token]) -> Iterator[str]:
    strong: list[str] | None = None
    for child in children:
        if child.type == "strong_open":
            strong = []
        elif child.type == "strong_close" and strong is not None:
            yield "".join(strong).strip()
            strong = None
        elif child.type == "code_inline" and strong is None:
            yield child.content
        elif strong is not None:
            strong.append(child.content)


def _plain(inline: Token) -> str:
    parts = [
        " " if child.type in ("softbreak", "hardbreak") else child.content
        for child in inline.children or ()
        if child.type != "html_inline"
    ]
    return " ".join("".join(parts).split())
