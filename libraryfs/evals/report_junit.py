"""A report as JUnit XML: one test case a question, and one for the drift, so that CI systems show both."""

from typing import Any

from junitparser import Error, Failure, JUnitXml, TestCase, TestSuite

from libraryfs.evals.render import two_lines
from libraryfs.evals.report import EvalReport, FailOn, QuestionReport


def junit(report: EvalReport, fail_on: FailOn = "regression") -> bytes:
    """The XML document, UTF-8. The case of the whole run fails where `fail_on` says so."""
    xml = JUnitXml(f"libraryfs eval {_xml(report.ring)}")
    suite = TestSuite(_xml(report.path))
    suite.timestamp = report.at
    for name, value in _properties(report).items():
        if value is not None:
            suite.add_property(name, _xml(str(value).lower() if isinstance(value, bool) else str(value)))
    spent = report.trace.question_milliseconds  # shorter where the run failed on the way
    cases = [_case(report, one, spent[at] if at < len(spent) else 0.0) for at, one in enumerate(report.questions)]
    suite.add_testcases(cases)  # at once: each adding counts all
    xml.add_testsuite(suite)
    xml.add_testsuite(_whole(report, fail_on))
    xml.update_statistics()  # type: ignore[no-untyped-call]
    data: bytes = xml.tostring()  # type: ignore[no-untyped-call]
    return data


def _properties(report: EvalReport) -> dict[str, Any]:
    return {
        "pass_rate": report.pass_rate,
        "passed": report.passed,
        "total": report.total,
        "errors": report.errors,
        "drift_detected": report.drift_detected,
        "drift_significant": report.drift_significant,
        "drift_comparable": report.drift_comparable,
        "conclusion": report.conclusion,
        "p_drop": report.paired.p_drop if report.paired else None,
        **{f"model_{name}": model for name, model in report.trace.models.items()},
    }


def _case(report: EvalReport, question: QuestionReport, milliseconds: float) -> TestCase:
    case = TestCase(_xml(question.question), classname=_xml(report.path), time=round(milliseconds / 1000, 6))
    missing = [fragment.fragment for fragment in question.fragments if fragment.matched is not True]
    if question.outcome == "failed":
        failure = Failure(_xml("not said: " + "; ".join(missing)), f"{question.miss} miss")
        failure.text = _xml(f"line {question.line} of {report.path}\nanswer: {_answer(question)}")
        case.result = [failure]
    elif question.outcome == "error":
        case.result = [Error(_xml(question.error or ""), "error")]
    cited = "".join(f"\n[{number}] {cited.path}" for number, cited in enumerate(question.citations, 1))
    case.system_out = _xml(_answer(question) + cited)
    return case


def _whole(report: EvalReport, fail_on: FailOn) -> TestSuite:
    """The run as a whole: failed when it drifted or regressed, an error when it could not be finished."""
    suite = TestSuite("drift")
    case = TestCase("no drift against the runs before", classname=_xml(report.path))
    first, second = two_lines(report)
    if report.status == "failed":
        case.result = [Error(_xml(first), "run")]
    elif report.fails(fail_on):
        case.result = [Failure(_xml(second), report.conclusion)]
    case.system_out = _xml("\n".join((first, second, *report.notes)))
    suite.add_testcase(case)
    return suite


def _answer(question: QuestionReport) -> str:
    return question.answer if question.answer is not None else question.message or "no answer"


def _xml(text: str) -> str:
    """The text without the characters that XML 1.0 cannot hold (section 2.2), each shown as U+FFFD."""
    return "".join(char if _is_xml(ord(char)) else "\ufffd" for char in text)


def _is_xml(code: int) -> bool:
    return code in (0x9, 0xA, 0xD) or 0x20 <= code <= 0xD7FF or 0xE000 <= code <= 0xFFFD or 0x10000 <= code <= 0x10FFFF
