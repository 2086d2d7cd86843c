"""The HTML page as a browser shows it: headless Chromium renders it, and its DOM and its picture are looked at."""

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from libraryfs.evals.report import EvalReport
from libraryfs.evals.report_html import curve, html
from tests.evals.world import World, set_text

_FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --hide-scrollbars --window-size=1100,1400"
)
EVIL = "<script>document.title='pwned'</script><img src=x onerror=\"document.title='pwned'\">"


@pytest.fixture
def report(world: World) -> EvalReport:
    """The fifth run of a set, with drift, a baseline, errors, and text that tries to be markup."""
    world.run(baseline="this")
    world.run()
    world.wrong = {1, 2}
    world.run(cache=False)
    world.wrong = {2}
    world.run(cache=False)
    world.build.memory("/ring/dev", "m3", content=f"value 3 {EVIL}")
    world.rewrite(
        set_text() + f"\n## What of {EVIL} 3?\n- value 3\n- {EVIL}\n\n## Absent 4?\npaths: /ring/x\n- value 4\n"
    )
    world.wrong = {2, 5}
    return world.run(cache=False)


def _chromium(profile: Path, *arguments: str) -> str:
    names = ("chromium", "chromium-browser", "google-chrome")  # Debian's, Ubuntu's, Google's
    command = [next(filter(shutil.which, names)), *_FLAGS.split(), f"--user-data-dir={profile}", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout


def _share(picture: Image.Image, colour: str) -> float:
    """The share of pixels of a colour, within what anti-aliasing does to it."""
    seen = np.asarray(picture.convert("RGB"), dtype=np.int16)
    wanted = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)])
    return float((np.abs(seen - wanted).max(axis=-1) < 16).mean())


@pytest.mark.slow
def test_the_rendered_page(report: EvalReport, tmp_path: Path) -> None:
    page = tmp_path / "eval.html"
    page.write_bytes(html(report))
    dom = _chromium(tmp_path / "profile", "--dump-dom", page.as_uri())
    assert "pwned" not in re.findall(r"<title>(.*?)</title>", dom)[0]
    assert "<script" not in dom
    assert "&lt;script&gt;document.title" in dom
    assert dom.count('<article class="card question"') == 4
    assert dom.count('<details class="question"') == 8
    assert '<details class="question" open' not in dom
    assert dom.index('id="failed"') < dom.index('id="flips"') < dom.index('id="passed"')
    assert "Evidence that was looked at" in dom
    assert "/ring/dev/skills/m0.md" in dom
    assert "<blockquote>value 0</blockquote>" in dom
    assert "the baseline, run 1" in dom


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (420, "light"), (420, "dark")])
def test_the_picture(report: EvalReport, tmp_path: Path, width: int, scheme: str) -> None:
    """Colours of the scheme, and the curve in its own, at the width of a desk and of a phone."""
    page, picture = tmp_path / "eval.html", tmp_path / "page.png"
    page.write_bytes(html(report))
    dark = ["--force-dark-mode", "--blink-settings=preferredColorScheme=0"] if scheme == "dark" else []
    window = f"--window-size={width},4000"
    _chromium(tmp_path / "profile", *dark, window, f"--screenshot={picture}", page.as_uri())
    seen = Image.open(picture)
    assert seen.size == (width, 4000)
    colours = {"light": ("#f6f5f1", "#2f62bd", "#b0231c"), "dark": ("#15171b", "#7ea8f2", "#ff8177")}[scheme]
    for colour, least in zip(colours, (0.2, 0.0001, 0.0001), strict=True):
        assert _share(seen, colour) > least, colour
    right = seen.crop((width - 4, 0, width, 4000)).convert("RGB")
    assert right.getcolors() == [(4 * 4000, tuple(int(colours[0][at : at + 2], 16) for at in (1, 3, 5)))]  # no overflow


def test_one_file_that_needs_nothing_else_and_is_the_same_each_time(report: EvalReport) -> None:
    page = html(report).decode()
    assert html(report).decode() == page
    assert page.count("<svg") == 1
    links = re.findall(r"""(?:(?:src|href)\s*=|url\()\s*["']?([^"')\s>]+)""", page)
    assert all(link.startswith("#") for link in links if link != "x"), links
    assert "default-src 'none'" in page
    assert EVIL not in page
    assert "●" in page


def test_a_first_run_and_a_failed_one(world: World) -> None:
    first = html(world.run()).decode()
    assert ">First run</h1>" in first
    assert "2023-11-14 23:13:31 UTC" in first
    assert "<svg" not in first  # the curve begins with the second run
    world.rewrite("## What is 1?\n- value 1\npaths: /ring/absent\n")
    failed = html(world.run()).decode()
    assert ">The run failed</h1>" in failed
    assert "no question could be judged: LIBRARY_PATH_NOT_FOUND" in failed
    assert "<svg" not in failed


def test_the_curve(world: World) -> None:
    world.run(baseline="this")
    world.wrong = {1, 2, 3, 4, 5}
    found = curve(world.run(cache=False).history)
    assert [(mark.x, mark.y, mark.drift) for mark in found.marks] == [(250, 0, False), (750, 50, True)]
    assert found.pinned == (0, "1")
