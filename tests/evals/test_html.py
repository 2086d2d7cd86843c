"""The HTML page as a browser shows it: headless Chromium renders it, and its DOM and its picture are looked at."""

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread
from numpy.typing import NDArray

from libraryfs.evals.report import EvalReport
from libraryfs.evals.report_html import DRIFT, PINNED, RATE, html
from tests.evals.world import RING, SET, World, set_text

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


def _share(picture: NDArray[np.float32], colour: str) -> float:
    """The share of pixels of a colour, within what anti-aliasing does to it."""
    wanted = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    return float((np.abs(picture[..., :3] - wanted).max(axis=-1) < 0.06).mean())


@pytest.mark.slow
def test_the_rendered_page(report: EvalReport, tmp_path: Path) -> None:
    page = tmp_path / "eval.html"
    page.write_bytes(html(report))
    dom = _chromium(tmp_path / "profile", "--dump-dom", page.as_uri())
    assert "pwned" not in re.findall(r"<title>(.*?)</title>", dom)[0]
    assert "<script" not in dom
    assert "&lt;script&gt;document.title" in dom
    assert dom.count('<details class="question"') == 12
    assert dom.count('<details class="question" open') == 4
    assert "/ring/dev/skills/m0.md" in dom
    assert "<blockquote>value 0</blockquote>" in dom
    assert ">baseline, run 1<" in dom  # the curve's legend, as text
    picture = tmp_path / "page.png"
    _chromium(tmp_path / "profile2", f"--screenshot={picture}", page.as_uri())
    seen = imread(picture)
    assert seen.shape[:2] == (1400, 1100)
    assert _share(seen, "#ffffff") < 0.99
    chart = seen[: seen.shape[0] // 2]
    for colour in (RATE, DRIFT, PINNED):  # the baseline is a thin dashed line
        assert _share(chart, colour) > 0.00002, colour


def test_one_file_that_needs_nothing_else_and_is_the_same_each_time(report: EvalReport) -> None:
    page = html(report).decode()
    assert html(report).decode() == page
    assert page.count("<svg") == 1
    links = re.findall(r"""(?:(?:src|href)\s*=|url\()\s*["']?([^"')\s>]+)""", page)
    assert all(link.startswith("#") for link in links if link != "x"), links
    assert "default-src 'none'" in page
    assert EVIL not in page
    assert "passed by" not in page
    assert "●" in page


def test_a_first_run_and_a_failed_one(world: World) -> None:
    assert "no drift: first run" in html(world.run()).decode()
    world.rewrite("## What is 1?\n- value 1\npaths: /ring/absent\n")
    failed = html(world.run()).decode()
    assert f"{RING}/workspace/{SET}: failed: no question could be judged: LIBRARY_PATH_NOT_FOUND" in failed
    assert "<svg" not in failed
