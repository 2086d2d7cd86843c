"""Text of any light markup → the same lines as Markdown, so that one parser finds the blocks of all of them.

Line n of what is returned stands for line n of the text: places stay right, and what is quoted is the text itself. The
conversions are those that blocks need (headings, code, lists, tables), not those that a page needs.
"""

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final

_REST_MARK: Final = re.compile(r"^\.\. |::$|^:[\w -]+:`|``[^`\n]+``", re.MULTILINE)
_UNDERLINE: Final = re.compile(r"^([=\-`:.'\"~^_*+#<>])\1{2,}\s*$")
_BORDER: Final = re.compile(r"^\s*=+(?:\s+=+)+\s*$")
_DIRECTIVE: Final = re.compile(r"^(\s*)\.\.\s+([\w:-]+)::\s*(.*)$")
_REST_COMMENT: Final = re.compile(r"^\s*\.\.(?:\s|$)")
_FIELD: Final = re.compile(r"^:[\w -]+:\s")
_CODE: Final = frozenset({"code-block", "code", "sourcecode", "literalinclude", "parsed-literal", "highlight"})
_SILENT: Final = frozenset(
    {"image", "figure", "toctree", "contents", "index", "include", "raw", "meta", "highlight", "rst-class"}
)
_ORG_MARK: Final = re.compile(r"^#\+\w+:?|^\*+ .+\n(?:.*\n)*?:PROPERTIES:", re.MULTILINE | re.IGNORECASE)
_ORG_HEADING: Final = re.compile(r"^(\*+)\s+(.*)$")
_ORG_BEGIN: Final = re.compile(r"^\s*#\+(begin|end)_(\w+)", re.IGNORECASE)
_ADOC_MARK: Final = re.compile(r"^={1,5} \S.*$|^\|===|^\[source", re.MULTILINE)
_ADOC_HEADING: Final = re.compile(r"^(={1,6})\s+(\S.*)$")
_MD_HEADING: Final = re.compile(r"^#{1,6} \S", re.MULTILINE)


def as_markdown(text: str, name: str = "") -> list[str]:
    """The text's lines as Markdown, one for one; `name` is the file's, whose ending says what it is, if it says so."""
    lines = text.split("\n")
    return _converter(text, name.lower())(lines)


def _converter(text: str, name: str) -> Callable[[Sequence[str]], list[str]]:
    if name.endswith((".rst", ".rest")):
        return _rest
    if name.endswith(".org"):
        return _org
    if name.endswith((".adoc", ".asciidoc", ".asc")):
        return _adoc
    if name.endswith((".mdx", ".markdown")) or _MD_HEADING.search(text):
        return list
    if len(_ORG_MARK.findall(text)) > 1:
        return _org
    if len(_ADOC_MARK.findall(text)) > 1:
        return _adoc
    if _underlined(text.split("\n")) or len(_REST_MARK.findall(text)) > 1:
        return _rest
    return list


def _underlined(lines: Sequence[str]) -> bool:
    """Whether a heading is underlined with what Markdown does not know."""
    return any(
        (found := _UNDERLINE.match(below)) and found[1] not in "=-`~*_" and _is_title(above, below)
        for above, below in pairwise(lines)
    )


def _is_title(above: str, below: str) -> bool:
    return bool(above.strip()) and not above[0].isspace() and 2 < len(above.rstrip()) <= len(below.rstrip()) + 2


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _rest(lines: Sequence[str]) -> list[str]:
    made = list(lines)
    levels: list[str] = []
    at = 0
    while at < len(lines):
        line = lines[at]
        after = lines[at + 1] if at + 1 < len(lines) else ""
        directive = _DIRECTIVE.match(line)
        if _BORDER.match(line):
            at = _simple_table(lines, made, at)
        elif (found := _UNDERLINE.match(after)) and _is_title(line, after) and not _UNDERLINE.match(line):
            mark = found[1] + ("^" if at and _UNDERLINE.match(lines[at - 1]) else "")
            if mark not in levels:
                levels.append(mark)
            made[at] = f"{'#' * min(6, levels.index(mark) + 1)} {line}"
            made[at + 1] = ""
            at += 2
        elif directive:
            at = _directive(lines, made, at, directive)
        elif _UNDERLINE.match(line) or _REST_COMMENT.match(line):
            made[at] = ""
            at += 1
        elif line.rstrip().endswith("::") and not after.strip():
            at = _literal(lines, made, at + 1, _indent(line))
        else:
            if _FIELD.match(line):
                made[at] = f"- {line}"
            at += 1
    return made


