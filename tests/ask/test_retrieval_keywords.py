from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from libraryfs.ask.fusion import best, fused, readable
from libraryfs.ask.retrieval import retrieve
from libraryfs.ingest.importer import import_source
from libraryfs.library.resolver import Library
from libraryfs.store import keywords, texts, words
from libraryfs.store.search_scope import SearchScope
from libraryfs.store.snapshot import Snapshot
from tests.ask.fake_embedder import PlacedEmbedder
from tests.ask.shelf import Shelf, ids

A, B = "/ring/a", "/ring/b"


@pytest.fixture(scope="module")
def whale(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shelf]:
    made = Shelf(tmp_path_factory.mktemp("words") / "library.db")
    made.memory(A, "m", title="zzz", content="whale qqq")
    made.index()
    yield made
    made.snapshot.close()


@pytest.mark.parametrize(
    ("question", "content"),
    [
        ("路德生涯的哪个阶段是他最高产的？", "马丁·路德最高产的阶段是他生涯的早期。"),
        ("ルターの初期の著作", "彼の初期の著作はルターの最も多産な時期。"),
        ("ปลาวาฬร้องเพลง", "เราได้ยินปลาวาฬร้องเพลงในทะเล"),
        ("какой кит поёт", "Кит поёт далеко в море."),
        ("ÉLÈVE café", "Un eleve au CAFE."),
        ("deploying servers", "We deploy the server on Tuesday."),
        ("C++ и 鲸", "鲸"),
        ("हिन्दी में कितनी बोलियाँ हैं", "हिन्दी की पचास से अधिक बोलियाँ बोली जाती हैं।"),
        ("தமிழ் எங்கே பேசப்படுகிறது", "தமிழ் இலங்கையிலும் பேசப்படுகிறது."),
        ("কলকাতার সেতু", "কলকাতা শহরের সেতু হুগলি নদীর উপর।"),
        ("كِتَابٌ", "هذا كتاب قديم"),
        ("고래는 어디에", "고래가 바다에 산다"),
        ("истории", "Мы читали историю."),
        ("Häuser der Städte", "In der Stadt steht ein Haus: die Häuserzeile."),
    ],
)
def test_scripts(shelf: Shelf, question: str, content: str) -> None:
    shelf.grant("me", A)
    shelf.memory(A, "right", title="t", content=content)
    shelf.memory(A, "wrong", title="t", content="Nothing of that, 完全不同的内容, совсем другое.")
    shelf.index()
    assert ids(shelf.ask(question, A, embedder=None))[0] == "right"


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    question=st.text(min_size=1, max_size=60)
    | st.lists(
        st.sampled_from(
            ['"', "'", "*", "NEAR(", ")", "AND", "OR", "NOT", "text:", "^", "whale", "{", "-", "漢", "\0", ";--"]
        ),
        min_size=1,
        max_size=8,
    ).map(" ".join)
)
def test_no_character_is_query_syntax(whale: Shelf, question: str) -> None:
    found = keywords.search(whale.db, question, SearchScope((1,)), 5, lambda ino: True)
    assert len(found.best) == ("whale" in question.lower().replace("_", " ").split())


def test_rare_words_weigh_more_and_long_files_less(shelf: Shelf) -> None:
    shelf.grant("me", A)
    for number in range(20):
        shelf.memory(A, f"common{number:02}", content="The whale and the sea.")
    shelf.memory(A, "rare", content="The narwhal.")
    shelf.memory(A, "long", content="The narwhal. " + "Other things are told of here. " * 50)
    shelf.index()
    assert ids(shelf.ask("whale narwhal", A, embedder=None))[:2] == ["rare", "long"]


def test_shares_are_between_0_and_1_and_1_is_out_of_reach_for_half_a_question(shelf: Shelf) -> None:
    shelf.grant("me", A)
    shelf.memory(A, "all", content="whale song " * 50)
    shelf.memory(A, "half", content="whale " * 50)
    shelf.index()
    found = keywords.search(shelf.db, "whale song unheard", SearchScope((1,)), 5, lambda ino: True)
    shares = [one.share for one in found.best]
    assert shares == sorted(shares, reverse=True)
    assert 0 < shares[1] < shares[0] < 0.75
    assert found.matched == 2


def test_files_are_found_by_their_names(shelf: Shelf) -> None:
    shelf.grant("me", A)
    shelf.artifact(A, "a", "plans/harbour map.bin", "\x7fELF\0\1\2\0\0\0\1")
    shelf.index()
    found = shelf.ask("Is there a map of the harbour?", A, embedder=None)
    assert [(one.id, one.excerpt) for one in found.evidence] == [("a", "")]


def test_the_excerpt_is_where_the_words_are(shelf: Shelf) -> None:
    shelf.grant("me", A)
    filler = "Nothing of interest is said in this sentence. " * 60
    content = f"{filler}\nDéploys happen on Tuesday after the stand-up.\n{filler}"
    shelf.memory(A, "m", content=content)
    shelf.index()
    (one,) = shelf.ask("When do deploys happen after the stand-up?", A, embedder=None).evidence
    assert "on Tuesday" in one.excerpt
    assert len(one.excerpt) <= words.PASSAGE_CHARACTERS
    assert content.encode()[one.start :].startswith(one.excerpt.encode())


