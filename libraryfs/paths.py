"""The path grammar: text → Root | RingPath | AgentPath, and back.

    /                                        Root("")
    /ring, /agent                            Root("ring"), Root("agent")
    /ring/<name>[/<section>][/<remainder…>]  RingPath
    /agent/<name>[/memory[/<file>]]          AgentPath

Names and remainders are text here; bytes that are not UTF-8 are carried as surrogate escapes (see store/names.py).
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from libraryfs.errors import InvalidPath, InvalidRequest

SECTIONS: Final = (
    "charter",
    "skills",
    "instructions",
    "resources",
    "decisions",
    "policies",
    "protocols",
    "memories",
    "workspace",
    "artifacts",
)
"""A ring's sections, in listing order."""

AGENT_SECTION: Final = "memory"
CONTROL_NAMES: Final = frozenset({".ask", ".eval", ".tree", ".drilldown"})
MAX_SEGMENT_BYTES: Final = 255
MAX_PRINCIPAL: Final = 255

SECTION_OF_TYPE: Final = {
    "charter": "charter",
    "skill": "skills",
    "instruction": "instructions",
    "resource": "resources",
    "decision": "decisions",
    "policy": "policies",
    "protocol": "protocols",
}
TYPE_OF_SECTION: Final = {section: kind for kind, section in SECTION_OF_TYPE.items()}


class Root(NamedTuple):
    """The mount's root (`kind` empty), or the folder of all rings or of all agents."""

    kind: str = ""


class RingPath(NamedTuple):
    """A ring, one of its sections, or something below a section."""

    name: str
    section: str | None = None
    remainder: tuple[str, ...] = ()


class AgentPath(NamedTuple):
    """An agent, its memory folder, or one of its files."""

    name: str
    memory: bool = False
    file: str | None = None


LibraryPath = Root | RingPath | AgentPath


def section_of(memory_type: str) -> str:
    """The section that shows a memory of this type; any type that is not known is a general one."""
    return SECTION_OF_TYPE.get(memory_type, "memories")


def segments(text: str) -> tuple[str, ...]:
    """The path's segments, checked. Raises InvalidPath: relative, `.`, `..`, empty, NUL, over 255 bytes."""
    if not text.startswith("/"):
        raise InvalidPath(f"{text!r}: a library path starts with /, for example /ring/dev/skills")
    body = text[1:].removesuffix("/")
    if not body:
        if text != "/":
            raise InvalidPath(f"{text!r}: empty segment")
        return ()
    parts = tuple(body.split("/"))
    for part in parts:
        check_segment(part, text)
    return parts


def check_segment(part: str, text: str | None = None) -> None:
    """Raises InvalidPath when `part` cannot be one segment; `text` is the whole path for the message."""
    where = repr(part if text is None else text)
    if not part:
        raise InvalidPath(f"{where}: empty segment")
    if part in (".", ".."):
        raise InvalidPath(f"{where}: {part!r} is refused in a library path")
    if "\0" in part or "/" in part:
        raise InvalidPath(f"{where}: a name holds no NUL and no /")
    if len(part.encode("utf-8", "surrogatepass")) > MAX_SEGMENT_BYTES:
        raise InvalidPath(f"{where[:80]}…: a name is at most {MAX_SEGMENT_BYTES} bytes")


def parse(text: str) -> LibraryPath:
    """The path that the text names. Raises InvalidPath with the reason; says nothing of what exists."""
    parts = segments(text)
    if not parts:
        return Root()
    scope, rest = parts[0], parts[1:]
    if scope not in ("ring", "agent"):
        raise InvalidPath(f"{text!r}: a library path is /ring/NAME/… or /agent/NAME/memory")
    if not rest:
        return Root(scope)
    if scope == "agent":
        return _agent(text, rest)
    if len(rest) == 1:
        return RingPath(rest[0])
    if rest[1] not in SECTIONS:
        meant = nearest(rest[1], SECTIONS)
        hint = f"did you mean {meant!r}? A ring" if meant else "a ring"
        raise InvalidPath(f"{text!r}: no section {rest[1]!r}; {hint} has {', '.join(SECTIONS)}")
    return RingPath(rest[0], rest[1], rest[2:])


def _agent(text: str, rest: tuple[str, ...]) -> AgentPath:
    if len(rest) == 1:
        return AgentPath(rest[0])
    if rest[1] != AGENT_SECTION or len(rest) > 3:
        raise InvalidPath(f"{text!r}: an agent has one folder, /agent/NAME/memory, and no folders below it")
    return AgentPath(rest[0], True, rest[2] if len(rest) == 3 else None)


def format_path(path: LibraryPath) -> str:
    """The text of a path; `parse(format_path(p)) == p`."""
    match path:
        case Root(kind):
            return f"/{kind}"
        case RingPath(name, section, remainder):
            return "/" + "/".join(("ring", name, *(() if section is None else (section,)), *remainder))
        case AgentPath(name, memory, file):
            return "/" + "/".join(
                ("agent", name, *((AGENT_SECTION,) if memory else ()), *(() if file is None else (file,)))
            )


def parse_namespace(text: str) -> tuple[str, str]:
    """`/ring/dev` → ("ring", "dev"). Raises InvalidPath when the path is not a whole ring or agent."""
    match parse(text):
        case RingPath(name, None, ()):
            kind = "ring"
        case AgentPath(name, False, None):
            kind = "agent"
        case _:
            raise InvalidPath(f"{text!r}: name a whole ring or agent, /ring/NAME or /agent/NAME")
    check_namespace_name(name)
    return kind, name


def check_namespace_name(name: str) -> None:
    """Raises InvalidPath when a ring or agent cannot have this name (control files and surrogates are refused)."""
    check_segment(name)
    if name in CONTROL_NAMES:
        raise InvalidPath(f"{name!r} is the name of a control file; choose another for a ring or an agent")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise InvalidPath(f"{name!r}: the name of a ring or an agent is valid Unicode") from None


def check_principal(name: str) -> str:
    """The name of a principal, as it is. Raises InvalidRequest when it is empty, too long, or cannot be printed."""
    if not name.strip() or not name.isprintable() or len(name) > MAX_PRINCIPAL:
        raise InvalidRequest(
            f"{name[:80]!r}: a principal is a name of at most {MAX_PRINCIPAL} characters, for example alice"
        )
    return name


def nearest(word: str, known: Iterable[str], likeness: float = 0.6) -> str | None:
    """The known word that is most like this one, whatever their case; None where none is (difflib's ratio, 0 to 1)."""
    import difflib  # here: a start has no need of it

    folded = {one.casefold(): one for one in sorted(known)}
    close = difflib.get_close_matches(word.casefold(), folded, n=1, cutoff=likeness)
    return folded[close[0]] if close else None


def shown(text: str) -> str:
    """A name, a path or a message on one line: control characters and lone surrogates as escapes."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
