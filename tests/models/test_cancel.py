"""Deadlines and cancellation."""

from __future__ import annotations

import threading
import time

import pytest

from libraryfs.errors import Cancelled, DeadlineExceeded
from libraryfs.models.cancel import Cancel


def test_without_a_deadline_nothing_ends() -> None:
    cancel = Cancel()
    cancel.check()
    assert cancel.remaining() is None


def test_a_deadline_passes() -> None:
    cancel = Cancel.after(0.02)
    cancel.check()
    time.sleep(0.03)
    assert cancel.remaining() == 0
    assert not cancel.cancelled
    with pytest.raises(DeadlineExceeded):
        cancel.check()


def test_cancel_wakes_each_watcher_once() -> None:
    cancel = Cancel()
    calls: list[str] = []
    with cancel.watch(lambda: calls.append("gone")):
        pass
    with cancel.watch(lambda: calls.append("first")), cancel.watch(lambda: calls.append("second")):
        thread = threading.Thread(target=cancel.cancel)
        thread.start()
        thread.join()
        cancel.cancel()
    assert calls == ["first", "second"]
    with pytest.raises(Cancelled):
        cancel.check()


def test_a_watcher_that_comes_late_is_woken() -> None:
    cancel = Cancel()
    cancel.cancel()
    calls: list[int] = []
    with cancel.watch(lambda: calls.append(1)):
        assert calls == [1]
