"""Retrieval where one leg, or each, finds nothing that may be shown."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ask.asking import run
from tests.ask.fake_embedder import PlacedEmbedder
from tests.ask.shelf import Shelf, ids

A = "/ring/a"
QUESTION = "When are narwhals counted?"
SET = f"## {QUESTION}\n- in March\n"


@pytest.mark.parametrize("retrieval", ["vector", "hybrid"])
def test_the_words_match_an_eval_set_only(shelf: Shelf, retrieval: str) -> None:
    """The one file with words of the question is no evidence; the unrelated one is what there is."""
    shelf.item(A, "w1", name="eval-set.md", content=SET)
    shelf.memory(A, "m1", content="The boiler was replaced in 1996.")
    shelf.grant("me", A)
    shelf.embed()
    shelf.index()
    found = shelf.ask(QUESTION, A, retrieval=retrieval)
    assert ids(found) == ["m1"]
    assert run(shelf, QUESTION, paths=[A], retrieval=retrieval).error is None


FILES = st.fixed_dictionaries(
    {},
    optional={
        "near": st.just("Narwhals are counted in March."),
        "far": st.just("The boiler was replaced in 1996."),
        "empty": st.just(""),
        "wordless": st.just("— … —"),
        "eval-set.md": st.just(SET),
        "hidden": st.just("Narwhals are counted in secret."),
    },
)


@settings(max_examples=40, deadline=None)
@given(
    files=FILES,
    retrieval=st.sampled_from(["vector", "hybrid"]),
    question=st.sampled_from([QUESTION, "boiler", "zebra", "the of and", "…a…"]),
    model=st.sampled_from(["none", "words", "blind"]),
    embedded=st.booleans(),
    indexed=st.booleans(),
)
def test_any_leg_may_be_empty(
    files: dict[str, str], retrieval: Any, question: str, model: str, embedded: bool, indexed: bool
) -> None:
    """Never an error; nothing hidden and no eval set among the evidence; what is found by a word is shown."""
    with TemporaryDirectory() as folder:
        blind = PlacedEmbedder({"no text has this mark": [1.0, 0.0]})
        shelf = Shelf(Path(folder) / "library.db", blind if model == "blind" else None)
        shelf.namespace(A, "me")
        for name, text in files.items():
            if name == "hidden":
                shelf.memory("/ring/secret", name, content=text)
            else:
                shelf.item(A, name, name=name, content=text)
        if embedded:
            shelf.embed()
        if indexed:
            shelf.index()
        embedder = None if model == "none" else shelf.embedder
        found = shelf.ask(question, A, retrieval=retrieval, embedder=embedder)
        assert {one.id for one in found.evidence} <= files.keys() - {"hidden", "eval-set.md"}
        if question == QUESTION and "near" in files and indexed:
            assert "near" in ids(found)
        result = run(shelf, question, paths=[A], retrieval=retrieval, embedder=embedder)
        assert result.error is None
        assert all(one.id != "hidden" for one in result.evidence)
        shelf.snapshot.close()
