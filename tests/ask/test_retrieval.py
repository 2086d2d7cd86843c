import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from libraryfs.ask.retrieval import NEAR_CHUNKS, NEAREST
from libraryfs.errors import Cancelled, ModelCrashed
from libraryfs.models.cancel import Cancel
from libraryfs.store import evals, memory, vectors, workspace
from libraryfs.store.texts import TextState
from tests.ask.fake_embedder import BrokenEmbedder, PlacedEmbedder, WordEmbedder
from tests.ask.shelf import Shelf, ids, plain

A, B = "/ring/a", "/ring/b"
SETS = ("eval-set.md", "smoke.md", "notes.md")


def on_circle(degrees: float) -> list[float]:
    return [math.cos(math.radians(degrees)), math.sin(math.radians(degrees))]


CIRCLE = PlacedEmbedder({"question": on_circle(0), **{f"#{at}#": on_circle(at) for at in range(1, 90)}})


@pytest.fixture
def circle(tmp_path: Path) -> Any:
    shelf = Shelf(tmp_path / "circle.db", CIRCLE)
    shelf.grant("me", A, B)
    yield shelf
    shelf.snapshot.close()


def test_the_five_nearest_with_their_scores(circle: Shelf) -> None:
    for at in (70, 10, 50, 30, 20, 60, 40):
        circle.memory(A, f"m{at}", content=f"Text #{at}# here.")
    circle.embed()
    found = circle.ask("question", A)
    assert ids(found) == ["m10", "m20", "m30", "m40", "m50"]
    assert [one.score for one in found.evidence] == [1.0, 0.99, 0.98, 0.97, 0.96]
    assert {one.origin for one in found.evidence} == {"vector"}
    for one, at in zip(found.evidence, (10, 20, 30, 40, 50), strict=True):
        assert one.similarity == pytest.approx(math.cos(math.radians(at)), abs=1e-5)
        assert one.excerpt == f"Text #{at}# here."
        assert one.path == f"/ring/a/skills/{one.id}.md"
    assert (found.degraded, found.left_out, found.sources) == ((), 0, 1)
    assert set(found.milliseconds) == {"embed", "search", "graph", "load"}


def test_an_item_counts_by_its_best_chunk_and_shows_it(circle: Shelf) -> None:
    filler = "Nothing in particular is said here at all. " * 40
    circle.memory(A, "long", content=f"{filler}\n\nHere it is: #5#.\n\n{filler}")
    circle.memory(A, "short", content="#20#")
    circle.embed()
    first, *_ = circle.ask("question", A).evidence
    content = circle.library().content(circle.library().resolve(first.path))
    assert first.id == "long"
    assert "Here it is: #5#." in first.excerpt
    assert len(first.excerpt) < len(content) / 2
    assert content[first.start :].startswith(first.excerpt.encode())
    assert first.size == len(content)
    assert (first.near[0].start, first.near[0].length) == (first.start, len(first.excerpt.encode()))
    cosines = [one.similarity or 0.0 for one in first.near]
    assert cosines == sorted(cosines, reverse=True)
    assert 2 < len(first.near) <= NEAR_CHUNKS
    assert all(0 < one.length <= len(content) - one.start for one in first.near)


def test_by_words_the_passages_with_words_of_the_question_are_near(circle: Shelf) -> None:
    filler = "Nothing in particular is said here at all. " * 40
    circle.memory(
        A, "long", content=f"{filler}\n\nThe narwhal.\n\n{filler}{filler}\n\nA narwhal and a whale.\n\n{filler}"
    )
    circle.index()
    (one,) = circle.ask("whale or narwhal", A, embedder=None).evidence
    content = circle.library().content(circle.library().resolve(one.path))
    shown = [content[place.start : place.start + place.length].decode() for place in one.near]
    assert ["A narwhal and a whale." in shown[0], "The narwhal." in shown[1]] == [True, True]
    assert (len(shown), {place.similarity for place in one.near}) == (2, {None})


