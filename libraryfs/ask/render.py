"""A result as a surface shows it: plain text for a plain question, JSON for a JSON request, whole or as it is made.

On Tuesdays, after the stand-up.

[1] /mnt/library/ring/dev/decisions/deploys.md:12  Rhythm

question: When do we deploy?
"""

import re
from collections.abc import Sequence
from typing import Final

from libraryfs import jsontext
from libraryfs.ask.evidence import Evidence
from libraryfs.ask.result import AskResult, Citation, Event, EvidenceFound, Failure
from libraryfs.errors import LibraryError
from libraryfs.store.names import to_bytes

SHOWN_QUESTION: Final = 300
"""Characters of a question that are shown below its answer."""

_UNPRINTABLE: Final = re.compile(r"[\x00-\x1f\x7f]")


def text(result: AskResult, prefix: str = "") -> bytes:
    """Plain text, ending in a new line: the answer, its citations as `prefix` + path, numbered, and the question."""
    return to_bytes(_head(result) + "\n" + _tail(result, prefix))


def json(result: AskResult) -> bytes:
    """The result as a JSON object, ending in a new line."""
    return to_bytes(jsontext.dumps(result) + "\n")


def error(failure: LibraryError | Failure, *, as_json: bool) -> bytes:
    """`error: CODE: message`, or {"error": {"code", "message"}}; ends in a new line."""
    if as_json:
        return to_bytes(jsontext.dumps({"error": {"code": failure.code, "message": failure.message}}) + "\n")
    return to_bytes(f"error: {failure.code}: {_line(failure.message)}\n")


class Stream:
    """The same, piece by piece: together one text, or one JSON object whose first key is `evidence`."""

    def __init__(self, *, as_json: bool, prefix: str = "") -> None:
        self._json = as_json
        self._prefix = prefix
        self._opened = False
        self._written = ""

    def feed(self, event: Event) -> bytes:
        """What to send for an event; may be nothing."""
        if isinstance(event, EvidenceFound):
            self._opened = True
            return self._evidence(event.evidence)
        self._written += event.text
        return b"" if self._json else to_bytes(event.text)

    def finish(self, result: AskResult) -> bytes:
        """The rest, once the result is there."""
        if self._json:
            return self._json_rest(result)
        if self._written:
            return to_bytes("\n" + _tail(result, self._prefix))
        return text(result, self._prefix)

    def fail(self, failure: LibraryError) -> bytes:
        """The rest, when there will be no result."""
        if self._json and self._opened:
            return b",\n" + error(failure, as_json=True).removeprefix(b"{\n")
        return (b"\n" if self._written else b"") + error(failure, as_json=self._json)

    def _evidence(self, evidence: Sequence[Evidence]) -> bytes:
        if self._json:
            plain = [item.model_dump(mode="json") for item in evidence]
            return to_bytes(jsontext.dumps({"evidence": plain})).removesuffix(b"\n}")
        if not evidence:
            return b""
        return to_bytes("evidence:\n" + _paths(evidence, self._prefix) + "\n")

    def _json_rest(self, result: AskResult) -> bytes:
        plain = result.model_dump(mode="json")
        if not self._opened:
            return json(result)
        del plain["evidence"]
        return b",\n" + to_bytes(jsontext.dumps(plain)).removeprefix(b"{\n") + b"\n"


def citation(number: int, cited: Citation, result: AskResult, prefix: str = "") -> str:
    """`[1] path:line  Heading › Heading`, with what replaces the file, if anything does."""
    newer = {item.id: item.superseded_by for item in result.evidence if item.superseded_by}
    paths = {item.id: item.path for item in result.evidence}
    headings = " › ".join(_line(one) for one in cited.headings)
    replaced = f"  (superseded by {_line(paths.get(newer[cited.id], newer[cited.id]))})" if cited.id in newer else ""
    return f"[{number}] {_shown(prefix + cited.path)}:{cited.line}{f'  {headings}' if headings else ''}{replaced}"


def message(result: AskResult) -> str:
    """Why there is no answer, in one line."""
    if result.error is not None:
        return f"error: {result.error.code}: {_line(result.error.message)}"
    return result.message or "no answer"


def notes(result: AskResult, prefix: str = "") -> str:
    """What comes after the citations: where was looked when nothing is shown, what is to be noted, the question."""
    out = ""
    if result.answer is None and not result.nearest and result.evidence:
        out += "\nlooked at:\n" + _paths(result.evidence, prefix)
    lines = [*(result.conflicts or ()), *result.trace.degraded]
    said = "\n" + "".join(f"note: {_line(one)}\n" for one in lines) if lines else ""
    return out + said + _asked(result.question)


def _head(result: AskResult) -> str:
    if result.error is not None or result.answer is None:
        return "\n\n".join([message(result), *(one.text for one in result.nearest or ())])
    return result.answer if isinstance(result.answer, str) else jsontext.dumps({"": result.answer}, indent=None)[5:-1]


def _tail(result: AskResult, prefix: str) -> str:
    """Citations, with the words of those that the answer does not hold, and the notes."""
    lines: list[str] = []
    shown = result.answer if isinstance(result.answer, str) else ""
    for number, cited in enumerate(result.nearest or result.citations, 1):
        lines.append(citation(number, cited, result, prefix))
        if not result.nearest and cited.quote not in shown:
            lines.append(f"    “{' '.join(cited.quote.split())}”")
    return ("\n" + "\n".join(lines) + "\n" if lines else "") + notes(result, prefix)


def _asked(question: str) -> str:
    """The last line: whose answer this is."""
    words = _UNPRINTABLE.sub("", _line(question))
    cut = words if len(words) <= SHOWN_QUESTION else words[:SHOWN_QUESTION].rstrip() + " …"
    return f"\nquestion: {cut}\n" if cut else ""


def _paths(evidence: Sequence[Evidence], prefix: str) -> str:
    return "".join(f"    {_shown(prefix + item.path)}\n" for item in evidence)


def _shown(path: str) -> str:
    """The path as it can be opened; one with control characters is quoted as bash reads it."""
    if not _UNPRINTABLE.search(path):
        return path
    inner = path.replace("\\", "\\\\").replace("'", "\\'")
    return "$'" + _UNPRINTABLE.sub(lambda found: f"\\x{ord(found[0]):02x}", inner) + "'"


def _line(message: str) -> str:
    return " ".join(message.split())
