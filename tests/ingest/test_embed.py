from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from libraryfs.errors import Cancelled, ModelFailed, ModelUnavailable
from libraryfs.ingest import chunker, embed
from libraryfs.ingest.embed import EmbedReport, embed_missing
from libraryfs.models.cancel import Cancel
from libraryfs.models.protocols import Embedder
from libraryfs.store import artifacts, keywords, memory, namespaces, vectors, workspace
from libraryfs.store.snapshot import Snapshot
from libraryfs.store.texts import TextState
from tests.ask.fake_embedder import WordEmbedder
from tests.store.build import Builder
from tests.store.conftest import build

__all__ = ["build"]
RING = "/ring/dev"
LONG = "A sentence about deploys on Tuesday. " * 80


def run(build: Builder, embedder: Embedder, **options: Any) -> EmbedReport:
    return embed_missing(build.snapshot, embedder, Cancel(), **options)


def rows(build: Builder, sql: str) -> list[Any]:
    return [row[0] if len(row) == 1 else row for row in build.db.execute(sql)]


def consistent(build: Builder) -> None:
    """Nothing derived without its source, no source neither derived nor queued, and nothing twice."""
    files = set(rows(build, "SELECT ino FROM entries WHERE kind >= 5"))
    for done, queue in (("embedded", "unembedded"), ("indexed", "unindexed")):
        seen, waiting = rows(build, f"SELECT ino FROM {done}"), rows(build, f"SELECT ino FROM {queue}")
        assert sorted(seen + waiting) == sorted(files)
    assert set(rows(build, "SELECT ino FROM passages")) == set(rows(build, "SELECT ino FROM embedded WHERE state = 0"))
    if vectors.embedder(build.db):
        assert rows(build, "SELECT rowid FROM vectors ORDER BY 1") == rows(build, "SELECT pk FROM passages ORDER BY 1")
        places = "SELECT p.ino, v.namespace_id, v.folder FROM passages p CROSS JOIN vectors v ON v.rowid = p.pk"
        real = {ino: (ns, up) for ino, ns, up in rows(build, "SELECT ino, namespace_id, parent FROM entries")}
        assert all(real[ino] == (namespace, folder) for ino, namespace, folder in rows(build, places))
    assert rows(build, "SELECT id FROM words_docsize ORDER BY 1") == rows(build, "SELECT ino FROM indexed ORDER BY 1")
    totals = "SELECT namespace_id, sum(words > 0), sum(words) FROM indexed GROUP BY 1 ORDER BY 1"
    stored = "SELECT namespace_id, files, words FROM indexed_totals WHERE files ORDER BY 1"
    assert rows(build, stored) == [row for row in rows(build, totals) if row[1]]


def delete(build: Builder, row_id: str) -> None:
    with build.snapshot.transaction():
        ring = namespaces.ensure(build.db, RING)
        row = memory.find(build.db, ring.id, row_id)
        assert row is not None
        memory.delete(build.db, ring, row.ino)


def test_all_three_stores_and_a_second_run_embeds_nothing(build: Builder) -> None:
    build.memory(RING, "m", content=LONG)
    build.item(RING, "f", folder=True)
    build.item(RING, "i", "f", content="An item.")
    build.artifact(RING, "a", "img/a.txt", "An artifact.")
    embedder = WordEmbedder()
    report = run(build, embedder)
    assert (report.files, report.waiting) == (3, 0)
    assert report.chunks == len(embedder.texts) > 3
    assert embedder.texts == sorted(embedder.texts, key=len, reverse=True)
    consistent(build)
    again = WordEmbedder()
    assert run(build, again).files == 0
    assert again.calls == []
    assert vectors.counts(build.db) == {TextState.TEXT: 3}


def test_titles_go_with_each_chunk_and_fit(build: Builder) -> None:
    build.memory(RING, "m", title="Deploys " + "very " * 200, content=LONG)
    embedder = WordEmbedder()
    run(build, embedder)
    assert len(embedder.texts) > 1
    assert all(text.startswith("Deploys very") for text in embedder.texts)
    assert sum(text.count("A sentence") for text in embedder.texts) >= 80


