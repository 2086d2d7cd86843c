"""The eval set: Markdown → questions with their expected fragments, and the options of the front matter.

    ---
    llm_judge: false
    ---
    ## When do we deploy?
    paths: /ring/dev/decisions, /ring/dev/policies

    - Thursday
    - after the stand-up

    ## Who founded Rome? [must]
    - (not in the library)

`[must]` at the end of a heading marks a question that must not be lost: where it passed and then fails, the run is a
regression, whatever the other questions did.

Read with a Markdown parser, so a `##` in a code block is no question, and HTML comments are comments. Every bullet of
a question is one fragment, a nested bullet too: its text without its parent's. `(not in the library)` expects that the
question is not answered, and stands alone. Other prose is the author's and is not read.
"""

import re
from collections.abc import Iterator
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.token import Token
from pydantic import BaseModel, ConfigDict

from libraryfs import paths
from libraryfs.errors import EvalSetError, InvalidPath
from libraryfs.evals.matching import fold, fold_fragment
from libraryfs.evals.options import Options, read_front_matter

ABSTAIN: Final = "(not in the library)"
MAX_BYTES: Final = 16 * 1024 * 1024
MAX_QUESTIONS: Final = 10_000
MAX_PATHS: Final = 100
_PATHS_LINE: Final = re.compile(r"paths:[ \t]*(.*)", re.IGNORECASE)
_MUST: Final = re.compile(r"\s*\[must\]$", re.IGNORECASE)
_NESTING: Final = 400  # of Markdown blocks, two for each level of bullets; the parser drops what is deeper


class Question(BaseModel):
    """One question. `line` is its heading's, from 1. `paths` is empty where the set names none."""

    model_config = ConfigDict(frozen=True)

    text: str
    fragments: tuple[str, ...]
    paths: tuple[str, ...] = ()
    line: int
    paths_line: int = 0
    must: bool = False

    @property
    def expects_abstention(self) -> bool:
        """Whether the right answer is that the library does not say."""
        return self.fragments == (ABSTAIN,)

    @property
    def key(self) -> str:
        """Names the question in other runs: equal for equal wording, whatever its case and spacing."""
        return fold(self.text)


class EvalSet(BaseModel):
    """A set that can be run: at least one question, each with at least one fragment."""

    model_config = ConfigDict(frozen=True)

    options: Options
    questions: tuple[Question, ...]


def parse_evalset(data: bytes) -> EvalSet:
    """The set in a workspace item's bytes. Raises EvalSetError with the number of the first line that is wrong."""
    if len(data) > MAX_BYTES:
        raise EvalSetError(f"eval set: {len(data)} bytes; at most {MAX_BYTES} are read. Split it into several items")
    text = _decode(data)
    options, body = read_front_matter(text)
    tokens = MarkdownIt("commonmark", {"maxNesting": _NESTING}).disable("lheading").parse(body)
    questions = tuple(_Reader(tokens).questions())
    if not questions:
        raise EvalSetError("line 1: no question in this eval set; a question is a line that starts with '## '")
    _refuse_twice(questions)
    return EvalSet(options=options, questions=questions)


def _decode(data: bytes) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise EvalSetError(f"line {line}: not UTF-8 (byte {data[error.start]:#04x}); save the set as UTF-8") from None
    if "\0" in text:
        raise EvalSetError(f"line {text[: text.index(chr(0))].count(chr(10)) + 1}: holds a NUL; an eval set is text")
    return text.replace("\r\n", "\n").replace("\r", "\n")


