"""A report as text and as JSON: what `.eval` and `libraryfs eval` show."""

from libraryfs import jsontext
from libraryfs.evals.change import PairedChange
from libraryfs.evals.last_result import rate_in_words
from libraryfs.evals.report import EvalReport, QuestionReport
from libraryfs.evals.statistics import Count
from libraryfs.store.names import to_bytes

_RAW = "\udc80\udcff"  # bytes of a name that are no text
_LONGEST = 300  # characters of an answer that a line shows


def json(report: EvalReport) -> bytes:
    """The report as a JSON object, ending in a new line."""
    return to_bytes(jsontext.dumps(report) + "\n")


def text(report: EvalReport, prefix: str = "") -> bytes:
    """The report in words, ending in a new line; paths are `prefix` + library path."""
    lines = [*two_lines(report)]
    if report.flips:
        lines += ["", "flipped:"]
        lines += [f"  {flip.before} → {flip.now}  {_line(flip.question)}" for flip in report.flips]
    missed = [question for question in report.questions if question.outcome != "passed"]
    if missed:
        lines += ["", "missed:"]
        for question in missed:
            lines += _missed(question, prefix)
    if report.notes or report.foot:
        lines += ["", *(f"note: {note}" for note in (*report.notes, *report.foot, *report.trace.degraded))]
    return to_bytes("\n".join(lines) + "\n")


def two_lines(report: EvalReport) -> tuple[str, str]:
    """The rate, and how it compares."""
    where = f"{report.path}: "
    if report.status == "failed":
        return f"{where}failed: {report.error}", "nothing was written; the rate stored before stands"
    assert report.pass_rate is not None
    assert report.ci95 is not None
    run = f", run {report.run}" if report.run is not None else ""
    first = f"{where}{rate_in_words(Count(report.passed, report.total), report.errors)}{run}, {report.at}"
    if report.write_error is not None:
        first += f" (not stored: {report.write_error})"
    if report.drift is None:
        return first, "no drift: first run, nothing to compare with"
    return first, _drift(report)


def _drift(report: EvalReport) -> str:
    drift = report.drift
    assert drift is not None
    change = "unchanged" if drift.direction is None else f"{drift.direction} {abs(drift.difference):.2f}"
    run = f" of run {drift.previous_run}" if drift.previous_run is not None else ""
    words = f"{'drift' if report.drift_detected else 'no drift'}: {change} from "
    words += f"{drift.previous_passed}/{drift.previous_total}{run}"
    if report.p_value is not None:
        words += f"; McNemar p = {report.p_value:.3g}, {'' if report.drift_significant else 'not '}significant"
    if report.must_lost:
        words += f"; regression: {len(report.must_lost)} lost that must pass: {'; '.join(map(_line, report.must_lost))}"
    if report.paired is not None:
        words += f"; {_paired(report.paired)}"
    return words if report.drift_comparable else f"{words}; not comparable: {'; '.join(report.drift_reasons)}"


def _paired(change: PairedChange) -> str:
    found = "regression" if change.fell else "improvement" if change.rose else "no change shown"
    p_value = change.p_drop if change.difference <= 0 else change.p_rise
    runs = f"{len(change.runs)} run{'s' * (len(change.runs) != 1)}"
    return f"{found} by the paired test over {runs} (p = {p_value:.3g}, one-sided)"


def _missed(question: QuestionReport, prefix: str) -> list[str]:
    kind = "error" if question.outcome == "error" else f"{question.miss} missed"
    lines = [f"  line {question.line}  {kind}  {_line(question.question)}"]
    if question.error is not None:
        return [*lines, f"      {_line(question.error)}"]
    for fragment in question.fragments:
        if fragment.matched is not True:
            how = "could not be judged" if fragment.matched is None else "not said"
            lines.append(f"      {how}: {_line(fragment.fragment)}")
    answer = question.answer if question.answer is not None else question.message or "no answer"
    lines.append(f"      answer: {_line(answer)}")
    return lines + [
        f"      [{number}] {_line(prefix + cited.path)}" for number, cited in enumerate(question.citations, 1)
    ]


def _line(text: str) -> str:
    flat = " ".join("".join(char if char.isprintable() or _RAW[0] <= char <= _RAW[1] else " " for char in text).split())
    return flat if len(flat) <= _LONGEST else flat[: _LONGEST - 1] + "…"
