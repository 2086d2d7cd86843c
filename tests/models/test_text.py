"""A reply as it grows: whole characters only, and nothing of a stop string."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from libraryfs.models.worker_text import Text

stops = st.lists(st.text("ab\n", min_size=1, max_size=3), max_size=3)


@given(st.text("abcé東\n😀", max_size=30), stops, st.lists(st.integers(1, 3), max_size=60))
def test_pieces_make_the_whole_and_hold_no_stop(text: str, stop: list[str], sizes: list[int]) -> None:
    data = text.encode()
    reply, shown = Text(stop), ""
    for size in [*sizes, len(data)]:
        shown += reply.add(data[:size])
        data = data[size:]
        assert reply.whole.startswith(shown)
        if reply.stopped:
            break
    shown += reply.end()
    assert shown == reply.whole
    assert text.startswith(shown)
    assert not any(word in shown for word in stop)
    if not any(word in text for word in stop):
        assert shown == text
        assert not reply.stopped


def test_the_start_of_a_stop_string_is_held_back_and_then_given() -> None:
    reply = Text(["END"])
    assert reply.add(b"one E") == "one "
    assert reply.add(b"N") == ""
    assert reply.add(b"X") == "ENX"
    assert reply.add(b" two END three") == " two "
    assert (reply.stopped, reply.whole, reply.end()) == (True, "one ENX two ", "")


def test_broken_bytes_do_not_stop_a_reply() -> None:
    reply = Text([])
    assert reply.add(b"a\xff\xe6\x9d") == "a\ufffd"
    assert reply.end() == "\ufffd"
