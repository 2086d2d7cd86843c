"""The eval set's Markdown: what is a question and a fragment, and each refusal with its line."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libraryfs.errors import EvalSetError
from libraryfs.evals.evalset import ABSTAIN, parse_evalset


def test_a_whole_set() -> None:
    found = parse_evalset(
        b"---\nllm_judge: false\npaths: /ring/dev\nrepeats: 3\n---\n# Our set\n\nProse, and a list of nobody's:"
        b"\n\n"
        b"- stray\n\n## When do *we* `deploy`?\n\npaths: /ring/dev/decisions, `/ring/dev/policies`\n\n"
        b"- **Thursday**\n- [after the stand-up](https://example.org)\n\n### A note\n\nprose\n\n"
        b"## Who founded Rome?\n- (not in the library)\n"
    )
    assert found.options.llm_judge is False
    assert found.options.paths == ("/ring/dev",)
    assert found.options.repeats == 3
    first, second = found.questions
    assert first.text == "When do we deploy?"
    assert first.fragments == ("Thursday", "after the stand-up")
    assert first.paths == ("/ring/dev/decisions", "/ring/dev/policies")
    assert (first.line, first.paths_line, second.line) == (12, 14, 23)
    assert second.expects_abstention
    assert not first.expects_abstention


@pytest.mark.parametrize(
    ("bullets", "fragments"),
    [
        ("- a\n  - b\n    - c\n- d", ("a", "b", "c", "d")),
        ("* a\n+ b", ("a", "b")),
        ("- one\n  two", ("one two",)),
        ("- 1945.", ("1945.",)),
        ("- 3. May", ("3. May",)),
        ("- a\n\n  second paragraph", ("a second paragraph",)),
        ("- ```\n  ## x = 1\n  ```", ("## x = 1",)),
        ("- same\n- Same", ("same",)),
        ("- a &amp; b", ("a & b",)),
        ("- <b>bold</b> <!-- why -->", ("<b>bold</b>",)),
        ("- ![alt](x.png)", ("alt",)),
        ("- ( NOT in  the library )".replace("( ", "(").replace(" )", ")"), (ABSTAIN,)),
        ("- not in the library", ("not in the library",)),
        ("- a\n\n- b\n\nprose\n\n- c", ("a", "b", "c")),
        ("1) outside is refused".replace("1) ", "- 1) "), ("1) outside is refused",)),
    ],
)
def test_bullets(bullets: str, fragments: tuple[str, ...]) -> None:
    assert parse_evalset(f"## q\n\n{bullets}\n".encode()).questions[0].fragments == fragments


def test_deeply_nested_bullets_are_all_read() -> None:
    bullets = "\n".join("  " * depth + f"- level {depth}" for depth in range(60))
    assert len(parse_evalset(f"## q\n{bullets}\n".encode()).questions[0].fragments) == 60


def test_what_is_no_question() -> None:
    text = "```\n## in a fence\n- x\n```\n\n    ## in an indented block\n\n> ## quoted\n> - x\n\n"
    text += "<!--\n## in a comment\n- x\n-->\n\n"
    text += "## the only one\n- a\n\nText\n---\n\n# Another part\n\n- not its bullet\n"
    (question,) = parse_evalset(text.encode()).questions
    assert question.text == "the only one"
    assert question.fragments == ("a",)


def test_a_paths_line_below_the_bullets_is_one_too() -> None:
    (question,) = parse_evalset(b"## q\n- a\nstill a\nPaths: /ring/dev\n").questions
    assert question.fragments == ("a still a",)
    assert question.paths == ("/ring/dev",)
    assert question.paths_line == 4


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_newlines_and_byte_order_mark(newline: str, mark: bytes) -> None:
    text = "---\nllm_judge: true\n---\n## q\n- a\n- b\n"
    found = parse_evalset(mark + text.replace("\n", newline).encode())
    assert found == parse_evalset(text.encode())
    with pytest.raises(EvalSetError, match=r"^line 6: an empty bullet"):
        parse_evalset(mark + text.replace("- b", "-").replace("\n", newline).encode())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: no question"),
        ("prose\n\n- a\n", "line 1: no question"),
        ("## a\n- x\n\n##\n- y", "line 4: a '##' heading without a question"),
        ("## a\n- x\n\n## b\n", "line 4: no expected fragment for 'b'"),
        ("## a\n- x\n-\n- y", "line 3: an empty bullet"),
        ("## a\n- x\n- <!-- later -->", "line 3: an empty bullet"),
        ("## a\n- - x", "line 2: an empty bullet"),
        ("## a\n- x\n## b\n- y\n## A \n- z", "line 5: 'A' is asked in line 1 already"),
        ("## a\n\n1. x", "line 3: a numbered list"),
        ("## a\n- x\n- (not in the library)", "line 1: '(not in the library)' beside other fragments"),
        ("## a\npaths: ring/dev\n- x", "line 2: 'ring/dev': a library path starts with /"),
        ("## a\npaths: /ring/dev/../x\n- x", "line 2: '/ring/dev/../x'"),
        ("## a\npaths:\n- x", "line 2: 'paths:' names no path"),
        ("## a\npaths: /ring/a\npaths: /ring/b\n- x", "line 3: a second 'paths:' line"),
        ("---\nllm_judge: false\n", "line 1: front matter that is not closed"),
        ("---\na: 1\nb: [\n---\n## a\n- x", "line 3: front matter is not YAML"),
        ("---\nx: *y\n---\n", "line 2: front matter is not YAML"),
        ("---\nt: 2026-99-99\n---\n", "line 2: front matter cannot be read"),
        ("---\n" + "[" * 500 + "\n---\n", "line 2: front matter is not YAML"),
        ("---\n- a\n---\n", "line 2: the front matter is not a mapping"),
        ("---\nllm_judge: true\nllm_judge: false\n---\n", "line 3: llm_judge is set in line 2 already"),
        ("---\ntitle: t\nrepeats: 51\n---\n", "line 3: repeats: Input should be less than or equal to 50"),
        ("---\nrepeats: 0\n---\n", "line 2: repeats:"),
        ("---\nllm_judge: 1\n---\n", "line 2: llm_judge:"),
        ("---\n\nlatency_budget_ms: -1\n---\n", "line 3: latency_budget_ms:"),
        ("---\nretrieval: best\n---\n", "line 2: retrieval:"),
        ("---\npaths: [/ring/dev, dev]\n---\n", "line 2: paths: 'dev'"),
        ("---\nlmm_judge: false\n---\n", "line 2: lmm_judge: no such option; there are llm_judge"),
        ("## a\n- x\0y", "line 2: holds a NUL"),
    ],
)
def test_refused_with_the_line(text: str, message: str) -> None:
    with pytest.raises(EvalSetError) as caught:
        parse_evalset(text.encode())
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_not_utf8() -> None:
    with pytest.raises(EvalSetError, match=r"^line 2: not UTF-8 \(byte 0xff\)"):
        parse_evalset(b"## a\n- \xff")


def test_two_thousand_questions_are_read_quickly() -> None:
    text = "\n".join(f"## Question {i}?\npaths: /ring/dev\n- one {i}\n- two" for i in range(2000))
    start = time.perf_counter()
    assert len(parse_evalset(text.encode()).questions) == 2000
    assert time.perf_counter() - start < 5


@given(st.text(alphabet="#-*+ \n\t`>1.)ab:/<!ü\r[](_", max_size=80))
def test_any_text_gives_a_set_or_one_line_with_a_number(text: str) -> None:
    message = ""
    try:
        found = parse_evalset(text.encode())
    except EvalSetError as error:
        message = str(error)
    if message:
        assert message.startswith("line ")
        assert "\n" not in message
        assert 1 <= int(message.split(":")[0][5:]) <= len(text) + 1
    else:
        assert all(question.text and question.fragments for question in found.questions)


_words = (
    st.text(alphabet="abcdefgh äß中", min_size=1, max_size=20).map(lambda text: " ".join(text.split())).filter(bool)
)


@given(st.dictionaries(_words, st.lists(_words, min_size=1, max_size=4), min_size=1, max_size=6))
def test_what_is_written_is_read(questions: dict[str, list[str]]) -> None:
    by_key = {" ".join(text.casefold().split()): (text, fragments) for text, fragments in questions.items()}
    text = "\n\n".join(f"## {text}\n" + "\n".join(f"- {f}" for f in fragments) for text, fragments in by_key.values())
    found = parse_evalset(text.encode()).questions
    assert [question.text for question in found] == [text for text, _ in by_key.values()]
    for question, (_, fragments) in zip(found, by_key.values(), strict=True):
        assert set(question.fragments) <= set(fragments)
        assert {fragment.casefold() for fragment in question.fragments} == {f.casefold() for f in fragments}
