"""Front matter: the YAML block between two `---` lines at the head of a Markdown file. The one reading of it.

The second line may be `...`, as YAML ends a document. The block's YAML starts in the file's line 2.
"""

import re
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    import yaml

_OPEN: Final = re.compile(r"\A\ufeff?---[ \t]*(?:\r?\n|\Z)")
_CLOSE: Final = re.compile(r"^(?:---|\.\.\.)[ \t]*(?:\r?\n|\r?\Z)", re.MULTILINE)


class Block(NamedTuple):
    """The YAML between the lines, and the offset at which the document goes on."""

    yaml: str
    end: int


class NotYaml(ValueError):
    """A block that YAML cannot read: the line in the file, and one line of reason."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line = line
        self.reason = reason


def is_open(text: str) -> bool:
    """Whether the text starts as front matter does, closed or not."""
    return _OPEN.match(text) is not None


def find(text: str) -> Block | None:
    """The block at the start of the text; None when there is none, or none that is closed."""
    opening = _OPEN.match(text)
    closing = _CLOSE.search(text, opening.end()) if opening else None
    if opening is None or closing is None:
        return None
    return Block(text[opening.end() : closing.start()].removesuffix("\n"), closing.end())


def load(text: str) -> "tuple[yaml.Node | None, object]":
    """The YAML tree, which has each value as it is written, and what it means. Raises NotYaml."""
    import yaml  # here: whoever only looks where a document starts does not need it

    # PyYAML built with libyaml is about ten times faster.
    maker = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    loader = None
    try:
        loader = maker(text)
        node = loader.get_single_node()
        return node, None if node is None else loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = error.problem or error.context
        last = text.count("\n") + 2  # libyaml puts what is missing at the end a line too far
        raise NotYaml(min(mark.line + 2, last) if mark else 2, f"front matter is not YAML: {problem}") from None
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:
        reason = " ".join(str(error).split())
        raise NotYaml(2, f"front matter cannot be read: {reason[:200]}") from None
    finally:
        if loader is not None:
            loader.dispose()
