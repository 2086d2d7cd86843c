from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from libraryfs.ask import retrieval
from libraryfs.store import memory, namespaces
from tests.ask.shelf import Shelf, ids, plain

A, B = "/ring/a", "/ring/b"
FAR = ["alpha beta", "gamma delta", "epsilon zeta", "eta theta", "iota kappa", "lambda mu", "nu xi"]


def crowd(shelf: Shelf) -> None:
    """Five rows about whales, so that the others come over edges only."""
    for number in range(5):
        shelf.memory(A, f"whale{number}", content="whale song " + "of the sea " * number)


def library(shelf: Shelf, *others: str) -> None:
    shelf.grant("me", A)
    crowd(shelf)
    for number, name in enumerate(others):
        shelf.memory(A, name, content=FAR[number])


def over_edges(found: Any) -> dict[str, float]:
    return {one.id: one.score for one in found.evidence if one.origin == "graph"}


def test_one_hop_both_directions_two_kinds(shelf: Shelf) -> None:
    library(shelf, "base", "child", "older", "rival", "far")
    shelf.edge(f"{A}:whale0", "derives_from", f"{A}:base")
    shelf.edge(f"{A}:child", "derives_from", f"{A}:whale1")
    shelf.edge(f"{A}:whale2", "supersedes", f"{A}:older")
    shelf.edge(f"{A}:whale2", "contradicts", f"{A}:rival")
    shelf.edge(f"{A}:base", "derives_from", f"{A}:far")
    shelf.embed()
    found = shelf.ask("whale song", A)
    seeds = {one.id: one.score for one in found.evidence if one.origin == "vector"}
    assert len(seeds) == 5
    assert over_edges(found) == pytest.approx(
        {"base": seeds["whale0"] - 0.05, "child": seeds["whale1"] - 0.05, "older": seeds["whale2"] - 0.05}
    )
    (older,) = [one for one in found.evidence if one.id == "older"]
    assert older.superseded_by == "whale2"
    assert older.similarity is not None
    assert older.excerpt == FAR[2]
    assert found.sources == 2


def test_the_highest_score_wins(shelf: Shelf) -> None:
    library(shelf, "shared")
    for number in (3, 0, 4):
        shelf.edge(f"{A}:whale{number}", "derives_from", f"{A}:shared")
    shelf.edge(f"{A}:whale0", "derives_from", f"{A}:whale1")
    shelf.embed()
    found = shelf.ask("whale song", A)
    seeds = {one.id: one.score for one in found.evidence if one.origin == "vector"}
    best = max(seeds["whale0"], seeds["whale3"], seeds["whale4"])
    assert over_edges(found) == pytest.approx({"shared": best - 0.05})
    assert set(seeds) == {f"whale{number}" for number in range(5)}


def test_circles_end(shelf: Shelf) -> None:
    library(shelf, "x", "y")
    for source, target in (("whale0", "x"), ("x", "whale0"), ("x", "y"), ("y", "x"), ("whale0", "whale0")):
        shelf.edge(f"{A}:{source}", "supersedes", f"{A}:{target}")
    shelf.embed()
    found = shelf.ask("whale song", A)
    assert set(over_edges(found)) == {"x"}
    assert {one.superseded_by for one in found.evidence} == {None}


def test_dangling_edges_and_files_without_edges(shelf: Shelf) -> None:
    library(shelf)
    shelf.item(A, "i", content="whale song")
    shelf.edge(f"{A}:gone", "supersedes", f"{A}:whale0")
    shelf.edge(f"{A}:whale0", "derives_from", f"{A}:gone")
    shelf.embed()
    found = shelf.ask("whale song", A)
    assert over_edges(found) == {}
    assert {one.superseded_by for one in found.evidence} == {None}


def test_the_current_one_comes_first(shelf: Shelf) -> None:
    shelf.grant("me", A)
    shelf.memory(A, "v1", title="Deploy on Monday", content="We deploy on Monday.")
    shelf.memory(A, "v2", title="Release days", content="alpha beta")
    shelf.memory(A, "v3", title="Shipping", content="gamma delta")
    for number in range(6):
        shelf.memory(A, f"n{number}", content=f"We deploy number {number}.")
    shelf.edge(f"{A}:v2", "supersedes", f"{A}:v1")
    shelf.edge(f"{A}:v3", "supersedes", f"{A}:v2")
    shelf.embed()
    for options in ({}, {"embedder": None}, {"retrieval": "hybrid"}):
        found = shelf.ask("Deploy on Monday", A, **options)
        assert ids(found)[:2] == ["v3", "v1"], options
        by_id = {one.id: one for one in found.evidence}
        assert (by_id["v1"].superseded_by, by_id["v2"].superseded_by, by_id["v3"].superseded_by) == ("v3", "v3", None)
        assert by_id["v3"].origin == by_id["v2"].origin == "graph"
        assert by_id["v1"].score == max(one.score for one in found.evidence)