def test_a_change_embeds_its_row_only(build: Builder) -> None:
    for name in "abc":
        build.memory(RING, name, content=f"About {name}.")
    run(build, WordEmbedder())
    build.memory(RING, "b", content="About something else.")
    embedder = WordEmbedder()
    run(build, embedder)
    assert embedder.texts == ["b\nAbout something else."]
    build.memory(RING, "b", content="About something else.", title="Another title")
    run(build, embedder)
    assert embedder.texts[1:] == ["Another title\nAbout something else."]
    build.memory(RING, "b", content="About something else.", title="Another title", confidence=0.5)
    run(build, embedder)
    assert len(embedder.texts) == 2
    consistent(build)


def test_deleted_rows_leave_nothing(build: Builder) -> None:
    build.memory(RING, "m", content=LONG)
    build.memory(RING, "n", content="Never embedded.")
    delete(build, "n")
    run(build, WordEmbedder())
    delete(build, "m")
    consistent(build)
    for table in ("embedded", "unembedded", "passages", "vectors", "indexed", "unindexed", "words_docsize"):
        assert rows(build, f"SELECT count(*) FROM {table}") == [0]


def test_a_row_that_moves_takes_its_vectors_along(build: Builder) -> None:
    build.memory(RING, "m", "skill", "How to deploy.")
    run(build, WordEmbedder())
    build.memory(RING, "m", "decision", "How to deploy.")
    consistent(build)
    embedder = WordEmbedder()
    assert run(build, embedder).chunks == 0


def test_what_has_no_text_is_skipped_and_counted(build: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keywords, "MAX_TEXT_BYTES", 300_000)
    build.memory(RING, "blank", content=" \n\t")
    build.memory(RING, "empty")
    build.memory(RING, "huge", content="word " * 60_001)
    build.artifact(RING, "nul", content="a\0b")
    build.item(RING, "picture", content="text after all", media_type="image/png")
    build.item(RING, "drawing", content="<svg/>", media_type="image/svg+xml")
    build.memory(RING, "good", content="Good text.")
    report = run(build, WordEmbedder())
    assert (report.files, report.blank, report.too_long, report.binary) == (2, 2, 1, 2)
    assert report.waiting == 0
    consistent(build)
    assert run(build, WordEmbedder()).blank == 0


def test_a_row_stored_without_an_embedder_is_found_later(build: Builder) -> None:
    build.memory(RING, "a", content="First.")
    run(build, WordEmbedder())
    build.memory(RING, "b", content="Second.")
    assert vectors.count_queued(build.db) == 1
    embedder = WordEmbedder()
    assert run(build, embedder).files == 1
    assert embedder.texts == ["b\nSecond."]


@pytest.mark.parametrize("other", [WordEmbedder("words@2"), WordEmbedder("words@1", dimension=16)])
def test_another_model_is_refused_with_the_cure(build: Builder, other: WordEmbedder) -> None:
    build.memory(RING, "a", content="First.")
    run(build, WordEmbedder())
    with pytest.raises(ModelUnavailable, match=r"words@1.*libraryfs embed --all"):
        run(build, other)
    assert other.calls == []
    assert run(build, other, anew=True).files == 1
    assert vectors.embedder(build.db) == (other.model, other.dimension)
    consistent(build)
    with pytest.raises(ModelUnavailable):
        run(build, WordEmbedder())


def test_a_run_that_stops_keeps_its_batches(build: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embed, "BATCH_CHUNKS", (3, 3))
    monkeypatch.setattr(embed, "_FIRST_BATCH", 3)
    for number in range(10):
        build.memory(RING, f"m{number}", content=f"Number {number}.")
    cancel, embedder, told = Cancel(), WordEmbedder(), []

    def stop() -> None:
        if len(embedder.calls) == 2:
            cancel.cancel()
            cancel.check()

    embedder.before = stop
    with pytest.raises(Cancelled):
        embed_missing(build.snapshot, embedder, cancel, lambda *now: told.append(now))
    consistent(build)
    assert vectors.count_queued(build.db) == 4
    assert told == [("embed", 0, 10), ("embed", 3, 10), ("embed", 6, 10)]
    rest = WordEmbedder()
    assert run(build, rest).files == 4
    assert not set(rest.texts) & {text for call in embedder.calls[:2] for text in call}