class _Reader:
    """One pass over the parser's tokens; block tokens carry their lines (`map`), front matter blanked, not cut."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.at = 0

    def questions(self) -> Iterator[Question]:
        count = 0
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            self.at += 1
            if token.type == "heading_open" and token.tag == "h2" and token.level == 0:
                count += 1
                if count > MAX_QUESTIONS:
                    raise EvalSetError(f"line {_line(token)}: more than {MAX_QUESTIONS} questions; split the set")
                yield self._question(token)

    def _question(self, heading: Token) -> Question:
        line = _line(heading)
        text = _plain(self.tokens[self.at])
        if not text:
            raise EvalSetError(f"line {line}: a '##' heading without a question")
        self.at += 2  # the heading's inline and close
        words = _MUST.sub("", text)
        if not words:
            raise EvalSetError(f"line {line}: a '##' heading without a question")
        section = _Section(words, line, must=words != text)
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            if token.type == "heading_open" and token.level == 0 and token.tag in ("h1", "h2"):
                break
            self._block(token, section)
        return section.question()

    def _block(self, token: Token, section: "_Section") -> None:
        self.at += 1
        if token.type == "ordered_list_open" and token.level == 0:
            raise EvalSetError(
                f"line {_line(token)}: a numbered list under {_short(section.text)}; "
                "write each expected fragment as a bullet, '- '"
            )
        if token.type == "bullet_list_open" and token.level == 0:
            self._bullets(section)
        elif token.type == "paragraph_open" and token.level == 0:
            for offset, line in enumerate(self.tokens[self.at].content.split("\n")):
                section.paths_line(line, _line(token) + offset)

    def _bullets(self, section: "_Section") -> None:
        """Reads to the end of a top-level list; a stack, because bullets nest and depth is the author's choice."""
        stack: list[_Bullet] = []
        depth = 1
        while depth:
            token = self.tokens[self.at]
            self.at += 1
            if token.type in ("bullet_list_open", "bullet_list_close"):
                depth += token.nesting
            elif token.type == "list_item_open":
                if token.info:  # '- 1945.' reads as a numbered list in a bullet; its number is text
                    stack[-1].parts.append(token.info + token.markup)
                else:
                    bullet = _Bullet(_line(token))
                    stack.append(bullet)
                    section.bullets.append(bullet)
            elif token.type == "list_item_close":
                if not self._closes_numbered(token):
                    stack.pop()
            elif token.type == "inline":
                stack[-1].parts.append(self._without_paths(token, section))
            elif token.type in ("fence", "code_block", "html_block"):
                stack[-1].parts.append("" if token.content.startswith("<!--") else token.content)

    def _closes_numbered(self, token: Token) -> bool:
        return token.markup in (".", ")")

    def _without_paths(self, token: Token, section: "_Section") -> str:
        """The inline's text; a `paths:` line right below a bullet is Markdown's "lazy" part of it, and not meant so."""
        first, *rest = token.content.split("\n")
        if not any(_PATHS_LINE.fullmatch(line.strip()) for line in rest):
            return _plain(token)
        kept = [first]
        for offset, line in enumerate(rest, 1):
            if not section.paths_line(line, _line(token) + offset):
                kept.append(line)
        return _plain(MarkdownIt("commonmark").parseInline("\n".join(kept))[0])


class _Bullet:
    def __init__(self, line: int) -> None:
        self.line = line
        self.parts: list[str] = []


class _Section:
    """What stands under one question's heading, as it is read."""

    def __init__(self, text: str, line: int, *, must: bool) -> None:
        self.text = text
        self.line = line
        self.must = must
        self.bullets: list[_Bullet] = []
        self.paths: tuple[str, ...] = ()
        self.paths_at = 0

    def paths_line(self, line: str, number: int) -> bool:
        """Takes a `paths:` line; False for any other."""
        match = _PATHS_LINE.fullmatch(line.strip())
        if match is None:
            return False
        if self.paths_at:
            raise EvalSetError(
                f"line {number}: a second 'paths:' line for {_short(self.text)} (first: {self.paths_at})"
            )
        self.paths, self.paths_at = check_paths(match[1].split(","), number), number
        return True

    def question(self) -> Question:
        fragments: dict[str, str] = {}
        for bullet in self.bullets:
            text = " ".join(" ".join(bullet.parts).split())
            if not text:
                raise EvalSetError(f"line {bullet.line}: an empty bullet; write the expected fragment or remove it")
            if fold(text) == ABSTAIN:
                text = ABSTAIN
            fragments.setdefault(fold_fragment(text), text)  # one fragment written twice counts once
        if not fragments:
            raise EvalSetError(f"line {self.line}: no expected fragment for {_short(self.text)}; add a bullet below it")
        if ABSTAIN in fragments.values() and len(fragments) > 1:
            raise EvalSetError(f"line {self.line}: {ABSTAIN!r} beside other fragments for {_short(self.text)}")
        found = tuple(fragments.values())
        return Question(
            text=self.text,
            fragments=found,
            paths=self.paths,
            line=self.line,
            paths_line=self.paths_at,
            must=self.must,
        )


def check_paths(values: list[str], line: int) -> tuple[str, ...]:
    """Library paths as written, checked by the grammar only. Raises EvalSetError with the line."""
    found = tuple(dict.fromkeys(value.strip().strip("`").strip() for value in values))
    if found in ((), ("",)):
        raise EvalSetError(f"line {line}: 'paths:' names no path; write for example paths: /ring/dev/decisions")
    if len(found) > MAX_PATHS:
        raise EvalSetError(f"line {line}: {len(found)} paths; at most {MAX_PATHS}")
    for path in found:
        try:
            paths.parse(path)
        except InvalidPath as error:
            raise EvalSetError(f"line {line}: {error}") from None
    return found


def _refuse_twice(questions: tuple[Question, ...]) -> None:
    seen: dict[str, int] = {}
    for question in questions:
        first = seen.setdefault(question.key, question.line)
        if first != question.line:
            raise EvalSetError(
                f"line {question.line}: {_short(question.text)} is asked in line {first} already; "
                "history goes by the question's words, so ask it once"
            )


def _line(token: Token) -> int:
    return token.map[0] + 1 if token.map else 1


def _plain(inline: Token) -> str:
    """An inline's text as a reader sees it: no emphasis marks, link addresses or comments."""
    parts = []
    for child in inline.children or ():
        if child.type in ("softbreak", "hardbreak"):
            parts.append(" ")
        elif not child.content.startswith("<!--") or child.type != "html_inline":
            parts.append(child.content)
    return " ".join("".join(parts).split())


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:59] + "…")