@given(st.text(max_size=5000))
def test_passages_hold_the_whole_text(text: str) -> None:
    spans = words.passages(text)
    assert "".join(text[start:end] for start, end in spans).split() == text.split() or len(spans) > 1
    assert sum(end - start for start, end in spans) >= len("".join(text.split()))


def test_hybrid_takes_the_leg_that_can_read(shelf: Shelf) -> None:
    """The embedder sees no difference between the files; words do. And the other way round."""
    shelf.grant("me", A)
    blind = PlacedEmbedder(
        {"问": [1.0, 0.0], "文": [1.0, 0.1], "near": [1.0, 0.2], "far": [0.0, 1.0], "ask": [1.0, 0.0]}
    )
    for number in range(30):
        shelf.memory(A, f"m{number:02}", content=f"文 {'鲸鱼在海里' if number == 29 else '其他的事情'} {number}")
    shelf.embed(blind)
    assert ids(shelf.ask("问 鲸鱼在哪里", A, embedder=blind))[0] != "m29"
    assert ids(shelf.ask("问 鲸鱼在哪里", A, embedder=blind, retrieval="hybrid"))[0] == "m29"
    for number in range(30):
        shelf.memory(B, f"n{number:02}", content="near" if number == 29 else "far")
    shelf.grant("me", B)
    shelf.embed(blind)
    assert ids(shelf.ask("ask unheard", B, embedder=blind, retrieval="hybrid"))[0] == "n29"


def test_hybrid_tells_origin_and_similarity(shelf: Shelf) -> None:
    shelf.grant("me", A)
    for number in range(60):
        shelf.memory(A, f"m{number:02}", content=f"whale song sea {number}")
    shelf.memory(A, "word", content="Zebrafish, unlike all others.")
    shelf.embed()
    found = shelf.ask("whale song sea zebrafish", A, retrieval="hybrid")
    by_id = {one.id: one for one in found.evidence}
    assert by_id["word"].origin == "fallback"
    assert by_id["word"].similarity is not None
    assert [one.score for one in found.evidence] == [1.0, 0.99, 0.98, 0.97, 0.96]
    assert found.degraded == ()


def test_a_file_about_the_subject_comes_before_one_that_mentions_it(shelf: Shelf) -> None:
    shelf.grant("me", A)
    shelf.item(
        A, "subject", name="PumpStalled.md", content="# PumpStalled\n\nThe pump does not turn. Look at the fuse."
    )
    shelf.item(
        A,
        "mentions",
        name="ValveSlow.md",
        content="# ValveSlow\n\nOther alerts may fire: PumpStalled. PumpStalled too.",
    )
    for name in ("Tank", "Valve", "Motor", "Fuse"):
        shelf.item(A, name, name=f"{name}.md", content=f"# {name}\n\nThis alert tells that the {name} is warm.")
    shelf.index()
    assert ids(shelf.ask("What does the PumpStalled alert mean?", A, embedder=None))[0] == "subject"


def test_a_name_of_two_words_in_one_is_found_by_each(shelf: Shelf) -> None:
    shelf.grant("me", A)
    shelf.item(A, "subject", name="PumpStalled.md", content="It does not turn.")
    shelf.item(A, "other", name="Other.md", content="A pump is not in order here, and a valve is not either.")
    shelf.index()
    assert ids(shelf.ask("the pump has stalled", A, embedder=None)) == ["subject", "other"]


def test_a_heading_counts_more_than_the_text(shelf: Shelf) -> None:
    shelf.grant("me", A)
    filler = "Something else is said here, at some length. " * 5
    shelf.memory(A, "text", content=f"{filler}\n\nIt is about a rollback. {filler}")
    shelf.memory(A, "heading", content=f"{filler}\n\n## Rollback\n\n{filler}")
    shelf.index()
    assert ids(shelf.ask("rollback", A, embedder=None)) == ["heading", "text"]