def test_re_embedding_goes_on_where_it_stopped(build: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embed, "BATCH_CHUNKS", (2, 2))
    monkeypatch.setattr(embed, "_FIRST_BATCH", 2)
    for number in range(6):
        build.memory(RING, f"m{number}", content=f"Number {number}.")
    run(build, WordEmbedder())

    def fail() -> None:
        if len(other.calls) == 2:
            raise ModelFailed("the endpoint answered 500")

    other = WordEmbedder("words@2")
    other.before = fail
    with pytest.raises(ModelFailed):
        run(build, other, anew=True)
    consistent(build)
    assert run(build, WordEmbedder("words@2")).files == 2


def test_a_row_that_changes_meanwhile_stays_queued(build: Builder) -> None:
    build.memory(RING, "a", content="Old text.")
    build.memory(RING, "b", content="Stays.")
    build.memory(RING, "c", content="Goes.")
    with Snapshot.open(build.path, write=True) as other:
        beside = Builder.__new__(Builder)
        beside.path, beside.snapshot, beside.now = build.path, other, build.now
        embedder = WordEmbedder()

        def change() -> None:
            beside.memory(RING, "a", content="New text.")
            delete(beside, "c")

        embedder.before = change
        report = run(build, embedder)
    assert (report.files, report.waiting) == (1, 1)
    consistent(build)
    assert run(build, WordEmbedder()).files == 1


def test_another_chunker_embeds_again(build: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    build.memory(RING, "a", content="Text.")
    run(build, WordEmbedder())
    monkeypatch.setattr(chunker, "VERSION", chunker.VERSION + 1)
    assert run(build, WordEmbedder()).files == 1
    assert run(build, WordEmbedder()).files == 0
    consistent(build)


def test_passages_are_bytes_of_the_file(build: Builder) -> None:
    content = "Größe 漢字 🐋. " * 60 + "\udc80\udcff end. " + LONG
    build.memory(RING, "m", content=content)
    run(build, WordEmbedder())
    entry = build.entry(memory, RING, "m")
    data = rows(build, f"SELECT group_concat(hex(data), '') FROM bodies WHERE ino = {entry.ino}")[0]
    raw = bytes.fromhex(data)
    spans = list(vectors.passages_of(build.db, entry.ino))
    assert len(spans) > 3
    for start, length in spans:
        piece = raw[start : start + length].decode("utf-8", "surrogateescape")
        assert piece == piece.strip()
        assert piece.endswith(".") or "\udc80" in piece
    assert spans[-1][0] + spans[-1][1] == len(raw.rstrip())


def test_an_older_snapshot_is_queued(tmp_path: Path) -> None:
    builder = Builder(tmp_path / "old.db")
    builder.memory(RING, "a", content="Text.")
    for table in ("unembedded", "unindexed"):
        builder.db.execute(f"DELETE FROM {table}")
    builder.db.execute("UPDATE settings SET value = 'older' WHERE key = 'schema'")
    builder.snapshot.close()
    with Snapshot.open(builder.path, write=True) as snapshot:
        assert vectors.count_queued(snapshot.db) == 1
        assert embed_missing(snapshot, WordEmbedder(), Cancel()).indexed == 1


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from("abc"), st.sampled_from(["", "one", LONG]), st.booleans()),
        st.tuples(st.just("item"), st.sampled_from("abc"), st.sampled_from(["", "one two"]), st.booleans()),
        st.tuples(st.just("artifact"), st.sampled_from("abc"), st.sampled_from(["\0", "one"]), st.booleans()),
        st.tuples(st.just("delete"), st.sampled_from("abc"), st.sampled_from("mia"), st.just(False)),
        st.tuples(st.just("embed"), st.just(""), st.just(""), st.booleans()),
    ),
    max_size=12,
)


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("steps")


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_whatever_happens_nothing_is_left_or_lost(folder: Path, steps: list[tuple[str, str, str, bool]]) -> None:
    path = folder / "library.db"
    for file in folder.iterdir():
        file.unlink()
    build = Builder(path)
    for what, name, text, flag in steps:
        if what == "put":
            build.memory(RING, name, "charter" if flag else "skill", text)
        elif what == "item":
            build.item(RING, name, "b" if flag else None, text)
        elif what == "artifact":
            build.artifact(RING, name, f"x/{name}" if flag else name, text)
        elif what == "embed":
            run(build, WordEmbedder(), anew=flag)
        else:
            _delete(build, text, name)
        consistent(build)
    run(build, WordEmbedder())
    assert vectors.count_queued(build.db) == 0
    consistent(build)
    build.snapshot.close()


