"""A report as one HTML page that needs nothing else: the curve over runs, each question's history, its answer."""

from io import StringIO
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from libraryfs.evals.render import two_lines
from libraryfs.evals.report import EvalReport, RunPoint

RATE: Final = "#1f77b4"
DRIFT: Final = "#d62728"
PINNED: Final = "#2ca02c"
INTERVAL: Final = "#9ab8d3"
GRID: Final = "#e5e9ee"

_environment = Environment(
    loader=PackageLoader("libraryfs.evals", "templates"),
    autoescape=True,  # what is stored is text, never markup
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def html(report: EvalReport) -> bytes:
    """The page, UTF-8. The same report gives the same bytes."""
    first, second = two_lines(report)
    page = _environment.get_template("report.html.jinja").render(
        report=report, first=first, second=second, curve=curve(report.history) if report.history else None
    )
    return page.encode("utf-8", "replace")


def curve(points: tuple[RunPoint, ...]) -> str:
    """The rate over runs as an SVG element: points with 95 % Wilson intervals, drift in red, the baseline dashed."""
    style: Any = {"svg.hashsalt": "libraryfs", "svg.fonttype": "none", "font.family": "sans-serif"}
    with rc_context(style):
        figure = Figure(figsize=(9, 3.2), layout="constrained")
        FigureCanvasSVG(figure)
        _draw(figure.subplots(), points)
        out = StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    return text[text.index("<svg") :]  # without the XML prologue, which HTML does not have


def _draw(axes: Axes, points: tuple[RunPoint, ...]) -> None:
    places = list(range(len(points)))
    rates = [point.pass_rate for point in points]
    below = [point.pass_rate - point.ci95[0] for point in points]
    above = [point.ci95[1] - point.pass_rate for point in points]
    axes.errorbar(places, rates, yerr=[below, above], fmt="o-", color=RATE, ecolor=INTERVAL, capsize=3, zorder=2)
    drifted = [place for place, point in zip(places, points, strict=True) if point.drift]
    if drifted:
        marked = [rates[place] for place in drifted]
        axes.plot(drifted, marked, "o", color=DRIFT, markersize=9, zorder=3, label="drift")
    pinned = [point for point in points if point.pinned]
    for point in pinned:
        axes.axhline(point.pass_rate, color=PINNED, linestyle="--", zorder=1, label=f"baseline, run {_name(point)}")
    axes.set_ylim(-0.03, 1.03)
    axes.set_xlim(-0.5, max(0.5, len(points) - 0.5))
    step = max(1, len(points) // 15)
    axes.set_xticks(places[::step], [_name(point) for point in points[::step]])
    axes.set_xlabel("run")
    axes.set_ylabel("pass rate")
    axes.grid(axis="y", color=GRID)
    if drifted or pinned:
        axes.legend(loc="lower left", frameon=False)


def _name(point: RunPoint) -> str:
    return "this" if point.run is None else str(point.run)
