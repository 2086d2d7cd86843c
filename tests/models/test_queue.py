"""The worker's queue."""

from __future__ import annotations

import threading

from libraryfs.models import wire
from libraryfs.models.worker_tasks import Requests, Task


def task(number: int, *, bulk: bool = False) -> Task:
    def send(header: wire.Header, body: bytes) -> None:
        raise AssertionError("nothing to send")

    return Task({"id": number, "bulk": bulk}, bytearray(), send)


def numbers(requests: Requests, count: int) -> list[int]:
    return [requests.next().header["id"] for _ in range(count)]


def test_first_come_first_served() -> None:
    requests = Requests()
    for number in (3, 1, 2):
        requests.add(task(number))
    assert numbers(requests, 3) == [3, 1, 2]


def test_questions_and_bulk_jobs_take_turns() -> None:
    requests = Requests()
    for number in (10, 11, 12, 13):
        requests.add(task(number, bulk=True))
    assert numbers(requests, 1) == [10]
    for number in (1, 2):
        requests.add(task(number))
    assert numbers(requests, 5) == [1, 11, 2, 12, 13]


def test_a_cancelled_request_leaves_the_queue_or_is_stopped() -> None:
    requests = Requests()
    for number in (1, 2, 3):
        requests.add(task(number, bulk=number == 2))
    first = requests.next()
    requests.cancel(1)
    requests.cancel(2)
    requests.cancel(99)
    assert first.stopped.is_set()
    second = requests.next()
    assert second.header["id"] == 3
    assert not second.stopped.is_set()


def test_next_waits_for_a_request() -> None:
    requests = Requests()
    got: list[int] = []
    thread = threading.Thread(target=lambda: got.extend(numbers(requests, 1)))
    thread.start()
    thread.join(0.05)
    assert thread.is_alive()
    requests.add(task(7))
    thread.join(5)
    assert got == [7]
