"""The HTTP/2 connections of one transport, at moments that no server can time."""

import time
from collections.abc import Iterator

import pytest

from rme.transport import AddressPolicy, FailureKind, Reply, Request
from rme.transport.addresses import Origin
from rme.transport.http2.pool import Http2Pool
from rme.transport.http2.stream import Stream
from rme.transport.loop import Loop
from rme.transport.resolver import Resolver
from tests.fakes import http2, tcp
from tests.fakes.http2 import Http2Connection, Http2Server
from tests.fakes.tls import ca_pem


class Driver:
    """Drives a pool step by step."""

    def __init__(self) -> None:
        self.loop = Loop(per_host=10)
        self.resolver = Resolver(self.loop, AddressPolicy(["localhost"]), [])
        self.pool = Http2Pool(self.loop, self.resolver)

    def start(self, server: Http2Server, timeout: float = 20.0) -> Stream:
        """Start a request, and wait until it is written."""
        request = Request(server.url, b"x", http2=True, ca_pem=ca_pem(), timeout=timeout)
        stream = self.pool.start(request, Origin("https", "localhost", server.port))
        self.pool.send_waiting()
        while not stream.id:
            self.loop.step(time.monotonic() + 5)
            self.pool.send_waiting()
        return stream

    def wait_for_all(self, count: int) -> list[int | FailureKind]:
        """Return the results of all requests."""
        until = time.monotonic() + 30
        while len(self.pool.ended) < count and time.monotonic() < until:
            self.loop.step(until)
        return self.results()

    def results(self) -> list[int | FailureKind]:
        return [one.status if isinstance(one, Reply) else one.kind for _, one in self.pool.ended]


@pytest.fixture
def driver() -> Iterator[Driver]:
    made = Driver()
    yield made
    made.pool.close()
    made.resolver.close()
    made.loop.close()


def test_late_requests_on_a_lost_connection_end_once(driver: Driver) -> None:
    def answer(connection: Http2Connection, stream: http2.Stream) -> None:
        if len(server.seen) == 3:
            tcp.reset(connection.socket)

    with Http2Server(answer) as server:
        streams = [driver.start(server) for _ in range(3)]
        assert server.wait_until_closed()
        driver.pool.expire(time.monotonic() + 60)  # before anybody has looked at the socket
        assert sorted(map(id, streams)) == sorted(id(one) for one, _ in driver.pool.ended)
        assert driver.results() == [FailureKind.UNKNOWN] * 3


def test_idle_connection_is_closed_in_time(driver: Driver) -> None:
    with Http2Server() as server:
        driver.start(server)
        assert driver.wait_for_all(1) == [200]
        driver.pool.expire(time.monotonic() + 40)
        driver.start(server)
        assert driver.wait_for_all(2) == [200] * 2
        assert server.connections == 1
        driver.pool.expire(time.monotonic() + 50)
        assert server.wait_until_closed()


def test_connection_of_a_cancelled_request_is_not_reused(driver: Driver) -> None:
    def answer(connection: Http2Connection, stream: http2.Stream) -> None:
        if len(server.seen) > 2:
            http2.ok(connection, stream)

    with Http2Server(answer) as server:
        for stream in [driver.start(server) for _ in range(2)]:
            driver.pool.cancel(stream)
        driver.pool.clear()
        assert server.wait_until_closed()
        driver.start(server)
        assert driver.wait_for_all(1) == [200]
        assert server.connections == 2


def test_idle_pool_has_no_deadline(driver: Driver) -> None:
    with Http2Server() as server:
        stream = driver.start(server)
        assert driver.pool.next_deadline() == stream.deadline
        driver.wait_for_all(1)
        assert driver.pool.next_deadline() == 0.0
        driver.pool.clear()
        assert driver.pool.next_deadline() == float("inf")


def test_requests_expire_in_order_of_their_deadlines(driver: Driver) -> None:
    with Http2Server(lambda connection, stream: None) as server:
        patience = [30.0, 10.0, 20.0]
        streams = [driver.start(server, seconds) for seconds in patience]
        for place in (1, 2, 0):
            due = driver.pool.next_deadline()
            assert due == streams[place].deadline
            driver.pool.expire(due - 0.01)
            assert driver.pool.ended == []
            driver.pool.expire(due)
            assert [one for one, _ in driver.pool.ended] == [streams[place]]
            assert driver.results() == [FailureKind.UNKNOWN]
            driver.pool.clear()


def test_end_of_the_first_request_keeps_the_deadlines_of_others(driver: Driver) -> None:
    def answer(connection: Http2Connection, stream: http2.Stream) -> None:
        if len(server.seen) == 2:
            http2.ok(connection, stream)

    with Http2Server(answer) as server:
        late = driver.start(server, 30.0)
        first = driver.start(server, 10.0)
        assert driver.wait_for_all(1) == [200]
        driver.pool.clear()
        driver.pool.expire(first.deadline)
        assert driver.pool.ended == []
        assert driver.pool.next_deadline() == late.deadline
        driver.pool.expire(late.deadline)
        assert driver.results() == [FailureKind.UNKNOWN]
