"""The connections over HTTP/2 of one transport, and the moments that no server can time."""

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
    """Move a multiplex by hand."""

    def __init__(self) -> None:
        self.loop = Loop(per_host=10)
        self.names = Resolver(self.loop, AddressPolicy(["localhost"]), [])
        self.multiplex = Http2Pool(self.loop, self.names)

    def begin(self, server: Http2Server, timeout: float = 20.0) -> Stream:
        """Set a request on its way, until it is written."""
        request = Request(server.url, b"x", http2=True, ca_pem=ca_pem(), timeout=timeout)
        stream = self.multiplex.begin(request, Origin("https", "localhost", server.port))
        self.multiplex.push()
        while stream.connection is None:
            self.loop.step(time.monotonic() + 5)
            self.multiplex.push()
        return stream

    def wait_for_all(self, count: int) -> list[int | FailureKind]:
        """Give what became of all requests."""
        until = time.monotonic() + 5
        while len(self.multiplex.ended) < count and time.monotonic() < until:
            self.loop.step(until)
        return self.results()

    def results(self) -> list[int | FailureKind]:
        return [
            one.status if isinstance(one, Reply) else one.kind for _, one in self.multiplex.ended
        ]


@pytest.fixture
def driver() -> Iterator[Driver]:
    made = Driver()
    yield made
    made.multiplex.close()
    made.names.close()
    made.loop.close()


def test_what_expires_on_a_lost_connection_ends_once(driver: Driver) -> None:
    def answer(connection: Http2Connection, stream: http2.Stream) -> None:
        if len(server.seen) == 3:
            tcp.reset(connection.socket)

    with Http2Server(answer) as server:
        streams = [driver.begin(server) for _ in range(3)]
        assert server.wait_until_closed()
        driver.multiplex.expire(time.monotonic() + 60)  # before anybody has looked at the socket
        assert sorted(map(id, streams)) == sorted(id(one) for one, _ in driver.multiplex.ended)
        assert driver.results() == [FailureKind.UNKNOWN] * 3


def test_idle_connection_is_closed_in_time(driver: Driver) -> None:
    with Http2Server() as server:
        driver.begin(server)
        assert driver.wait_for_all(1) == [200]
        driver.multiplex.expire(time.monotonic() + 40)
        driver.begin(server)
        assert driver.wait_for_all(2) == [200] * 2
        assert server.connections == 1
        driver.multiplex.expire(time.monotonic() + 50)
        assert server.wait_until_closed()


def test_connection_of_what_was_broken_off_is_not_used_again(driver: Driver) -> None:
    def answer(connection: Http2Connection, stream: http2.Stream) -> None:
        if len(server.seen) > 2:
            http2.ok(connection, stream)

    with Http2Server(answer) as server:
        for stream in [driver.begin(server) for _ in range(2)]:
            driver.multiplex.drop(stream)
        driver.multiplex.clear()
        assert server.wait_until_closed()
        driver.begin(server)
        assert driver.wait_for_all(1) == [200]
        assert server.connections == 2


def test_nothing_is_to_be_done_for_who_is_idle(driver: Driver) -> None:
    with Http2Server() as server:
        stream = driver.begin(server)
        assert driver.multiplex.next_deadline() == stream.deadline
        driver.wait_for_all(1)
        assert driver.multiplex.next_deadline() == 0.0
        driver.multiplex.clear()
        assert driver.multiplex.next_deadline() == float("inf")


def test_each_expires_in_its_own_time(driver: Driver) -> None:
    with Http2Server(lambda connection, stream: None) as server:
        patience = [30.0, 10.0, 20.0]
        streams = [driver.begin(server, seconds) for seconds in patience]
        for place in (1, 2, 0):
            due = driver.multiplex.next_deadline()
            assert due == streams[place].deadline
            driver.multiplex.expire(due - 0.01)
            assert driver.multiplex.ended == []
            driver.multiplex.expire(due)
            assert [one for one, _ in driver.multiplex.ended] == [streams[place]]
            assert driver.results() == [FailureKind.UNKNOWN]
            driver.multiplex.clear()


def test_what_ends_first_leaves_the_others_their_time(driver: Driver) -> None:
    def answer(connection: Http2Connection, stream: http2.Stream) -> None:
        if len(server.seen) == 2:
            http2.ok(connection, stream)

    with Http2Server(answer) as server:
        late = driver.begin(server, 30.0)
        first = driver.begin(server, 10.0)
        assert driver.wait_for_all(1) == [200]
        driver.multiplex.clear()
        driver.multiplex.expire(first.deadline)
        assert driver.multiplex.ended == []
        assert driver.multiplex.next_deadline() == late.deadline
        driver.multiplex.expire(late.deadline)
        assert driver.results() == [FailureKind.UNKNOWN]
