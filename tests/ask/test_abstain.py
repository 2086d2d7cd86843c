"""When to say that it is not in the library."""

from libraryfs.ask import abstain, selection
from libraryfs.models.cancel import Cancel
from tests.ask.fake_embedder import PlacedEmbedder
from tests.ask.test_grounding import TEXTS, passages

NEAR, FAR = [1.0, 0.0], [0.0, 1.0]


def outlook(
    question: str, *texts: str, similarity: float | None = None, embedder: PlacedEmbedder | None = None
) -> abstain.Outlook:
    read = [
        one._replace(item=one.item.model_copy(update={"similarity": similarity})) for one in passages(*texts or TEXTS)
    ]
    return abstain.outlook(read, selection.rank(question, read, embedder, Cancel()))


def test_nothing_to_go_by_is_hopeless() -> None:
    assert outlook("Who?").refuse  # no term in the question
    assert abstain.outlook([], selection.rank("Who built it?", [], None, Cancel())).hopeless


def test_by_words_only_what_has_hardly_any_of_them_is_refused() -> None:
    assert not outlook("Who built the bridge at Lund?").refuse
    far = outlook("Which orchestra played Sibelius in Helsinki last winter?")
    assert far.refuse
    assert not far.hopeless


def test_with_vectors_the_best_sentence_in_its_context_decides() -> None:
    near = PlacedEmbedder({"bridge": NEAR, "Jacksonville": FAR, "It ": FAR}, window=500)
    found = outlook("Who built the bridge?", similarity=0.8, embedder=near)
    assert not found.refuse
    assert found.figures["context"] > 0.99
    far = PlacedEmbedder({"Which": NEAR, "e": FAR}, window=500)
    found = outlook("Which company rebuilt the old bridge?", similarity=0.8, embedder=far)
    assert found.refuse
    assert found.hopeless
    assert not outlook("Which bridge is at Lund?", similarity=0.8, embedder=far).refuse  # all of it is in one sentence
