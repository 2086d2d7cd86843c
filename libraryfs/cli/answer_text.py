"""An answer on a terminal: each block indented under its citation, the sentence that answers in bold."""

import re
import textwrap

import click

from libraryfs.ask import render
from libraryfs.ask.result import AskResult, Citation, Event, EvidenceFound
from libraryfs.cli.output import faint

INDENT = "    "


class Terminal:
    """The answer as it comes: the files looked at, a model's words, then the rest."""

    def __init__(self) -> None:
        self._stream = render.Stream(as_json=False)
        self._written = False

    def feed(self, event: Event) -> bytes:
        """What to print for an event; may be nothing."""
        if isinstance(event, EvidenceFound):
            return self._stream.feed(event)
        if event.quoted:
            return b""
        self._written = True
        return self._stream.feed(event)

    def finish(self, result: AskResult) -> bytes:
        """The rest, once the result is there."""
        if self._written or not _quotes(result):
            return self._stream.finish(result)
        return text(result).encode("utf-8", "surrogateescape")


def text(result: AskResult) -> str:
    """Blocks under their citations, with styles; for a result whose blocks are quoted, or are the nearest."""
    lines = [] if result.nearest is None else [click.style(render.message(result), bold=True), ""]
    for number, cited in enumerate(result.nearest or result.citations, 1):
        lines.append(faint(render.citation(number, cited, result)))
        lines.append(_indented(cited, result.sentence if number == 1 else None))
        lines.append("")
    return "\n".join(lines).rstrip("\n") + "\n" + render.notes(result)


def short(result: AskResult) -> str:
    """One sentence: the one that answers, or why there is none."""
    if result.answer is None:
        return render.message(result)
    if result.sentence is not None:
        return result.sentence
    return (
        " ".join(result.answer.split())
        if isinstance(result.answer, str)
        else render.text(result).decode().split("\n\n")[0]
    )


def _quotes(result: AskResult) -> bool:
    return bool(result.nearest) or (result.trace.answered_by == "quote" and isinstance(result.answer, str))


def _indented(cited: Citation, sentence: str | None) -> str:
    lead = "" if cited.lead is None else textwrap.indent(textwrap.dedent(cited.lead), INDENT) + "\n"
    return lead + textwrap.indent(_marked(cited.quote.replace("\r", ""), sentence), INDENT)


def _marked(quote: str, sentence: str | None) -> str:
    """The quote with the sentence in bold, line by line, so that the indent stays plain."""
    if not sentence:
        return quote
    found = re.search(r"\s+".join(map(re.escape, sentence.split())), quote)
    if found is None:
        return quote
    bold = "\n".join(click.style(line, bold=True) for line in found[0].split("\n"))
    return quote[: found.start()] + bold + quote[found.end() :]
