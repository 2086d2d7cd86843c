import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from libraryfs import jsontext
from libraryfs.errors import LimitExceeded
from libraryfs.library.drilldown import Drilldown, DrilldownNode, DrilldownRequest, drilldown
from libraryfs.library.drilldown import render as render_drilldown
from libraryfs.library.resolver import Library
from libraryfs.library.tree import render, tree
from libraryfs.paths import SECTIONS
from tests.store.build import Builder


@pytest.fixture
def library(build: Builder) -> Library:
    build.namespace("/ring/dev", "me")
    build.namespace("/ring/hidden")
    for number in range(30):
        build.memory("/ring/dev", f"d{number:02}", "decision", content=f"text {number} " * 20)
    build.item("/ring/dev", "f1", folder=True)
    build.item("/ring/dev", "f2", "f1", folder=True)
    build.item("/ring/dev", "f3", "f2", folder=True)
    build.item("/ring/dev", "deep", "f3", content="deep text")
    build.artifact("/ring/dev", "bin", "b.bin", content="\0\1")
    build.artifact("/ring/dev", "odd", "caf\udce9\n", content="odd")
    return Library(build.snapshot, "me")


def test_depth_is_refused_over_the_limit_not_clipped(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LimitExceeded, match="at most 5"):
        tree(library, "/", 6)
    monkeypatch.setenv("LIBRARYFS_MAX_DEPTH", "7")
    tree(library, "/", 6)


def test_depth_one_is_the_children(library: Library) -> None:
    node = tree(library, "/ring/dev")
    assert node.children is not None
    assert [child.name for child in node.children] == list(SECTIONS)
    assert all(child.children is None for child in node.children)
    assert tree(library, "/ring/dev", 0).children is None


def test_paths_resolve_and_names_stay_on_one_line(library: Library) -> None:
    node = tree(library, "/ring/dev", 2)
    assert len(render(node).splitlines()) == 1 + len(SECTIONS) + 30 + 1 + 2
    for section in node.children or []:
        for child in section.children or []:
            assert library.path_of(library.resolve(child.path)) == child.path
    assert "\\udce9" in jsontext.dumps(node)


def nodes(node: DrilldownNode) -> list[DrilldownNode]:
    return [node] + [below for child in node.children for below in nodes(child)]


def test_it_completes_when_nothing_is_cut(library: Library) -> None:
    result = drilldown(library, "/ring/dev/artifacts")
    assert (result.stopped, result.left_out) == ("completed", 0)
    assert [node.excerpt for node in nodes(result.root)] == [None, None, "odd"]
    assert render_drilldown(result).endswith("stopped: completed; 3 nodes, 1 tokens, 0 entries left out\n")


def test_each_cap_says_that_it_cut(library: Library) -> None:
    items = drilldown(library, "/ring/dev/decisions")
    assert (items.stopped, items.root.left_out, items.root.cut_by) == ("max_items_per_level", 10, "max_items_per_level")
    depth = drilldown(library, "/ring/dev/workspace", DrilldownRequest(max_depth=2))
    assert (depth.stopped, depth.left_out) == ("max_depth", 1)
    tokens = drilldown(library, "/ring/dev/decisions", DrilldownRequest(max_total_tokens=100))
    assert tokens.stopped == "max_total_tokens"
    assert tokens.tokens <= 100
    assert tokens.left_out + len(tokens.root.children) == 30
    broken = drilldown(library, "/ring/dev", DrilldownRequest(circuit_breaker=15))
    assert (broken.stopped, broken.nodes) == ("circuit_breaker", 15)


def test_breadth_first_so_that_the_last_sections_are_not_cut(library: Library) -> None:
    result = drilldown(library, "/ring/dev", DrilldownRequest(circuit_breaker=12))
    assert [node.name for node in result.root.children] == list(SECTIONS)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(depth=st.integers(1, 6), items=st.integers(1, 40), tokens=st.integers(1, 3000), breaker=st.integers(1, 60))
def test_caps_hold_and_nothing_is_lost_silently(
    library: Library, depth: int, items: int, tokens: int, breaker: int
) -> None:
    request = DrilldownRequest(
        max_depth=depth, max_items_per_level=items, max_total_tokens=tokens, circuit_breaker=breaker
    )
    result: Drilldown = drilldown(library, "/ring/dev", request)
    found = nodes(result.root)
    assert result.nodes == len(found) <= breaker
    assert result.tokens <= tokens
    for node in found:
        assert len(node.children) <= items
        if node.kind == "folder":
            entry = library.resolve(node.path)
            assert len(node.children) + node.left_out == library.count(entry)
            assert (node.left_out > 0) == (node.cut_by is not None)
    cut = any(node.cut_by for node in found)
    assert (result.stopped == "completed") == (not cut)
