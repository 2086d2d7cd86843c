"""Numbers for handles: promised to a thread, given at its next look-up, in use as long as a handle is."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libraryfs.mount.asked import Place
from libraryfs.mount.privates import MAX_PROMISES, PRIVATE_INO, PROMISE_SECONDS, Privates

HERE, THERE = Place(1, 5), Place(2, 5)


class Clock:
    """time.monotonic, standing still until it is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(time, "monotonic", lambda: self.now)


def test_one_open() -> None:
    """Only the thread and the file that it was promised for get it, once; the last close takes it away."""
    numbers = Privates()
    numbers.promise(10, HERE)
    ino = numbers.promised(10, HERE)
    assert ino is not None
    assert ino >= PRIVATE_INO
    assert numbers.promised(10, HERE) == ino  # the kernel looks up twice
    assert numbers.promised(11, HERE) is numbers.promised(10, THERE) is None
    numbers.opened(ino, 10)
    assert numbers.promised(10, HERE) is None
    numbers.opened(ino, 12)  # by /proc/self/fd
    numbers.released(ino)
    assert numbers.place(ino) == HERE
    numbers.released(ino)
    assert numbers.place(ino) is None


@given(st.permutations([n for n in range(4) for _ in range(3)]))
def test_threads_that_cannot_be_told(order: list[int]) -> None:
    """Opens side by side, all of thread 0: each gets a number that is in use until its own close."""
    numbers, steps = Privates(), dict.fromkeys(range(4), 0)
    got: dict[int, int] = {}
    for one in order:
        if steps[one] == 0:
            numbers.promise(0, HERE)
        elif steps[one] == 1:
            ino = numbers.promised(0, HERE)
            assert ino is not None
            got[one] = ino
            numbers.opened(ino, 0)
        else:
            numbers.released(got.pop(one))
        steps[one] += 1
        assert all(numbers.place(ino) == HERE for ino in got.values())
    assert numbers.promised(0, HERE) is None


def test_a_long_way_to_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread among many looks up again and again: its number stays its own as long as it does."""
    clock = Clock(monkeypatch)
    numbers = Privates()
    numbers.promise(10, HERE)
    ino = numbers.promised(10, HERE)
    for _ in range(5):
        clock.now += PROMISE_SECONDS - 1
        assert numbers.promised(10, HERE) == ino
        assert numbers.promise(10, HERE)  # an ESTALE that the kernel did not follow
    assert ino is not None
    numbers.opened(ino, 10)
    assert numbers.promised(10, HERE) is None


def test_promises_that_nobody_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are bounded in time, and in number: none that may still be taken gives way to another."""
    clock = Clock(monkeypatch)
    numbers = Privates()
    for pid in range(1, MAX_PROMISES + 1):
        clock.now += 0.01
        assert numbers.promise(pid, HERE)
    assert not numbers.promise(MAX_PROMISES + 1, HERE)
    assert numbers.promised(MAX_PROMISES + 1, HERE) is None
    assert numbers.promised(1, HERE) == PRIVATE_INO  # which makes 2 the oldest
    clock.now += PROMISE_SECONDS - 0.01 * (MAX_PROMISES - 2.5)
    assert numbers.promise(MAX_PROMISES + 1, HERE)
    assert numbers.place(PRIVATE_INO) == HERE
    assert numbers.promised(2, HERE) is None
    assert numbers.place(PRIVATE_INO + 1) is None
    assert numbers.promised(3, HERE) is not None
