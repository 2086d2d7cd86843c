"""The worker's queue."""

from __future__ import annotations

import socket
import threading

from libraryfs.models.worker_tasks import Connection, Requests, Task

CLIENT, OTHER = Connection(socket.socket()), Connection(socket.socket())


def task(number: int, *, bulk: bool = False, client: Connection = CLIENT) -> Task:
    return Task({"id": number, "bulk": bulk}, bytearray(), client)


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
    requests.cancel(CLIENT, 1)
    requests.cancel(CLIENT, 2)
    requests.cancel(CLIENT, 99)
    requests.cancel(OTHER, 3)
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


def test_a_client_that_goes_takes_its_requests_along() -> None:
    requests = Requests()
    requests.add(task(1))
    requests.add(task(1, client=OTHER))
    requests.add(task(2, bulk=True))
    first = requests.next()
    requests.drop(CLIENT)
    assert first.stopped.is_set()
    second = requests.next()
    assert second.connection is OTHER
    assert not second.stopped.is_set()
    assert requests.idle_seconds() == 0
