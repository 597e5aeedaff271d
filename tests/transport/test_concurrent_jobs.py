"""Concurrent jobs: results in order, connections of their own, and errors raised."""

import threading

import pytest

from rme.transport import Reply, Request, Transport, run_concurrently
from tests.fakes.http1 import Http1Server


def test_each_job_has_its_own_connections(transport: Transport) -> None:
    with Http1Server() as server:

        def ask(own: Transport) -> int:
            (reply,) = own.perform([Request(server.url, b"x")])
            assert isinstance(reply, Reply)
            return id(own)

        first = run_concurrently([ask] * 3, transport)
        again = run_concurrently([ask] * 3, transport)
        assert first == again
        assert len(set(first)) == 3
        assert first[0] == id(transport)
        assert server.connections == 3


def test_results_are_in_the_order_of_the_jobs(transport: Transport) -> None:
    together = threading.Barrier(3)

    def wait(number: int) -> int:
        together.wait(30)  # all run at once
        return number

    found = run_concurrently([lambda own, n=n: wait(n) for n in range(3)], transport)  # type: ignore[misc]
    assert found == [0, 1, 2]
    assert run_concurrently([], transport) == []


@pytest.mark.parametrize("failing", [0, 1])
def test_an_error_is_raised_when_all_have_ended(transport: Transport, failing: int) -> None:
    ended = []

    def job(number: int) -> None:
        if number == failing:
            raise ValueError(number)
        ended.append(number)

    with pytest.raises(ValueError, match=str(failing)):
        run_concurrently([lambda own, n=n: job(n) for n in range(2)], transport)  # type: ignore[misc]
    assert ended == [1 - failing]