def test_words_in_many_files_rank_what_others_find(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    shelf.grant("me", A)
    for number in range(30):
        shelf.memory(A, f"m{number:02}", content=f"The whale swims. {'A narwhal.' if number in (7, 21) else ''}")
    shelf.memory(A, "n", content="A narwhal, and nothing besides.")
    shelf.index()
    whole = keywords.search(shelf.db, "whale narwhal", SearchScope((1,)), 3, lambda ino: True)
    monkeypatch.setattr(keywords, "RARE_FILES", 10)
    cut = keywords.search(shelf.db, "whale narwhal", SearchScope((1,)), 3, lambda ino: True)
    assert [one.ino for one in cut.best] == [one.ino for one in whole.best]
    assert (cut.matched, whole.matched) == (3, 31)
    more = keywords.search(shelf.db, "whale narwhal", SearchScope((1,)), 9, lambda ino: True)
    assert len(more.best) == 9, "too few were found without the common word"
    few = keywords.search(shelf.db, "whale narwhal", SearchScope((1,)), 9, lambda ino: True, enough=1)
    assert len(few.best) == 3


def test_fusion() -> None:
    assert fused({1: 0.9, 2: 0.5}, {}) == [1, 2]
    assert fused({1: 0.9, 2: 0.5}, {2: 0.5}) == [2, 1]
    assert fused({1: 0.9, 2: 0.7}, {2: 0.1}) == [1, 2], "few of the words weigh next to nothing"
    assert fused({1: 0.9, 2: 0.7}, {2: 0.1}, 0.0) == [2, 1], "unless the cosines cannot be believed"
    assert fused({}, {7: 0.1, 3: 0.1}) == [3, 7]


def test_the_first_of_each_leg_is_among_the_best() -> None:
    cosines = {1: 0.9, 2: 0.5, 3: 0.5, 4: 0.5, 5: 0.1}
    shares = {2: 0.9, 3: 0.8, 4: 0.8, 5: 0.1}
    assert best(cosines, shares, 1.0, 2) == [2, 1]
    assert best(cosines, shares, 0.0, 2) == [2, 3], "the cosines cannot be believed"
    assert best(cosines, shares, 1.0, 9) == fused(cosines, shares)
    assert best(cosines, {}, 1.0, 2) == [1, 2]
    assert best({}, {7: 0.0}, 1.0, 2) == [7]
    assert best({}, {}, 1.0, 2) == []


def test_a_model_that_finds_all_texts_alike_does_not_read_them() -> None:
    apart, alike = [0.0, 0.1, 0.05, -0.02] * 3, [0.4, 0.35, 0.45, 0.38] * 3
    assert readable(0.6, apart) > 0.95
    assert readable(0.6, alike) < 0.05
    assert readable(0.6, alike[:3]) == 1.0, "three texts say nothing"


def test_what_an_import_brought_is_found_at_once(shelf: Shelf, tmp_path: Path) -> None:
    folder = tmp_path / "dev"
    (folder / "decisions").mkdir(parents=True)
    (folder / "decisions/whales.md").write_text("Whales sing far out.")
    import_source(shelf.snapshot, folder, A, "me")
    found = shelf.ask("Where do whales sing?", A, embedder=None)
    assert [one.path for one in found.evidence] == ["/ring/a/decisions/whales.md"]
    (folder / "decisions/whales.md").write_text("Nothing of that.")
    import_source(shelf.snapshot, folder, A, "me")
    assert shelf.ask("Where do whale songs come from?", f"{A}/decisions/whales.md", embedder=None).left_out == 0
    assert shelf.ask("sing", A, embedder=None).evidence == ()


def test_a_snapshot_of_schema_1_is_searched_and_indexed_anew_when_it_is_opened_for_writing(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "old.db")
    shelf.grant("me", A)
    shelf.memory(A, "hindi", content="हिन्दी की पचास से अधिक बोलियाँ हैं।")
    shelf.memory(A, "english", content="We deploy the server on Tuesday.")
    with shelf.snapshot.transaction() as db:
        db.execute("ALTER TABLE indexed DROP COLUMN title; DROP TABLE words_found; DROP TABLE words")
        db.execute(
            "CREATE VIRTUAL TABLE words USING fts5 (text, content = '', contentless_delete = 1,"
            " tokenize = 'porter unicode61 remove_diacritics 2')"
        )
        db.execute("CREATE VIRTUAL TABLE words_found USING fts5vocab (words, instance)")
        for ino, namespace_id in list(db.execute("SELECT ino, namespace_id FROM unindexed")):
            text = texts.load(db, ino, 10_000)
            assert text is not None
            db.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (ino, text.text))
            db.execute("INSERT INTO indexed (ino, namespace_id, words) VALUES (?, ?, 6)", (ino, namespace_id))
        db.execute("UPDATE settings SET value = 'older' WHERE key = 'schema'")
        db.pragma("user_version", 1)
    shelf.snapshot.close()

    def search(snapshot: Snapshot, question: str) -> list[str]:
        library = Library(snapshot, "me")
        return ids(retrieve(library, None, question, [library.resolve("/")]))

    with Snapshot.open(shelf.path) as old:
        assert search(old, "deploying servers") == ["english"]
    with Snapshot.open(shelf.path, write=True) as new:
        assert search(new, "deploying servers") == ["english"]
        assert search(new, "हिन्दी") == ["hindi"]
    with Snapshot.open(shelf.path) as new:
        assert search(new, "हिन्दी") == ["hindi"]


def test_a_word_with_a_digit_is_found_by_all_of_it(shelf: Shelf) -> None:
    """Names of incidents, tickets and parts differ in their last letters; they were cut to six."""
    shelf.grant("me", A)
    for n in range(40):
        shelf.memory(A, f"t{n}", title="Report", content=f"What came of TICKET{n}, and of обращение{n}.\n")
    shelf.index()
    for n in (1, 23):
        assert ids(shelf.ask(f"Where is ticket{n}?", A, embedder=None))[0] == f"t{n}"
        assert ids(shelf.ask(f"обращение{n}", A, embedder=None))[0] == f"t{n}"
