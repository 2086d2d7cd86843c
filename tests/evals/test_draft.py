"""Drafts of eval sets: made from the ring's own files, refused until edited, and questions appended."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libraryfs.errors import EvalSetError
from libraryfs.evals import draft
from libraryfs.evals.evalset import parse_evalset
from libraryfs.library.resolver import Library
from libraryfs.nodes import Entry
from tests.evals.world import RING, World

DEPLOY = """---
title: Deploy
---
# Deploy the site

Push to **main** and wait for the pipeline, which takes 12 minutes.

## Rollback

Run `git revert HEAD` and push again. The pipeline does the rest.

## Who may deploy?

- anyone in the release group
- nobody on a Friday, whatever they say
"""


def _library(world: World, principal: str = "alice") -> Library:
    return Library(world.build.snapshot, principal)


def test_a_draft_of_a_ring(world: World) -> None:
    world.build.memory(RING, "deploy", content=DEPLOY)
    world.build.memory(
        "/ring/secret", "hidden", content="# Hidden\n\nThe **password** of the vault is swordfish, really.\n"
    )
    found = draft.draft(_library(world), RING, 20)
    by_question = {one.question: one for one in found}
    assert by_question["What should I know about “Deploy the site”?"].fragments == ("main", "12 minutes")
    rollback = by_question["What does “Deploy the site” say about “Rollback”?"]
    assert (rollback.fragments, rollback.path, rollback.line) == (("git revert HEAD",), f"{RING}/skills/deploy.md", 8)
    assert by_question["Who may deploy?"].fragments == ("anyone in the release group",)
    assert not any("eval-set" in one.path or "secret" in one.path for one in found)
    text = draft.render(RING, found)
    with pytest.raises(EvalSetError, match="line 2: this set is a draft"):
        parse_evalset(text.encode())
    edited = parse_evalset(text.replace("draft: true\n", "").encode())
    assert [(q.text, q.fragments) for q in edited.questions] == [(one.question, one.fragments) for one in found]
    assert len(draft.draft(_library(world), RING, 2)) == 2


def test_each_file_is_read_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.build.memory(RING, "deploy", content=DEPLOY)
    read: list[str] = []
    original = Library.content

    def counted(self: Library, entry: Entry) -> bytes:
        read.append(self.path_of(entry))
        return original(self, entry)

    monkeypatch.setattr(Library, "content", counted)
    draft.draft(_library(world), RING, 20)
    assert f"{RING}/skills/deploy.md" in read
    assert len(read) == len(set(read))


@given(st.text(max_size=400))
def test_sections_of_any_text(text: str) -> None:
    for section in draft.sections(text, "stem"):
        assert section.text is not None
        assert section.line >= 1


_words = st.text(st.characters(categories=("L", "N")), min_size=1, max_size=20)


@given(_words, st.lists(_words, min_size=1, max_size=4, unique_by=str.casefold), st.booleans())
def test_an_appended_question_is_read_back(question: str, fragments: list[str], must: bool) -> None:
    text = draft.appended("## First?\n- one\n", question, fragments, ["/ring/dev"], must=must)
    try:
        read = parse_evalset(text.encode()).questions[-1]
    except EvalSetError as error:  # the first question's words, a figure that reads as a number of a list, …
        assert "line " in str(error)
        return
    assert (read.text, read.must, read.paths) == (question, must, ("/ring/dev",))
