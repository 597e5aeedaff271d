"""Requests in flight: added while others run, refused, and cancelled."""

import threading
import time

import pytest

from rme.transport import (
    AddressPolicy,
    Failure,
    FailureKind,
    Reply,
    Request,
    RequestsInFlight,
    Transport,
)
from tests.fakes import tcp
from tests.fakes.http1 import Http1Server, respond
from tests.stopwatch import Stopwatch

OPEN = AddressPolicy(["127.0.0.1"])


@pytest.fixture
def in_flight():
    made = RequestsInFlight(Transport(OPEN, per_host=50))
    yield made
    made.close()


def everything(in_flight, seconds=5.0):
    """Step until all have ended."""
    found, until = {}, time.monotonic() + seconds
    while len(in_flight) and time.monotonic() < until:
        found.update(in_flight.step(0.1))
    return found


def test_added_request_does_not_wait_for_a_slow_one(in_flight):
    go = threading.Event()

    def answer(sock, seen):
        if seen.path == "/slow":
            go.wait(30)
        respond(sock, 200, seen.path.encode())

    with Http1Server(answer) as server:
        in_flight.add("slow", Request(f"{server.url}slow", b"x"))
        assert in_flight.step(0.2) == []
        given = {}
        for number in range(20):
            in_flight.add(number, Request(f"{server.url}{number}", b"x"))
        while len(in_flight) > 1:
            given.update(in_flight.step(1.0))
        assert {key: reply.body for key, reply in given.items()} == {
            number: f"/{number}".encode() for number in range(20)
        }
        go.set()
        ((key, reply),) = everything(in_flight).items()
        assert (key, reply.status, reply.body) == ("slow", 200, b"/slow")


def test_a_step_waits_no_longer_than_it_may(in_flight):
    with Http1Server(lambda sock, seen: tcp.stall(sock)) as server:
        in_flight.add("a", Request(server.url, b"x"))
        with Stopwatch() as watch:
            assert in_flight.step(0.2) == []
        assert watch.seconds < 3


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://93.184.216.34/", "the address is not https"),
        ("smtp://127.0.0.1/", "not an address to call"),
        ("https://user@127.0.0.1/", "not an address to call"),
        ("https://10.0.0.1/", "the address is not public"),
    ],
)
def test_refused_address_is_a_failure(in_flight, url, why):
    in_flight.add("a", Request(url, b"x"))
    assert len(in_flight) == 1
    assert everything(in_flight) == {"a": Failure(FailureKind.REFUSED_ADDRESS, why)}
    assert len(in_flight) == 0


def test_refused_request_does_not_wait_for_others(in_flight):
    with Http1Server(lambda sock, seen: tcp.stall(sock)) as server:
        in_flight.add("slow", Request(server.url, b"x"))
        in_flight.add("bad", Request("smtp://127.0.0.1/", b"x"))
        with Stopwatch() as watch:
            assert [key for key, _ in in_flight.step(5.0)] == ["bad"]
        assert watch.seconds < 3


def test_step_without_requests_returns_nothing(in_flight):
    assert in_flight.step(5.0) == []


def test_close_cancels_requests_in_flight():
    in_flight = RequestsInFlight(Transport(OPEN))
    left = threading.Event()

    def answer(sock, seen):
        sock.settimeout(5)
        assert sock.recv(1) == b""
        left.set()

    with Http1Server(answer) as server:
        in_flight.add("a", Request(server.url, b"x"))
        while not server.seen:
            in_flight.step(0.05)
        in_flight.close()
        assert left.wait(30)
    assert len(in_flight) == 0


def test_lost_connection_is_a_failure(in_flight):
    with Http1Server(lambda sock, seen: False) as server:
        in_flight.add("a", Request(server.url, b"x"))
        in_flight.add("b", Request(server.url.replace("127.0.0.1", "[::1]"), b"x"))
        given = everything(in_flight)
    assert isinstance(given["a"], Failure)
    assert given["b"] == Failure(FailureKind.REFUSED_ADDRESS, "the address is not https")
    assert not any(isinstance(result, Reply) for result in given.values())