def test_of_two_successors_the_later_one(shelf: Shelf) -> None:
    library(shelf, "early", "late")
    for name in ("early", "late"):
        shelf.edge(f"{A}:{name}", "supersedes", f"{A}:whale0")
    shelf.embed()
    by_id = {one.id: one for one in shelf.ask("whale song", A).evidence}
    assert by_id["whale0"].superseded_by == "late"
    assert {"early", "late"} <= by_id.keys()


def test_neighbours_over_the_cap_are_counted(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retrieval, "MAX_GRAPH", 3)
    library(shelf, *(f"n{number}" for number in range(5)))
    for number in range(5):
        shelf.edge(f"{A}:n{number}", "derives_from", f"{A}:whale0")
    shelf.embed()
    found = shelf.ask("whale song", A)
    assert len(over_edges(found)) == 3
    assert found.left_out == 2
    assert found.degraded == ("memories over edges that were left out: 2",)


RINGS = ("/ring/a", "/ring/b", "/agent/c")
ROW = st.tuples(
    st.sampled_from(RINGS),
    st.sampled_from("pqrs"),
    st.sampled_from(["skill", "decision", "charter"]),
    st.sampled_from(["whale song", "whale", "sea", "song of the sea whale", "漢字 whale"]),
)
EDGE = st.tuples(
    st.sampled_from(RINGS), st.sampled_from("pqrs"), st.sampled_from(["supersedes", "derives_from"]),
    st.sampled_from(RINGS), st.sampled_from("pqrs"),
)  # fmt: skip


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    world=st.lists(ROW, min_size=1, max_size=14),
    links=st.lists(EDGE, max_size=8),
    sees=st.sets(st.sampled_from(RINGS)),
    options=st.sampled_from([{}, {"embedder": None}, {"retrieval": "hybrid"}]),
    embedded=st.booleans(),
)
def test_hidden_is_as_if_it_were_not_there(
    tmp_path: Path, world: list[Any], links: list[Any], sees: set[str], options: dict[str, Any], embedded: bool
) -> None:
    """A principal's evidence, scores, order, counts and notes equal those of a library that holds only what he sees."""
    found = []
    for name, shown in (("whole", set(RINGS)), ("cut", sees)):
        for suffix in ("", "-wal", "-shm"):
            (tmp_path / f"{name}.db{suffix}").unlink(missing_ok=True)
        shelf = Shelf(tmp_path / f"{name}.db")
        for ring in RINGS:
            shelf.namespace(ring)  # the same ids in both
        shelf.grant("me", *sees)
        shelf.grant("other", *RINGS)
        shelf.memory("/ring/own", "seed", content="nobody sees this one")
        for ring, row, kind, text in world:
            if ring in shown:
                shelf.memory(ring, row, kind, text, updated_at=1)
        for source_ring, source, kind, target_ring, target in links:
            if source_ring in shown and target_ring in shown:
                shelf.edge(f"{source_ring}:{source}", kind, f"{target_ring}:{target}")
        shelf.index()
        if embedded:
            shelf.embed()
        found.append(plain(shelf.ask("whale song", "/", **options)))
        everything = shelf.ask("whale song", "/", principal="other", **options)
        assert {one.namespace_id for one in everything.evidence} <= {
            space.id for space in namespaces.every(shelf.db) if space.path in shown
        }
        shelf.snapshot.close()
    assert found[0] == found[1]


def test_no_hop_leaves_what_is_seen(shelf: Shelf) -> None:
    shelf.grant("me", A)
    crowd(shelf)
    shelf.memory(B, "secret", content="alpha beta")
    shelf.memory(A, "beyond", content="gamma delta")
    shelf.edge(f"{B}:secret", "supersedes", f"{A}:whale0")
    shelf.edge(f"{A}:beyond", "supersedes", f"{B}:secret")
    shelf.edge(f"{A}:whale1", "derives_from", f"{B}:secret")
    shelf.embed()
    found = shelf.ask("whale song", "/")
    assert over_edges(found) == {}
    assert {one.superseded_by for one in found.evidence} == {None}
    shelf.grant("me", B)
    found = shelf.ask("whale song", A)
    assert set(over_edges(found)) == {"secret", "beyond"}
    assert {one.id: one.superseded_by for one in found.evidence}["whale0"] == "beyond"
    assert memory.find(shelf.db, 1, "beyond") is not None
