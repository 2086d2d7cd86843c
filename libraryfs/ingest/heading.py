"""The first heading of a document, as its title: Markdown, and the markup languages that a suffix tells."""

import re
from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

_LOOKED_AT: Final = 32 * 1024
_LONGEST: Final = 300
_LONGEST_LINE: Final = 1000
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")
_ATX: Final = re.compile(r" {0,3}#{1,6}(?:[ \t]+(.*?))??(?:[ \t]+#+)?[ \t]*$")
_UNDERLINE: Final = re.compile(r" {0,3}(?:=+|-{2,})[ \t]*$")
_NO_HEADING: Final = re.compile(r"\s*$|[ \t]*(?:[-*+>|<]|\d+[.)]\s)| {4}|\t")
_OTHERS: Final = {
    ".org": re.compile(r"(?im)^(?:#\+title:|\*+)[ \t]+(.+?)[ \t]*$"),
    ".adoc": re.compile(r"(?m)^=+[ \t]+(.+?)[ \t]*$"),
    ".asciidoc": re.compile(r"(?m)^=+[ \t]+(.+?)[ \t]*$"),
    ".mediawiki": re.compile(r"(?m)^=+[ \t]*(.+?)[ \t]*=+[ \t]*$"),
    ".wiki": re.compile(r"(?m)^=+[ \t]*(.+?)[ \t]*=+[ \t]*$"),
    ".rst": re.compile(r"(?m)^(?!\.\.|[-=~#*+^\"'`]{3})(\S.*?)[ \t]*\n([-=~#*+^\"'`])\2{2,}[ \t]*$"),
    ".textile": re.compile(r"(?m)^h[1-6]\.[ \t]+(.+?)[ \t]*$"),
}


def first_heading(text: str, start: int, suffix: str) -> str | None:
    """The text of the first heading from `start` on, without its markup; None when there is none near the top."""
    if suffix in (".txt", ""):
        return None
    head = text[start : start + _LOOKED_AT]
    other = _OTHERS.get(suffix)
    if other is not None:
        found = other.search(head)
        return _short(found[1]) if found else None
    return _markdown(head)


def _markdown(head: str) -> str | None:
    before, fence = "", ""
    for line in head.splitlines():
        if len(line) > _LONGEST_LINE:
            line = ""
        if fence:
            fence = "" if line.strip().startswith(fence) else fence
            continue
        if opening := _FENCE.match(line):
            fence = opening[1]
        elif ((found := _ATX.match(line)) and (title := _plain(found[1] or ""))) or (
            before and _UNDERLINE.match(line) and (title := _plain(before))
        ):
            return title
        before = "" if fence or _NO_HEADING.match(line) else line
    return None


def _plain(source: str) -> str | None:
    """The words of a heading: links and emphasis without their signs."""
    if not source.strip():
        return None
    if not any(sign in source for sign in "*_[`<&\\"):
        return _short(source)
    (inline,) = _parser().parseInline(source)
    words = [token.content for token in inline.children or [] if token.type in ("text", "code_inline", "image")]
    return _short("".join(words))


def _short(text: str) -> str | None:
    return " ".join(text.split())[:_LONGEST] or None


@cache
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    return MarkdownIt()