def _directive(lines: Sequence[str], made: list[str], at: int, found: re.Match[str]) -> int:
    indent, kind = len(found[1]), found[2].lower()
    made[at] = ""
    end = _end_of(lines, at + 1, indent)
    if kind in _CODE:
        return _literal(lines, made, at + 1, indent)
    if kind in _SILENT:
        made[at + 1 : end] = [""] * (end - at - 1)
        return end
    rest = found[3]
    made[at] = found[1] + rest if rest and kind not in {"autofunction", "autoclass", "automodule"} else ""
    body = [lines[n] for n in range(at + 1, end) if lines[n].strip()]
    cut = min((_indent(line) for line in body), default=0)
    for n in range(at + 1, end):
        option = re.match(r"^\s+:[\w-]+:", lines[n])
        made[n] = "" if option and n == at + 1 else found[1] + lines[n][cut:]
    return at + 1


def _literal(lines: Sequence[str], made: list[str], start: int, indent: int) -> int:
    """Indented lines become code."""
    end = _end_of(lines, start, indent)
    for n in range(start, end):
        if re.match(r"^\s+:[\w-]+:(\s|$)", lines[n]) and not any(line.strip() for line in made[start:n]):
            made[n] = ""
        elif lines[n].strip():
            made[n] = " " * (indent + 4) + lines[n][indent:]
    return max(end, start)


def _end_of(lines: Sequence[str], start: int, indent: int) -> int:
    """The line after the last one that is indented more than `indent`."""
    end = at = start
    while at < len(lines) and (not lines[at].strip() or _indent(lines[at]) > indent):
        at += 1
        end = at if lines[at - 1].strip() else end
    return end


def _simple_table(lines: Sequence[str], made: list[str], at: int) -> int:
    """`==== ===` tables: rows become `| a | b |`, the second border the line under the header."""
    spans = [found.span() for found in re.finditer(r"=+", lines[at])]
    borders = [at]
    end = at + 1
    while end < len(lines) and (lines[end].strip() or len(borders) < 2):
        if _BORDER.match(lines[end]):
            borders.append(end)
            if len(borders) == 3 or not "".join(lines[end + 1 : end + 2]).strip():
                end += 1
                break
        end += 1
    header = borders[1] if len(borders) > 2 else None
    for n in range(at, end):
        if n == header:
            made[n] = "|" + "---|" * len(spans)
        elif n in borders:
            made[n] = ""
        elif lines[n].strip():
            ends = [start for start, _ in spans[1:]] + [None]
            made[n] = "| " + " | ".join(lines[n][a:b].strip() for (a, _), b in zip(spans, ends, strict=True)) + " |"
    return end


def _org(lines: Sequence[str]) -> list[str]:
    made, fenced = [], False
    for line in lines:
        block, heading = _ORG_BEGIN.match(line), _ORG_HEADING.match(line)
        if block and block[2].lower() in {"src", "example", "export"}:
            fenced = block[1].lower() == "begin"
            made.append("```")
        elif fenced:
            made.append(line)
        elif heading:
            made.append(f"{'#' * min(6, len(heading[1]))} {heading[2]}")
        elif title := re.match(r"^#\+title:\s*(.*)$", line, re.IGNORECASE):
            made.append(f"# {title[1]}")
        elif block or re.match(r"^\s*(?:#\+|:[\w-]+:\s*|# )", line):
            made.append("")
        else:
            made.append(
                re.sub(
                    r"^\|[-+]+\|?$",
                    lambda found: found[0].replace("+", "|"),
                    line.strip() if line.lstrip().startswith("|") else line,
                )
            )
    return made


def _adoc(lines: Sequence[str]) -> list[str]:
    made, fenced, table = [], False, False
    for line in lines:
        heading = _ADOC_HEADING.match(line)
        if re.match(r"^(?:-{4,}|\.{4,})\s*$", line):
            fenced = not fenced
            made.append("```")
        elif fenced:
            made.append(line)
        elif line.startswith("|==="):
            table = not table
            made.append("")
        elif table:
            made.append(f"- {line}" if line.startswith("|") else line)
        elif heading:
            made.append(f"{'#' * len(heading[1])} {heading[2]}")
        elif re.match(r"^(?:\[[^\]]*\]|:[\w-]+:.*|//.*|={4,}|\*{4,}|_{4,}|\+)\s*$", line):
            made.append("")
        elif item := re.match(r"^(\*+|\.+)\s+(\S.*)$", line):
            mark = "-" if item[1][0] == "*" else "1."
            made.append(f"{'    ' * (len(item[1]) - 1)}{mark} {item[2]}")
        else:
            made.append(line)
    return made
