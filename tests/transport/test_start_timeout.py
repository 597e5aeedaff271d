"""A start time-out: requests that end as not started, reports, and the limit of a host."""

import threading
import time

import pytest

from rme.transport import NOT_STARTED, AddressPolicy, Failure, Reply, Request, Transport
from rme.transport.host_limits import HostLimits
from tests.fakes.http1 import Http1Server, respond
from tests.fakes.slow_smtp import SlowSmtp
from tests.fakes.smsc import wait_for
from tests.fakes.tcp import TIME_OUT
from tests.transport.mails import mail

OPEN = AddressPolicy(["127.0.0.1"])


@pytest.fixture
def root():
    made = Transport(OPEN)
    yield made
    made.close()


def test_slow_results_are_reported_and_waiting_requests_not_started(root):
    go, reports = threading.Event(), []

    def answer(sock, seen):
        if seen.body == b"slow":
            go.wait(10)
        respond(sock, 200, seen.body)

    def note(answered):
        reports.append([(place, isinstance(result, Reply)) for place, result in answered])
        go.set()

    bodies = [b"fast"] * 3 + [b"slow"] * 12
    with Http1Server(answer) as server:
        own = root.for_worker(0, start_timeout=TIME_OUT, streams=40)
        results = own.perform([Request(server.url, body) for body in bodies], note)
    outcomes = [result.body if isinstance(result, Reply) else result for result in results]
    assert outcomes == [b"fast"] * 3 + [b"slow"] * 10 + [NOT_STARTED] * 2
    first = [(place, True) for place in range(3)] + [(13, False), (14, False)]
    assert reports[0] == first
    later = sorted(each for report in reports[1:] for each in report)
    assert later == [(place, True) for place in range(3, 13)]


def test_no_report_if_all_requests_end_in_time(root):
    reports = []
    with Http1Server() as server:
        own = root.for_worker(0, start_timeout=10, streams=40)
        results = own.perform([Request(server.url, b"x")] * 20, reports.append)
    assert [result.status for result in results] == [200] * 20
    assert reports == []


def test_mail_in_flight_is_not_returned_as_not_started(root):
    with SlowSmtp(lambda recipient: True) as server:
        own = root.for_worker(0, start_timeout=0.2, streams=40)
        results = own.perform([mail(server)] * 12, lambda answered: server.go.set())
        assert [getattr(result, "status", 0) for result in results] == [250] * 10 + [0] * 2
        assert results[10:] == [NOT_STARTED] * 2
        assert len(server.taken) == 10


def test_threads_share_the_limit_of_a_host(root):
    go, reported = threading.Event(), []

    def answer(sock, seen):
        go.wait(30)
        respond(sock, 200)

    results = {}

    def send(number):
        own = root.for_worker(number, start_timeout=0.4, streams=40)
        results[number] = own.perform([Request(server.url, b"x")] * 12, reported.extend)

    with Http1Server(answer) as server:
        threads = [threading.Thread(target=send, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        wait_for(lambda: len(reported) == 28, 20)  # not started
        wait_for(lambda: len(server.seen) == 20)
        go.set()
        for thread in threads:
            thread.join()
        # All were released.
        assert (
            len(root.for_worker(9, start_timeout=5, streams=40).perform([Request(server.url)] * 30))
            == 30
        )
    every = [result for found in results.values() for result in found]
    assert sum(isinstance(result, Reply) for result in every) == 20
    assert sum(result is NOT_STARTED for result in every) == 28


def test_request_released_by_another_thread_makes_room(root):
    def answer(sock, seen):
        time.sleep(0.1)
        respond(sock, 200)

    results = {}

    def send(number):
        own = root.for_worker(number, start_timeout=20, streams=40)
        results[number] = own.perform([Request(server.url, b"x")] * 10)

    with Http1Server(answer) as server:
        threads = [threading.Thread(target=send, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    every = [result for found in results.values() for result in found]
    assert [type(result) for result in every] == [Reply] * 40


def test_workers_reuse_only_their_own_connections(root):
    with Http1Server() as server:
        for number in (0, 1, 0, 1):
            root.for_worker(number, start_timeout=5, streams=40).perform(
                [Request(server.url, b"x")]
            )
        assert server.connections == 2


def test_release_makes_room():
    limits, origin = HostLimits(), object()
    assert [limits.acquire(origin, 2) for _ in range(3)] == [True, True, False]
    limits.release(origin)
    assert limits.acquire(origin, 2)


def test_failures_release_the_limit(root):
    own = root.for_worker(0, start_timeout=1, streams=40)
    for _ in range(3):
        results = own.perform([Request("http://127.0.0.1:1/", b"x")] * 15)
        assert {type(result) for result in results} == {Failure}
    assert not own.host_limits._in_flight