@pytest.mark.parametrize("chunks", [30, 6000])
def test_five_items_although_one_has_all_the_nearest_chunks(circle: Shelf, chunks: int) -> None:
    circle.memory(A, "hog", content="x")
    for at in range(30, 36):
        circle.memory(A, f"m{at}", content=f"#{at}#")
    circle.embed()
    near = np.array(on_circle(1), dtype=np.float32).tobytes()
    hog = circle.entry(memory, A, "hog")
    with circle.snapshot.transaction() as db:
        passage = vectors.Passage(0, 1, near)
        vectors.put(db, hog.ino, b"", 1, TextState.TEXT, [passage] * chunks)
    assert ids(circle.ask("question", A)) == ["hog", "m30", "m31", "m32", "m33"]


@pytest.mark.parametrize("mode", ["vector", "hybrid", "keywords"])
@pytest.mark.parametrize(
    ("path", "elsewhere"),
    [
        (A, lambda shelf, n: shelf.memory(B, f"b{n}", content="whale song far at sea")),
        (f"{A}/skills", lambda shelf, n: shelf.memory(A, f"b{n}", "decision", content="whale song far at sea")),
        (f"{A}/workspace/f", lambda shelf, n: shelf.item(A, f"b{n}", "g", content="whale song far at sea")),
        (f"{A}/artifacts/x", lambda shelf, n: shelf.artifact(A, f"xy/b{n}.txt", content="whale song far at sea")),
        ("/agent/z", lambda shelf, n: shelf.memory(B, f"b{n}", content="whale song far at sea")),
        (f"{A}/skills/one.md", lambda shelf, n: shelf.memory(A, f"b{n}", content="whale song far at sea")),
    ],
)
def test_a_thousand_nearer_rows_elsewhere_change_nothing(shelf: Shelf, mode: str, path: str, elsewhere: Any) -> None:
    count = 1000 if mode == "vector" and path == A else 120
    shelf.grant("me", A, B, "/agent/z")
    for folder in "fg":
        shelf.item(A, folder, folder=True)
    for name in ("one", "two", "three"):
        text = f"The {name} whale sings."
        shelf.memory(A, name, content=text)
        shelf.memory("/agent/z", name, content=text)
        shelf.item(A, f"{name}.txt", "f", content=text)
        shelf.artifact(A, f"x/{name}.txt", content=text)
    options: dict[str, Any] = {"embedder": None} if mode == "keywords" else {"retrieval": mode}
    shelf.embed()
    before = plain(shelf.ask("whale song far at sea", path, **options))
    assert len(before["evidence"]) == (1 if path.endswith(".md") else 5 if path == A else 3)
    for number in range(count):
        elsewhere(shelf, number)
    shelf.embed()
    after = plain(shelf.ask("whale song far at sea", path, **options))
    assert len(shelf.ask("whale song far at sea", "/").evidence) == NEAREST
    if mode == "vector":
        assert after == before
    else:
        # Within one ring the frequency of words is the ring's, so only what is found, not how it ranks, is the same.
        assert sorted(one["id"] for one in after["evidence"]) == sorted(one["id"] for one in before["evidence"])
        if path in (A, "/agent/z"):
            assert after == before


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    angles=st.lists(st.lists(st.integers(1, 89), min_size=1, max_size=12), min_size=1, max_size=15),
    sections=st.lists(st.sampled_from(["skill", "decision", "semantic"]), min_size=15, max_size=15),
    scope=st.sampled_from([A, f"{A}/skills", f"{A}/memories", "/"]),
)
def test_as_exact_as_looking_at_all_of_them(
    tmp_path: Path, angles: list[list[int]], sections: list[str], scope: str
) -> None:
    for file in tmp_path.iterdir():
        file.unlink()
    shelf = Shelf(tmp_path / "exact.db", CIRCLE)
    shelf.grant("me", A, B)
    expected = []
    for number, own in enumerate(angles):
        ring = A if number % 3 else B
        text = "\n\n".join(f"Part {'of it ' * 40} #{at}#." for at in own)
        shelf.memory(ring, f"m{number:02}", sections[number], text)
        folder = {"skill": "skills", "decision": "decisions", "semantic": "memories"}[sections[number]]
        if scope == "/" or f"{ring}/{folder}".startswith(scope):
            expected.append((min(own), f"m{number:02}"))
    shelf.embed()
    found = shelf.ask("question", scope)
    angle = {name: at for at, name in expected}
    assert [angle[one] for one in ids(found)] == sorted(at for at, _ in expected)[:NEAREST]
    shelf.snapshot.close()


