"""Numbers for handles: promised to a thread, given at its next look-up, in use as long as a handle is."""

from hypothesis import given
from hypothesis import strategies as st

from libraryfs.mount import privates
from libraryfs.mount.privates import PRIVATE_INO, Place, Privates

HERE, THERE = Place(1, 5), Place(2, 5)


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


def test_promises_that_nobody_takes() -> None:
    """They are bounded in number, and in time."""
    numbers = Privates()
    for pid in range(privates.KEPT_PROMISES + 1):
        numbers.promise(pid, HERE)
    assert numbers.promised(0, HERE) is None
    assert numbers.promised(1, HERE) is not None
    assert numbers.place(PRIVATE_INO) is None
    numbers._promises[1].until = 0
    assert numbers.promised(1, HERE) is None
    assert numbers.place(PRIVATE_INO + 1) is None
