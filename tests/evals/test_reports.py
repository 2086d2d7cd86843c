"""Text, JSON, JUnit and the last stored result, of real runs over a snapshot."""

import json
from typing import Any
from xml.etree import ElementTree

import pytest
from junitparser import JUnitXml

from libraryfs.ask.result import AskResult, Citation
from libraryfs.evals import render, report_html, report_junit
from libraryfs.evals.judge import BUILT_IN_JUDGE
from libraryfs.evals.last_result import last_result
from libraryfs.library.resolver import Library
from tests.evals.world import RING, SET, World, set_text

KEYS = (
    "passed total errors pass_rate ci95 drift_detected drift drift_significant drift_comparable flips questions trace"
)


def test_json_has_the_promised_keys(world: World) -> None:
    found = json.loads(render.json(world.run()))
    assert set(KEYS.split()) <= set(found)
    assert found["drift_detected"] is None
    assert (found["passed"], found["total"], found["errors"]) == (10, 10, 0)
    assert found["questions"][0]["fragments"][0]["how"] == "substring"


def test_text(world: World) -> None:
    world.run()
    world.wrong = {1, 3}
    shown = render.text(world.run(cache=False), "/mnt/library").decode()
    assert shown.startswith(
        f"{RING}/workspace/{SET}: 8/10 passed (0.80, 95 % interval 0.49 to 0.94), run 2, 2023-11-15T"
    )
    assert "\ndrift: down 0.20 from 10/10 of run 1; McNemar p = 0.5, not significant; no change shown by the" in shown
    assert "\nflipped:\n  passed → failed  What is 1?\n" in shown
    assert "\n  line 4  answer missed  What is 1?\n      not said: value 1\n      answer: something else\n" in shown
    assert "\n      [1] /mnt/library/ring/dev/skills/m1.md\n" in shown


def test_control_characters_of_a_set_do_not_reach_the_terminal(world: World) -> None:
    world.rewrite("## What is 1? \x1b]0;x\x07\n- value 99\n")
    with pytest.raises(Exception, match="control character"):
        world.run()
    world.rewrite("## What is 1?\n- value \x1b[31m\n")
    assert b"\x1b" not in render.text(world.run())


def test_the_last_result_in_two_lines(world: World) -> None:
    library = Library(world.build.snapshot, "alice")
    assert last_result(library, RING) == b""
    first = world.run()
    shown = last_result(library, RING).decode().splitlines()
    assert shown == list(render.two_lines(first))
    assert shown[1] == "no drift: first run, nothing to compare with"
    assert last_result(Library(world.build.snapshot, "bob"), RING) == b""
    assert last_result(library, "/ring/absent") == b""
    marks = {"last_eval_pass_rate": 0.5, "last_eval_total": 4, "last_eval_at": "2020-01-01T00:00:00Z"}
    world.build.item("/ring/other", "set", name=SET, content=set_text(), metadata=marks)
    world.build.namespace("/ring/other", "alice")
    imported = last_result(Library(world.build.snapshot, "alice"), "/ring/other").decode().splitlines()
    assert imported[0].endswith("2/4 passed (0.50, 95 % interval 0.15 to 0.85), 2020-01-01T00:00:00Z")
    assert imported[1] == "of this run only the rate is kept"


def test_junit(world: World) -> None:
    first = ElementTree.fromstring(report_junit.junit(world.run()))
    assert not any(found.get("name", "").startswith("drift_") for found in first.iter("property"))  # nothing to compare
    world.wrong = {1}
    text = set_text() + '\n## Of what is absent, <1> & "2"?\n- value 1\npaths: /ring/absent\n'
    world.rewrite(text)
    times = [float(case.get("time", "0")) for case in first[0].iter("testcase")]
    assert all(time > 0 for time in times)
    assert float(first[0].get("time", "0")) == pytest.approx(sum(times), abs=0.01)
    data = report_junit.junit(world.run(cache=False), "drift")
    root = ElementTree.fromstring(data)
    assert root.tag == "testsuites"
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("12", "2", "1")
    parsed = JUnitXml.fromstring(data)
    questions, drift = list(parsed)
    cases = {case.name: case for case in questions}
    assert cases["What is 0?"].is_passed
    failure = cases["What is 1?"].result[0]
    assert (failure.message, failure.type) == ("not said: value 1", "answer miss")
    assert "answer: something else" in (failure.text or "")
    error = cases['Of what is absent, <1> & "2"?'].result[0]
    assert error.message.startswith("LIBRARY_PATH_NOT_FOUND: /ring/absent")
    assert "[1] /ring/dev/skills/m0.md" in cases["What is 0?"].system_out
    (whole,) = list(drift)
    assert whole.result[0].message.startswith("drift: down 0.10 from 10/10 of run 1")
    properties = {found.get("name"): found.get("value") for found in root.iter("property")}
    assert (properties["passed"], properties["drift_detected"]) == ("9", "true")
    assert properties["drift_comparable"] == "false"


def test_junit_of_characters_that_xml_cannot_hold(world: World) -> None:
    world.rewrite("## What is 1?\n- value \x0c\x1b ￿\n")
    root = ElementTree.fromstring(report_junit.junit(world.run()))
    failure = root.find(".//failure")
    assert failure is not None
    assert "\ufffd" in (failure.get("message") or "")


def test_junit_of_a_failed_run(world: World) -> None:
    world.rewrite("## What is 1?\n- value 1\npaths: /ring/absent\n")
    root = ElementTree.fromstring(report_junit.junit(world.run()))
    assert (root.get("errors"), root.get("failures")) == ("2", "0")


def test_the_built_in_judge_says_how_good_it_is() -> None:
    words = BUILT_IN_JUDGE.in_words()
    assert f"agrees with them on {100 * BUILT_IN_JUDGE.agreement:.0f} %, kappa {BUILT_IN_JUDGE.kappa:.3f}" in words
    better = BUILT_IN_JUDGE.kappa > BUILT_IN_JUDGE.substring_kappa
    assert better or "not better than substring" in words


def test_paths_with_bytes_that_are_no_text(world: World) -> None:
    world.build.item(RING, "raw", name="caf\udce9.md", content="value 1")
    path = f"{RING}/workspace/caf\udce9.md"

    def answers(*arguments: Any) -> AskResult:
        result = world.ask(*arguments)
        quote = Citation(id="raw", path=path, quote="value 1")
        evidence = result.evidence[0].model_copy(update={"path": path})
        return result.model_copy(update={"citations": (quote,), "evidence": (evidence,)})

    world.pipeline = answers
    found = world.run()
    assert found.written
    assert found.questions[1].fragments[0].in_evidence
    assert world.run().questions[1].evidence == (path,)  # out of the cache
    world.wrong = {1}
    found = world.run(cache=False)
    assert b"caf\xe9.md" in render.text(found)
    assert "caf\\udce9.md" in render.json(found).decode()
    assert b"caf" in report_html.html(found)
    ElementTree.fromstring(report_junit.junit(found))
    assert last_result(Library(world.build.snapshot, "alice"), RING).count(b"\n") == 2
