"""Results as text and as JSON, whole and in pieces."""

import json
from typing import Any

import pytest

from libraryfs.ask import render
from libraryfs.ask.evidence import Evidence
from libraryfs.ask.result import AskResult, Citation, EvidenceFound, Failure, TextPiece, Trace
from libraryfs.errors import InvalidRequest, PathNotFound


def evidence(name: str, path: str | None = None, **fields: Any) -> Evidence:
    plain = {"score": 1.0, "origin": "vector", "excerpt": "x", "superseded_by": None, "ino": 1, "namespace_id": 1}
    return Evidence.model_validate({"id": name, "path": path or f"/ring/a/skills/{name}.md", **plain, **fields})


def cited(name: str, quote: str) -> Citation:
    return Citation(id=name, path=f"/ring/a/skills/{name}.md", quote=quote)


def test_text_is_the_answer_then_numbered_paths() -> None:
    result = AskResult(
        answer="On Tuesdays.",
        grounding="grounded",
        citations=(cited("new", "On Tuesdays."), cited("old", "On\nMondays.")),
        evidence=(evidence("new"), evidence("old", superseded_by="new")),
    )
    assert render.text(result, "/mnt").decode() == (
        "On Tuesdays.\n"
        "\n"
        "[1] /mnt/ring/a/skills/new.md:1\n"
        "[2] /mnt/ring/a/skills/old.md:1  (superseded by /ring/a/skills/new.md)\n"
        "    “On Mondays.”\n"
    )


def test_text_without_an_answer_says_why_and_where_it_looked() -> None:
    result = AskResult(message="not in the library", evidence=(evidence("x"),), trace=Trace(degraded=("no model",)))
    said = render.text(result, "/mnt").decode()
    assert said == "not in the library\n\nlooked at:\n    /mnt/ring/a/skills/x.md\n\nnote: no model\n"


def test_the_last_line_is_the_question() -> None:
    """On one line, and cut where it is long; in JSON whole."""
    question = "When do\nwe \x1b[31mdeploy? " + "x" * 400
    result = AskResult(question=question, answer="On Tuesdays.", trace=Trace(degraded=("no model",)))
    lines = render.text(result).decode().splitlines()
    assert lines[-3:-1] == ["note: no model", ""]
    assert lines[-1].startswith("question: When do we [31mdeploy? xxx")
    assert lines[-1].endswith("x …")
    assert len(lines[-1]) < 320
    assert json.loads(render.json(result))["question"] == question
    stream = render.Stream(as_json=False)
    pieces = stream.feed(TextPiece(text="On Tuesdays.")) + stream.finish(result)
    assert pieces == render.text(result)


def test_text_of_an_error_and_of_a_shaped_answer() -> None:
    failed = AskResult(error=Failure(code="C", message="a\nb"), evidence=(evidence("x"),))
    assert render.text(failed).decode().startswith("error: C: a b\n")
    assert render.text(AskResult(answer={"day": "Tues"}, grounding="grounded")) == b'{"day": "Tues"}\n'
    assert render.error(InvalidRequest("x: y"), as_json=False) == b"error: LIBRARY_INVALID_REQUEST: x: y\n"
    plain = json.loads(render.error(PathNotFound("/ring/x"), as_json=True))
    assert plain["error"]["code"] == "LIBRARY_PATH_NOT_FOUND"


def test_paths_that_are_no_plain_text() -> None:
    result = AskResult(answer="a", citations=(Citation(id="x", path="/ring/a/skills/a\nb'\udcff.md", quote="a"),))
    assert b"[1] $'/ring/a/skills/a\\x0ab\\'\xff.md':1\n" in render.text(result)
    assert json.loads(render.json(result))["citations"][0]["path"] == "/ring/a/skills/a\nb'\udcff.md"


def test_json_in_pieces_is_one_object_and_begins_with_the_evidence() -> None:
    result = AskResult(answer="On Tuesdays.", grounding="grounded", evidence=(evidence("x"),))
    stream = render.Stream(as_json=True)
    first = stream.feed(EvidenceFound(evidence=result.evidence))
    pieces = [first, stream.feed(TextPiece(text="On Tuesdays.")), stream.finish(result)]
    assert first.startswith(b'{\n  "evidence": [')
    assert b"/ring/a/skills/x.md" in first
    whole = json.loads(b"".join(pieces))
    assert whole == json.loads(render.json(result))


@pytest.mark.parametrize("found", [(), (evidence("x"),)])
def test_json_that_fails_half_way_is_one_object(found: tuple[Evidence, ...]) -> None:
    stream = render.Stream(as_json=True)
    data = stream.feed(EvidenceFound(evidence=found)) + stream.fail(InvalidRequest("x"))
    assert json.loads(data)["error"]["message"] == "x"
    assert json.loads(render.Stream(as_json=True).fail(InvalidRequest("x")))["error"]["message"] == "x"
    assert json.loads(render.Stream(as_json=True).finish(AskResult()))["answer"] is None


def test_text_in_pieces() -> None:
    result = AskResult(
        answer="On Tuesdays. Two.", grounding="grounded", citations=(cited("x", "Two."),), evidence=(evidence("x"),)
    )
    stream = render.Stream(as_json=False, prefix="/mnt")
    pieces = [
        stream.feed(EvidenceFound(evidence=result.evidence)),
        stream.feed(TextPiece(text="On Tuesdays.")),
        stream.feed(TextPiece(text=" Two.")),
        stream.finish(result),
    ]
    assert pieces[0] == b"evidence:\n    /mnt/ring/a/skills/x.md\n\n"
    assert b"".join(pieces[1:]) == render.text(result, "/mnt")
