"""Push services that break off, stall and half answer."""

import threading
from collections import Counter
from contextlib import contextmanager

import pytest

from messaging.models import Delivery
from tests.fakes import tcp
from tests.fakes.http2 import Http2Server
from tests.push.faults_scene import (
    PLATFORMS,
    Service,
    accept,
    account,
    attempts,
    once_each,
    people,
    send,
    settle,
    standing,
)
from tests.rest import work
from tests.stopwatch import Stopwatch

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("loopback", "long_waits")]


class ResetBefore(Http2Server):
    """End the first connection before any request can have been read."""

    def _serve(self, connection, number):
        if number == 0:
            tcp.reset(connection)
        else:
            super()._serve(connection, number)


@pytest.mark.parametrize("kind", PLATFORMS)
def test_connection_reset_before_the_request_is_retryable(api, org, worker, redis, kind):
    service = Service(kind)
    service.server = ResetBefore(service._answer)
    with service:
        send(api, org, worker, service, 4)
        assert standing() == {"ACCEPTED": 1, "SENT": 3}  # it went alone, for its host was not known
        assert {outcome for outcome, _ in attempts()} == {"Accepted", "Retryable"}
        settle(worker, redis, 4)
        assert once_each(service, 4)


def reset(connection, stream):
    tcp.reset(connection.socket)
    return True


def half(connection, stream):
    connection.h2.send_headers(stream.id, [(":status", "200"), ("content-length", "9")])
    connection.h2.send_data(stream.id, b"half")
    return False


def close(connection, stream):
    return False


@pytest.mark.promise("push-answers-8")
@pytest.mark.parametrize("break_off", [reset, close, half], ids=["reset", "close", "half"])
@pytest.mark.parametrize("kind", PLATFORMS)
def test_connection_lost_after_the_request_is_unknown(api, org, worker, redis, kind, break_off):
    def script(connection, stream):
        if connection.number > 0:
            return None
        return break_off(connection, stream) if len(service.server.seen) == 3 else True

    with Service(kind, script) as service:
        send(api, org, worker, service, 3)
        assert standing() == {"UNKNOWN": 3}
        assert {outcome for outcome, _ in attempts()} == {"Unknown"}
        assert service.taken == []
        settle(worker, redis, 3)
        assert once_each(service, 3)


@pytest.mark.parametrize("kind", PLATFORMS)
def test_service_answering_too_late_is_avoided_for_a_while(api, org, worker, redis, kind):
    slow = [True]

    with Service(kind, lambda connection, stream: True if slow else None) as service:
        account(org, kind, service.server.port, timeout=tcp.TIME_OUT)
        made = people(org, kind, service.server.port, 5)
        accept(api, made[:3])
        work(worker)
        assert attempts() == {("Unknown", "time-out"): 3}
        accept(api, made[3:])
        with Stopwatch() as watch:
            work(worker)
        assert watch.seconds < tcp.TIME_OUT  # nobody was asked
        assert standing() == {"UNKNOWN": 3, "ACCEPTED": 2}
        assert len(service.server.seen) == 3
        slow.clear()
        settle(worker, redis, 5)
        assert once_each(service, 5)


@contextmanager
def side_by_side(dead, well):
    """Run a service that is silent until five messages have arrived at another, and then leaves.

    Gives both, and whether the five came while it was silent: held up by it, they would not.
    """
    arrived, everything = [], threading.Event()

    def keep_silent(connection, stream):
        if len(silent.server.seen) < 5:
            return True
        arrived.append(everything.wait(15))
        return False

    def note(connection, stream):
        if len(quick.server.seen) == 5:
            everything.set()

    with Service(dead, keep_silent) as silent, Service(well, note) as quick:
        yield silent, quick, arrived


@pytest.mark.promise("push-sending-28")
@pytest.mark.parametrize(("dead", "well"), [("apns", "webpush"), ("webpush", "apns")])
def test_silent_service_does_not_delay_others(api, org, worker, dead, well):
    with side_by_side(dead, well) as (silent, quick, arrived):
        account(org, dead, silent.server.port, timeout=25.0)
        account(org, well, quick.server.port, timeout=25.0)
        accept(api, people(org, dead, silent.server.port, 5))
        accept(api, people(org, well, quick.server.port, 5))
        work(worker)
        assert arrived == [True]
    assert Counter(Delivery.objects.values_list("provider", "status")) == {
        (dead, "UNKNOWN"): 5, (well, "SENT"): 5,
    }  # fmt: skip


def test_silent_host_of_browsers_does_not_delay_other_hosts(api, org, worker):
    with side_by_side("webpush", "webpush") as (silent, quick, arrived):
        account(org, "webpush", 0, timeout=25.0)
        accept(api, people(org, "webpush", silent.server.port, 5))
        accept(api, people(org, "webpush", quick.server.port, 5))
        work(worker)
        assert arrived == [True]
        assert standing() == {"UNKNOWN": 5, "SENT": 5}
        accept(api, people(org, "webpush", quick.server.port, 5, start=100))
        work(worker)
        assert once_each(quick, 10)
