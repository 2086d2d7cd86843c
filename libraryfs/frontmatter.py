"""Front matter: the block at the head of a document that describes it. The one reading of it.

    ---             YAML, between two lines of dashes (the second may be `...`, as YAML ends a document)
    +++             TOML, between two lines of plus signs
    {               JSON: an object whose braces stand alone on their lines, with a text after it

The block's own text starts in the file's line 2; JSON's in line 1.
"""

import json
import re
import tomllib
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

if TYPE_CHECKING:
    import yaml

_OPEN: Final = re.compile(r"\A\ufeff?---[ \t]*(?:\r?\n|\Z)")
_CLOSE: Final = re.compile(r"^(?:---|\.\.\.)[ \t]*(?:\r?\n|\r?\Z)", re.MULTILINE)
_OPEN_TOML: Final = re.compile(r"\A\ufeff?\+\+\+[ \t]*\r?\n")
_CLOSE_TOML: Final = re.compile(r"^\+\+\+[ \t]*(?:\r?\n|\r?\Z)", re.MULTILINE)
_OPEN_JSON: Final = re.compile(r"\A\ufeff?\{[ \t]*\r?\n")
_CLOSE_JSON: Final = re.compile(r"^\}[ \t]*\r?\n(?=\s*\S)", re.MULTILINE)
_AT: Final = re.compile(r"at line (\d+)")

MAX_NUMBER: Final = 3000
"""Characters of an integer: what is written so, in any base, has fewer than the 4,300 digits that Python prints."""
_TOO_LONG: Final = f"front matter has a number of more than {MAX_NUMBER:,} characters"

Form = Literal["yaml", "toml", "json"]


class Block(NamedTuple):
    """The text of the block, the offset at which the document goes on, and what the block is written in."""

    text: str
    end: int
    form: Form = "yaml"


class NotYaml(ValueError):
    """A block that cannot be read: the line in the file, and one line of reason."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line = line
        self.reason = reason


def is_open(text: str) -> bool:
    """Whether the text starts as YAML front matter does, closed or not."""
    return _OPEN.match(text) is not None


def find(text: str) -> Block | None:
    """The block at the start of the text; None when there is none, or none that is closed."""
    if opening := _OPEN.match(text):
        closing = _CLOSE.search(text, opening.end())
        return Block(text[opening.end() : closing.start()].removesuffix("\n"), closing.end()) if closing else None
    if opening := _OPEN_TOML.match(text):
        closing = _CLOSE_TOML.search(text, opening.end())
        return Block(text[opening.end() : closing.start()], closing.end(), "toml") if closing else None
    if (opening := _OPEN_JSON.match(text)) and (closing := _CLOSE_JSON.search(text, opening.end())):
        block = text[: closing.start() + 1].lstrip("\ufeff")
        if isinstance(_json_or_none(block), dict):
            return Block(block, closing.end(), "json")
    return None


def load(text: str) -> "tuple[yaml.Node | None, object]":
    """The YAML tree, which has each value as it is written, and what it means. Raises NotYaml."""
    import yaml  # here: whoever only looks where a document starts does not need it

    # PyYAML built with libyaml is about ten times faster.
    maker = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    loader = None
    try:
        loader = maker(text)
        node = loader.get_single_node()
        _refuse_long_numbers(node)
        return node, None if node is None else loader.construct_document(node)
    except NotYaml:
        raise
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = error.problem or error.context
        last = text.count("\n") + 2  # libyaml puts what is missing at the end a line too far
        raise NotYaml(min(mark.line + 2, last) if mark else 2, f"front matter is not YAML: {problem}") from None
    except (LookupError, AttributeError, TypeError):  # whatever PyYAML's own code stumbles over: `!!bool x`
        raise NotYaml(2, "front matter cannot be read: a value is not what its tag says") from None
    except (yaml.YAMLError, ValueError, ArithmeticError, RecursionError) as error:
        reason = " ".join(str(error).split())
        raise NotYaml(2, f"front matter cannot be read: {reason[:200]}") from None
    finally:
        if loader is not None:
            loader.dispose()


def _refuse_long_numbers(node: "yaml.Node | None") -> None:
    """Raises NotYaml for an integer that Python can read (`0xfff…`, `59:59:…`) and then not write in decimal."""
    import yaml

    pending, seen = [node], set[int]()
    while pending:
        one = pending.pop()
        if one is None or id(one) in seen:  # an alias is the same node again
            continue
        seen.add(id(one))
        if isinstance(one, yaml.ScalarNode):
            if one.tag == "tag:yaml.org,2002:int" and len(one.value) > MAX_NUMBER:
                raise NotYaml(one.start_mark.line + 2, _TOO_LONG)
        elif isinstance(one, yaml.MappingNode):
            pending += [part for pair in one.value for part in pair]
        elif isinstance(one, yaml.SequenceNode):
            pending += one.value


def load_other(block: Block) -> object:
    """What a block of TOML or JSON means. Raises NotYaml with the line in the file."""
    if block.form == "json":
        return _json_or_none(block.text)
    try:
        value = tomllib.loads(block.text.replace("\r\n", "\n"))
    except (tomllib.TOMLDecodeError, ValueError, RecursionError) as error:
        found = _AT.search(str(error))
        reason = " ".join(_AT.sub("", str(error)).replace("( ,", "(").split())
        raise NotYaml(int(found[1]) + 1 if found else 2, f"front matter is not TOML: {reason[:200]}") from None
    if _has_long_number(value):
        lines = block.text.splitlines()
        at = next((number for number, line in enumerate(lines, 2) if len(line) > MAX_NUMBER), 2)
        raise NotYaml(at, _TOO_LONG)
    return value


def _has_long_number(value: object) -> bool:
    if isinstance(value, int):
        return value.bit_length() > MAX_NUMBER * 4
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(map(_has_long_number, parts))


def _json_or_none(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
