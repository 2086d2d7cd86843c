"""Answer, nearest passages, or nothing; and which blocks are shown."""

import pytest

from libraryfs.ask import bands, choice
from libraryfs.ask.blocks import blocks
from libraryfs.ask.candidates import Ranking, rank
from libraryfs.ask.conflicts import conflicts
from libraryfs.ask.evidence import Evidence
from libraryfs.ask.passages import Reading
from libraryfs.ask.sentences import words
from libraryfs.models.cancel import Cancel
from tests.ask.fake_embedder import PlacedEmbedder

NEAR, FAR = [1.0, 0.0], [0.0, 1.0]


def readings(*texts: str, superseded: dict[int, int] | None = None) -> list[Reading]:
    made = []
    for number, text in enumerate(texts):
        newer = (superseded or {}).get(number)
        item = Evidence(
            id=f"m{number}",
            path=f"/ring/a/skills/m{number}.md",
            score=1.0,
            origin="vector",
            excerpt=text,
            superseded_by=None if newer is None else f"m{newer}",
            title=f"File {number}",
            ino=number,
            namespace_id=1,
        )
        made.append(Reading(item, text, tuple(blocks(text)), ()))
    return made


def ranked(question: str, *texts: str, embedder: PlacedEmbedder | None = None, **options: dict[int, int]) -> Ranking:
    vector = None if embedder is None else embedder.embed([question], Cancel())[0].tobytes()
    return rank(question, readings(*texts, **options), vector, embedder, Cancel())


def outlook(question: str, *texts: str, embedder: PlacedEmbedder | None = None) -> bands.Outlook:
    ranking = ranked(question, *texts, embedder=embedder)
    chosen = choice.choose(ranking)
    vector = None if embedder is None else embedder.embed([question], Cancel())[0].tobytes()
    sentence = choice.answering(chosen[0], ranking, vector, embedder, Cancel()) if chosen else None
    return bands.outlook(ranking, chosen, sentence)


def test_nothing_to_go_by_is_hopeless() -> None:
    assert outlook("Who built it?").hopeless
    assert outlook("Who?", "The bridge at Lund was built by Marta Ruiz.").band == "none"


def test_by_words_what_has_hardly_any_of_them_is_no_answer() -> None:
    text = "The bridge at Lund was built by Marta Ruiz."
    assert outlook("Who built the bridge at Lund?", text).band == "answer"
    assert outlook("When does the pump run?", "The pump runs at noon.").band == "answer"
    assert outlook("Which orchestra played Sibelius in Helsinki at Lund?", text).band != "answer"


def test_with_vectors_the_nearest_sentence_and_its_block_decide() -> None:
    near = PlacedEmbedder({"bridge": NEAR}, window=500)
    found = outlook("Who built the bridge?", "The bridge was built by Marta.", embedder=near)
    assert found.band == "answer"
    assert 0.8 < found.probability < 1
    far = PlacedEmbedder({"Which": NEAR, "e": FAR}, window=500)
    found = outlook("Which company rebuilt the pier?", "The sea is blue.", embedder=far)
    assert (found.band, found.hopeless) == ("none", True)


def test_at_most_three_blocks_and_160_words_and_none_twice() -> None:
    long = " ".join(f"The bridge at Lund has a plank number {n} of oak." for n in range(9))
    texts = [f"{long} Also {n}." for n in range(4)] + ["The bridge is long.", "The bridge is long."]
    chosen = choice.choose(ranked("How long is the bridge at Lund?", *texts))
    assert 1 < len(chosen) <= 3
    assert sum(words(one.text) for one in chosen) <= 160
    assert len({one.text for one in chosen}) == len(chosen)
    assert all(one.text in one.source for one in chosen)


def test_a_superseded_file_never_wins() -> None:
    ranking = ranked("When do we deploy?", "We deploy on Tuesdays.", "Now on Mondays.", superseded={0: 1})
    chosen = choice.choose(ranking)
    assert [one.item.id for one in chosen] == ["m1"]
    assert [one.item.id for one in choice.replaced(ranking, chosen)] == ["m0"]


@pytest.mark.parametrize("question", ["Who approves a change, and how long does the freeze take?"])
def test_a_question_of_two_parts_gets_a_block_for_each(question: str) -> None:
    texts = ("A change is approved by two people.", "The freeze takes three days.", "Tea is at four.")
    assert {one.item.id for one in choice.choose(ranked(question, *texts))} == {"m0", "m1"}


@pytest.mark.parametrize(
    ("texts", "differ"),
    [
        (("Backups are kept for ninety days, that is 90.", "Backups are kept for 30 days."), True),
        (("Backups are kept for 90 days.", "The backups are kept for 90 days in Graz."), False),
        (("Backups are kept on tape.", "Backups are not kept on tape."), True),
        (("Backups are kept for 90 days.", "The printer is kept on floor 3."), False),
    ],
)
def test_a_contradiction_is_told(texts: tuple[str, ...], differ: bool) -> None:
    question = "How long are backups kept?"
    ranking = ranked(question, *texts)
    found = conflicts(question, ranking, choice.choose(ranking))
    assert bool(found) == differ
    assert all("[1]" in line and "[2]" in line for line in found)


def test_what_was_superseded_is_no_contradiction() -> None:
    texts = ("Backups are kept 90 days.", "Backups are kept 30 days.")
    ranking = ranked("How long are backups kept?", *texts, superseded={0: 1})
    assert conflicts("How long are backups kept?", ranking, choice.choose(ranking)) == ()
