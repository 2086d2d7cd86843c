import pytest
from hypothesis import given
from hypothesis import strategies as st

from libraryfs import paths
from libraryfs.errors import InvalidPath
from libraryfs.paths import SECTIONS, AgentPath, RingPath, Root

NAMES = st.text(min_size=1, max_size=40).filter(
    lambda name: name not in (".", "..") and "/" not in name and "\0" not in name and len(name.encode()) <= 255
)
RINGS = st.builds(RingPath, NAMES, st.none(), st.just(())) | st.builds(
    RingPath, NAMES, st.sampled_from(SECTIONS), st.lists(NAMES).map(tuple)
)
AGENTS = st.builds(AgentPath, NAMES, st.just(False), st.none()) | st.builds(
    AgentPath, NAMES, st.just(True), st.none() | NAMES
)


@given(st.sampled_from([Root(), Root("ring"), Root("agent")]) | RINGS | AGENTS)
def test_format_and_parse_are_inverse(path: paths.LibraryPath) -> None:
    assert paths.parse(paths.format_path(path)) == path


@given(st.text(max_size=300))
def test_any_text_parses_or_is_refused_with_its_reason(text: str) -> None:
    try:
        path = paths.parse(text)
    except InvalidPath as error:
        reason = str(error)
    else:
        reason = "none"
        assert paths.format_path(path) == (text.removesuffix("/") or "/")
    assert len(reason.splitlines()) == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ring/dev",
        "//",
        "/ring//skills",
        "/ring/./skills",
        "/ring/dev/../ops",
        "/ring/dev/no-such-section",
        "/other/dev",
        "/agent/alice/skills",
        "/agent/alice/memory/a/b",
        "/ring/a\0b",
        "/ring/" + "x" * 256,
    ],
)
def test_refused(text: str) -> None:
    with pytest.raises(InvalidPath):
        paths.parse(text)


def test_a_namespace_is_a_whole_ring_or_agent() -> None:
    assert paths.parse_namespace("/ring/dev") == ("ring", "dev")
    assert paths.parse_namespace("/agent/alice/") == ("agent", "alice")
    for text in ("/", "/ring", "/ring/dev/skills", "/agent/alice/memory", "/ring/.ask", "/ring/\udc80"):
        with pytest.raises(InvalidPath):
            paths.parse_namespace(text)


def test_an_unknown_type_is_a_general_memory() -> None:
    assert [paths.section_of(kind) for kind in ("skill", "policy", "semantic", "procedural", "")] == [
        "skills",
        "policies",
        "memories",
        "memories",
        "memories",
    ]