def _delete(build: Builder, store: str, name: str) -> None:
    ring = namespaces.find_path(build.db, RING)
    table = {"m": memory, "i": workspace, "a": artifacts}[store]
    row = table.find(build.db, ring.id, name) if ring else None
    if ring is None or row is None:
        return
    with build.snapshot.transaction():
        if store == "m":
            memory.delete(build.db, ring, row.ino)
        else:
            table.delete(build.db, row.ino)


def test_what_waited_before_is_left_and_named(build: Builder) -> None:
    """An import embeds what it brought, and not what another one left."""
    build.memory(RING, "old", content="An old text.")
    build.memory(RING, "old and changed", content="Another old text.")
    older = vectors.waiting(build.db)
    build.memory(RING, "old and changed", content="It has changed.")
    build.memory(RING, "new", content="A new text.")
    embedder = WordEmbedder()
    report = run(build, embedder, older=older)
    assert (report.files, report.chunks, report.waiting) == (2, 2, 1)
    assert not any("An old text." in text for text in embedder.texts)
    assert run(build, WordEmbedder(), older=vectors.waiting(build.db)).waiting == 1
    assert (run(build, WordEmbedder()).files, vectors.waiting(build.db)) == (1, {})
    consistent(build)


def test_vectors_of_an_older_chunker_are_not_an_imports_work(build: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    build.memory(RING, "m", content="A text.")
    run(build, WordEmbedder())
    monkeypatch.setattr(chunker, "VERSION", chunker.VERSION + 1)
    assert run(build, WordEmbedder(), older={}).chunks == 0
    assert run(build, WordEmbedder()).chunks == 1


def test_progress_counts_chunks_from_the_first_call_on(build: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embed, "_CALL_CHUNKS", 8)
    for number in range(60):
        build.memory(RING, f"m{number:02}", content=LONG)
    build.artifact(RING, "picture", content="\0" * 100_000)
    told: list[tuple[str, int, int]] = []
    report = run(build, WordEmbedder(), progress=lambda *what: told.append(what))
    assert {step for step, _, _ in told} == {"embed"}
    assert told[0][1] == 0
    assert told[0][2] > 60  # known before anything is embedded, from the words
    done = [chunks for _, chunks, _ in told]
    assert done == sorted(done)
    assert len(told) > report.chunks / 8
    assert all(abs(total - report.chunks) < report.chunks / 5 for _, _, total in told[2:])
    assert told[-1] == ("embed", report.chunks, report.chunks)


def test_a_batch_takes_some_seconds_whatever_the_rate(build: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that what is done is kept: on a slow machine after a few chunks, on a quick one after more."""
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    pace = embed._Pace(build.snapshot, {}, lambda *what: None)
    for seconds, size in ((1.0, 256), (10.0, 26), (1000.0, 16), (0.01, 512)):
        pace.tell(64)
        now[0] += seconds
        pace.committed()
        assert pace.size == size