def test_the_question_is_embedded_once_and_paths_are_merged(circle: Shelf) -> None:
    for at in range(10, 20):
        circle.memory(A, f"a{at}", content=f"#{at}#")
        circle.memory(B, f"b{at}", "decision", content=f"#{at}#")
    circle.embed()
    calls = len(CIRCLE.calls)
    found = circle.ask("question", A, f"{A}/skills", B, f"{A}/skills/a15.md", A)
    assert CIRCLE.calls[calls:] == [["question"]]
    assert sorted(ids(found)) == ["a10", "a11", "a12", "a13", "a14", "a15", "b10", "b11", "b12", "b13", "b14"]
    scores = {one.id: one.score for one in found.evidence}
    assert (scores["a10"], scores["b10"], scores["a15"], scores["a11"]) == (1.0, 1.0, 1.0, 0.99)
    assert found.sources == 4


def test_what_no_path_reaches_is_not_found(shelf: Shelf) -> None:
    shelf.grant("me", A)
    shelf.memory(A, "old", "charter", content="whale song one", updated_at=1)
    shelf.memory(A, "new", "charter", content="whale song two", updated_at=2)
    shelf.item(A, "c1", "c2", folder=True)
    shelf.item(A, "c2", "c1", folder=True)
    shelf.item(A, "lost", "c1", content="whale song three")
    shelf.item(A, "orphan", "nowhere", content="whale song four")
    shelf.item(A, "f", folder=True)
    shelf.item(A, "fine", "f", content="whale song five")
    shelf.embed()
    for path in ("/", A):
        for options in ({}, {"retrieval": "hybrid"}, {"embedder": None}):
            assert sorted(ids(shelf.ask("whale song", path, **options))) == ["fine", "new"]
    assert ids(shelf.ask("whale song", f"{A}/charter")) == ["new"]
    assert ids(shelf.ask("whale song", f"{A}/workspace")) == ["fine"]


def test_without_an_embedder_keywords_search_and_it_says_so(shelf: Shelf) -> None:
    shelf.grant("me", A)
    for number in range(8):
        shelf.memory(A, f"m{number}", content=f"Whale number {number} sings. " + "Filler. " * number)
    shelf.memory(A, "other", content="Something else.")
    shelf.index()
    found = shelf.ask("Where do whales sing?", A, embedder=None)
    assert ids(found) == ["m0", "m1", "m2", "m3", "m4"]
    assert {(one.score, one.origin, one.similarity) for one in found.evidence} == {(0.5, "fallback", None)}
    assert found.left_out == 3
    assert found.degraded == (
        "no embedding model is set: searched by keywords",
        "files with words of the question that were left out: 3",
    )


def test_reasons_to_fall_back(shelf: Shelf) -> None:
    shelf.grant("me", A)
    shelf.memory(A, "m", content="Whale.")
    shelf.index()
    assert "no vectors yet" in shelf.ask("whale", A).degraded[0]
    shelf.embed()
    broken = BrokenEmbedder(ModelCrashed("the embedder's process was killed"))
    found = shelf.ask("whale", A, embedder=broken)
    assert (ids(found), found.degraded) == (["m"], ("the embedder's process was killed: searched by keywords",))
    assert "libraryfs embed --all" in shelf.ask("whale", A, embedder=WordEmbedder("words@2")).degraded[0]
    late = shelf.ask("whale", A, cancel=Cancel.after(0))
    assert (ids(late), late.evidence[0].origin) == (["m"], "fallback")
    assert "time" in late.degraded[0]
    gone = Cancel()
    gone.cancel()
    with pytest.raises(Cancelled):
        shelf.ask("whale", A, cancel=gone)


