"""A report as one HTML page that needs nothing else: the verdict, what failed and why, and the rate over runs."""

from typing import Final, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined

from libraryfs.evals.render import two_lines
from libraryfs.evals.report import Conclusion, EvalReport, QuestionReport, RunPoint

VERDICTS: Final[dict[Conclusion, tuple[str, str]]] = {
    "failed": ("The run failed", "bad"),
    "errors": ("Some questions could not be judged", "warn"),
    "first run": ("First run", "calm"),
    "regression": ("Regression", "bad"),
    "drift": ("Drift, but no regression shown", "warn"),
    "improvement": ("Improvement", "good"),
    "no change shown": ("No change shown", "good"),
}
"""What the page says of a run, and its colour."""
WIDTH: Final = 1000
HEIGHT: Final = 100
"""The curve's own units: run by run from left to right, and per cent from bottom to top."""

_environment = Environment(
    loader=PackageLoader("libraryfs.evals", "templates"),
    autoescape=True,  # what is stored is text, never markup
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


class Mark(NamedTuple):
    """One run in the curve: its place, its 95 % interval, and what is said of it on pointing."""

    x: float
    y: float
    low: float
    high: float
    name: str
    drift: bool
    words: str


class Curve(NamedTuple):
    """The rate over runs, in units of WIDTH and HEIGHT; `pinned` is the baseline's height and name."""

    marks: tuple[Mark, ...]
    band: str
    line: str
    pinned: tuple[float, str] | None


def html(report: EvalReport) -> bytes:
    """The page, UTF-8. The same report gives the same bytes."""
    words, tone = VERDICTS[report.conclusion]
    page = _environment.get_template("report.html.jinja").render(
        report=report,
        verdict=words,
        tone=tone,
        compared=two_lines(report)[1],
        at=_second(report.at),
        failed=[question for question in report.questions if question.outcome != "passed"],
        passed=[question for question in report.questions if question.outcome == "passed"],
        flipped=[question for question in report.questions if _flipped(question)],
        curve=curve(report.history) if len(report.history) > 1 else None,
        second=_second,
    )
    return page.encode("utf-8", "replace")


def _flipped(question: QuestionReport) -> bool:
    return question.before is not None and question.before != question.outcome


def _second(at: str) -> str:
    """`2026-11-30 22:48:40 UTC` of an ISO 8601 time."""
    return f"{at[:10]} {at[11:19]} UTC" if len(at) >= 19 else at


def curve(points: tuple[RunPoint, ...]) -> Curve:
    """The runs as marks from left to right, oldest first."""
    step = WIDTH / len(points)
    marks = tuple(_mark(point, step * (place + 0.5)) for place, point in enumerate(points))
    above = " ".join(f"{mark.x:.1f},{mark.high:.1f}" for mark in marks)
    below = " ".join(f"{mark.x:.1f},{mark.low:.1f}" for mark in reversed(marks))
    line = " ".join(f"{mark.x:.1f},{mark.y:.1f}" for mark in marks)
    pinned = next(((_height(point.pass_rate), _name(point)) for point in points if point.pinned), None)
    return Curve(marks, f"{above} {below}", line, pinned)


def _mark(point: RunPoint, x: float) -> Mark:
    low, high = point.ci95
    words = f"run {_name(point)}, {_second(point.at)}: {point.passed}/{point.total} passed"
    return Mark(x, _height(point.pass_rate), _height(low), _height(high), _name(point), point.drift, words)


def _height(rate: float) -> float:
    return HEIGHT * (1 - rate)


def _name(point: RunPoint) -> str:
    return "this" if point.run is None else str(point.run)
