"""Wakeups: one task for each channel, however many accepts ask for it."""

import pytest
from redis import Redis

from rme.core import absence
from rme.core.process import task_requests
from rme.core.process.task_requests import clear_wakeup, request_once, set_wakeup
from rme.core.redis.connection import redis_client
from tests.clocks import StandingClock
from tests.fakes import tcp
from tests.threads import at_once


def test_a_wakeup_is_requested_once_until_it_is_cleared(redis: Redis) -> None:
    assert [set_wakeup("sms"), set_wakeup("sms"), set_wakeup("email")] == [
        True,
        False,
        True,
    ]
    clear_wakeup("sms")
    assert set_wakeup("sms")
    assert 0 < redis.pttl("rme:wakeup:sms") <= task_requests.LOST_AFTER_MS


def test_one_of_several_simultaneous_requests_enqueues(redis: Redis) -> None:
    assert sorted(at_once(lambda: set_wakeup("sms"), 8)) == [False] * 7 + [True]


@pytest.fixture
def silent_redis(settings, monkeypatch):
    """Return a server in Redis's place that takes connections and never answers."""
    with tcp.TcpServer(lambda connection, _: tcp.stall(connection)) as silent:
        monkeypatch.setattr(settings, "REDIS_TIMEOUT", 0.3)
        monkeypatch.setattr(settings, "REDIS_URL", f"redis://127.0.0.1:{silent.port}/0")
        redis_client.cache_clear()
        yield silent
    redis_client.cache_clear()


def test_silent_redis_delays_only_one_caller(silent_redis, monkeypatch):
    clock = StandingClock(monkeypatch, absence)
    request_once("sms", "messaging.send_ready", "SMS")  # waits for its time-out
    request_once("sms", "messaging.send_ready", "SMS")
    assert silent_redis.connections == 1
    clock.advance(task_requests.AWAY_SECONDS)
    at_once(lambda: request_once("sms", "messaging.send_ready", "SMS"), 20)
    assert silent_redis.connections == 2  # one of the twenty has tried


def test_retry_tries_a_silent_redis_in_the_pause(silent_redis, monkeypatch):
    StandingClock(monkeypatch, absence)
    for _ in range(2):
        request_once("sms", "messaging.send_ready", "SMS", retry=True)
    assert silent_redis.connections == 2
