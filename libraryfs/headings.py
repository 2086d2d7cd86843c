"""The headings of a text in any light markup: Markdown, reStructuredText, AsciiDoc, Org. For search, not to show."""

import re
from typing import Final, NamedTuple

from libraryfs import frontmatter

MAX_CHARACTERS: Final = 200
"""A longer line is no heading."""

# Tildes under a line of text underline it.
_FENCED: Final = re.compile(
    r"(?:^ {0,3}(?=```)|(?:(?<=\n\n)|\A)(?=~~~))(```|~~~).*?(?:^ {0,3}\1|\Z)", re.MULTILINE | re.DOTALL
)
_MARKDOWN: Final = re.compile(r"^ {0,3}(#{1,6})[ \t]+(\S.*?)[ \t#]*$", re.MULTILINE)
_ASCIIDOC: Final = re.compile(r"^(={1,6})[ \t]+(\S.*?)[ \t=]*$", re.MULTILINE)
_ORG: Final = re.compile(r"^(\*{1,6}|#\+title:)[ \t]+(\S.*?)[ \t]*$", re.MULTILINE | re.IGNORECASE)
_ORG_MARK: Final = re.compile(r"^(?:#\+\w+:|\*\*+ )", re.MULTILINE)
_UNDERLINED: Final = re.compile(r"^(\w[^\n]*)\n([=\-`:.'\"~^_*+#])\2{2,}[ \t]*$", re.MULTILINE)


class Headings(NamedTuple):
    """`title` is the heading that stands above all others of the text, "" where none does; `others` the rest."""

    title: str
    others: list[str]


def find(text: str) -> Headings:
    """The headings of a text, in order. Front matter and fenced code have none."""
    front = frontmatter.find(text)
    body = text[front.end if front else 0 :].replace("\r\n", "\n")
    if "```" in body or "~~~" in body:
        body = _FENCED.sub("", body)
    found = [(level, heading) for level, heading in _levels(body) if len(heading) <= MAX_CHARACTERS]
    if found and found[0][0] == 1 and sum(level == 1 for level, _ in found) == 1:
        return Headings(found[0][1], [heading for _, heading in found[1:]])
    return Headings("", [heading for _, heading in found])


def _levels(body: str) -> list[tuple[int, str]]:
    """(level, heading), 1 for the highest, by the first markup that the text has."""
    forms = (_MARKDOWN, _ASCIIDOC, _ORG) if _ORG_MARK.search(body) else (_MARKDOWN, _ASCIIDOC)
    for form in forms:
        marked = [
            (found.start(), len(found[1]) if len(found[1]) <= 6 else 1, found[2]) for found in form.finditer(body)
        ]
        if marked:
            break
    marks: list[str] = []  # an underline's level is the order in which its character comes
    for found in _UNDERLINED.finditer(body):
        if found[2] not in marks:
            marks.append(found[2])
        marked.append((found.start(), marks.index(found[2]) + 1, found[1].strip()))
    return [(level, heading) for _, level, heading in sorted(marked)]