def test_what_waits_for_vectors_is_found_by_keywords_and_told(shelf: Shelf) -> None:
    shelf.grant("me", A, B)
    for number in range(6):
        shelf.memory(A, f"m{number}", content="Whale song.")
    shelf.embed()
    shelf.memory(A, "new", content="Whale.")
    shelf.memory(A, "other", content="Something else.")
    shelf.memory(B, "o", content="Whale.")
    note = "files without vectors yet: 2, searched by keywords only ('libraryfs embed' makes them)"
    assert shelf.ask("whale", A).degraded == (note, "files not indexed for keywords yet: 2 ('libraryfs embed' does it)")
    assert shelf.ask("whale", A, embedder=None).degraded[-1].startswith("files not indexed for keywords yet: 2 ")
    shelf.index()
    found = shelf.ask("whale", A)
    assert found.degraded == (note,)
    assert {one.id: (one.score, one.origin) for one in found.evidence}["new"] == (0.5, "fallback")
    assert len(found.evidence) == NEAREST + 1
    assert ids(shelf.ask("whale", B)) == ["o"]
    shelf.embed()
    assert shelf.ask("whale", A).degraded == ()
    assert ids(shelf.ask("whale", A))[0] == "new"


def test_a_question_over_the_window_is_told(shelf: Shelf) -> None:
    shelf.grant("me", A)
    shelf.memory(A, "m", content="Whale.")
    shelf.embed()
    lenient = WordEmbedder()
    lenient.offsets = lambda text: [(0, 1)] * 100  # type: ignore[method-assign]
    lenient.embed = lambda texts, cancel: shelf.embedder.embed(["whale"], cancel)  # type: ignore[method-assign]
    found = shelf.ask("whale " * 100, A, embedder=lenient)
    assert found.degraded == ("the question has 100 tokens, and the embedding model reads the first 64",)
    assert ids(found) == ["m"]


def test_nothing_to_search(shelf: Shelf) -> None:
    shelf.grant("me", A)
    shelf.namespace(A)
    for options in ({}, {"embedder": None}, {"retrieval": "hybrid"}):
        assert shelf.ask("whale", "/", A, f"{A}/workspace", **options).evidence == ()
    assert shelf.ask("whale", "/", principal="nobody").evidence == ()


def test_all_namespaces_or_some_give_what_each_gives(circle: Shelf) -> None:
    """Asking everything is one search; asking all that one may see, several. The ranking is the same."""
    for at in range(10, 40):
        circle.memory((A, B)[at % 2], f"m{at}", content=f"#{at}#")
    circle.embed()
    everything = circle.ask("question", "/")
    assert ids(everything) == [f"m{at}" for at in range(10, 15)]
    circle.namespace("/ring/hidden")
    circle.memory("/ring/hidden", "nearest", content="#1#")
    circle.embed()
    assert plain(circle.ask("question", "/")) == plain(everything)
    assert ids(circle.ask("question", "/ring")) == ids(everything)
    assert ids(circle.ask("question", "/agent")) == []


def test_eval_sets_are_no_evidence(shelf: Shelf) -> None:
    """A ring's own, and what was run as one: what its questions want to hear is no knowledge; unless one is asked."""
    for name in SETS:
        shelf.item(A, name, name=name, content=f"## Where is zebra?\n- zebra in {name}\n")
    shelf.grant("me", A)
    shelf.embed()
    for options in ({}, {"retrieval": "hybrid"}, {"embedder": None}):
        assert set(ids(shelf.ask("Where is zebra?", A, **options))) == {"smoke.md", "notes.md"}
    with shelf.snapshot.transaction():
        run = evals.NewRun(at_ns=1, passed=1, total=1, errors=0, fingerprint="{}", verdicts=[])
        item = workspace.get(shelf.db, shelf.library().resolve(f"{A}/workspace/{SETS[1]}").ino)
        assert item is not None
        evals.add(shelf.db, item, run)
    for options in ({}, {"retrieval": "hybrid"}, {"embedder": None}):
        assert ids(shelf.ask("Where is zebra?", A, **options)) == ["notes.md"]
        for name in SETS:
            assert ids(shelf.ask("Where is zebra?", f"{A}/workspace/{name}", **options)) == [name]
