"""The limiter: counts and waits, across processes, and all calls pass without Redis."""

import multiprocessing
import threading
import time

import pytest
import structlog
from django.conf import settings as django_settings
from redis import Redis

from rme.core import absence, errors
from rme.core.redis import rate_limits
from rme.core.redis.connection import redis_client
from rme.core.redis.rate_limits import Grant, Limit, LimitDecision, Limiter
from tests.clocks import StandingClock
from tests.fakes import tcp
from tests.stopwatch import Stopwatch
from tests.threads import at_once

THREE = Limit(3, 60)


@pytest.fixture
def redis_at(settings):
    """Point the limiter at another Redis for one test."""

    def point(address):
        settings.REDIS_URL = address
        redis_client.cache_clear()

    yield point
    redis_client.cache_clear()


def test_as_many_as_allowed_pass_at_once_and_the_next_waits(redis, redis_clock):
    taken = [Limiter().take("k", THREE) for _ in range(5)]
    assert taken == [
        LimitDecision(allowed=True, remaining=(2,), resets=(20,)),
        LimitDecision(allowed=True, remaining=(1,), resets=(40,)),
        LimitDecision(allowed=True, remaining=(0,), resets=(60,)),
        LimitDecision(allowed=False, retry_after=20, remaining=(0,), resets=(60,)),
        LimitDecision(allowed=False, retry_after=20, remaining=(0,), resets=(60,)),
    ]


def test_a_refused_call_is_not_counted(redis, redis_clock):
    limiter, limit = Limiter(), Limit(1, 1)
    assert limiter.take("k", limit).allowed
    refused = LimitDecision(allowed=False, retry_after=1, remaining=(0,), resets=(1,))
    assert [limiter.take("k", limit) for _ in range(5)] == [refused] * 5
    redis_clock.advance(0.99999)
    assert not limiter.take("k", limit).allowed
    redis_clock.advance(0.00001)
    assert limiter.take("k", limit).allowed


def test_cost_of_zero_counts_nothing_and_decides_like_a_call(redis, redis_clock):
    limiter = Limiter()
    untouched = LimitDecision(allowed=True, remaining=(3,), resets=(0,))
    assert [limiter.take("k", THREE, cost=0) for _ in range(3)] == [untouched] * 3
    limiter.take("k", THREE, cost=3)
    assert limiter.take("k", THREE, cost=0) == LimitDecision(
        allowed=False, retry_after=20, remaining=(0,), resets=(60,)
    )


def test_a_cost_above_the_limit_never_passes(redis, redis_clock):
    assert not Limiter().take("k", THREE, cost=4).allowed
    assert Limiter().take("k", THREE, cost=3).allowed


def test_keys_do_not_touch_each_other(redis, redis_clock):
    Limiter().take("a", THREE, cost=3)
    assert Limiter().take("b", THREE, cost=3).allowed


def test_a_fast_limit_is_counted_to_the_microsecond(redis, redis_clock):
    limiter, limit = Limiter(), Limit(2**20, 8)  # binary fractions, which add up exactly
    assert [limiter.take("k", limit, cost=2**13).allowed for _ in range(130)] == (
        [True] * 128 + [False] * 2
    )
    redis_clock.advance(0.062499)
    assert not limiter.take("k", limit, cost=2**13).allowed
    redis_clock.advance(0.000001)
    assert limiter.take("k", limit, cost=2**13).allowed


@pytest.mark.parametrize(
    ("count", "decision"),
    [
        (1_000_000, LimitDecision(allowed=True, remaining=(999_990,), resets=(1,))),
        (20, LimitDecision(allowed=True, remaining=(10,), resets=(43_200,))),
        (11, LimitDecision(allowed=True, remaining=(1,), resets=(78_546,))),
        (10, LimitDecision(allowed=False, retry_after=8_640, remaining=(0,), resets=(86_400,))),
        (5, LimitDecision(allowed=False, retry_after=17_280, remaining=(0,), resets=(86_400,))),
        (0, LimitDecision(allowed=False, retry_after=86_400, remaining=(0,), resets=(0,))),
    ],
)
def test_changed_limit_keeps_its_usage(redis, redis_clock, count, decision):
    limiter = Limiter()
    limiter.take("k", Limit(10, 86_400), cost=10)
    assert limiter.take("k", Limit(count, 86_400), cost=0) == decision


def test_changed_rate_keeps_its_usage(redis, redis_clock):
    limiter = Limiter()
    assert limiter.grant({"k": (Limit(10, 60), 10)}) == [Grant(10, 6.0)]
    (looked,) = limiter.grant({"k": (Limit(15, 60), 99)}, take=False)
    assert looked.count == 5


def test_an_unused_limit_leaves_no_key(redis):
    Limiter().take("k", Limit(100, 1), Limit(1000, 10))
    time.sleep(0.1)
    assert redis.keys() == []


SECOND, DAY = Limit(3, 1), Limit(4, 86_400)


def test_a_call_is_counted_against_all_limits(redis, redis_clock):
    limiter = Limiter()
    assert limiter.take("k", SECOND, DAY) == LimitDecision(
        allowed=True, remaining=(2, 3), resets=(1, 21_600)
    )
    assert sorted(redis.keys()) == [b"rme:bucket:k:1", b"rme:bucket:k:86400"]


def test_call_rejected_by_one_limit_counts_against_no_limit(redis, redis_clock):
    limiter = Limiter()
    limiter.take("k", DAY, cost=3)
    taken = [limiter.take("k", SECOND, DAY, cost=2) for _ in range(3)]
    refused = LimitDecision(allowed=False, retry_after=21_600, remaining=(3, 1), resets=(0, 64_800))
    assert taken == [refused] * 3
    assert limiter.take("k", SECOND, DAY).remaining == (2, 0)


def test_the_longest_wait_is_returned(redis, redis_clock):
    limiter = Limiter()
    limiter.take("k", SECOND, DAY, cost=3)
    assert limiter.take("k", SECOND, DAY, cost=2).retry_after == 21_600
    assert limiter.take("k", SECOND, cost=2).retry_after == 1


def test_a_large_call_passes_an_idle_limit_and_is_paid_for(redis, redis_clock):
    limiter, limit = Limiter(), Limit(10, 10, largest=50)
    assert not limiter.take("k", limit, cost=51).allowed
    assert limiter.take("k", limit, cost=50) == LimitDecision(
        allowed=True, remaining=(0,), resets=(50,)
    )
    assert limiter.take("k", limit).retry_after == 41
    assert limiter.take("k", limit, cost=50).retry_after == 50


def test_limit_of_zero_rejects_every_call(redis, redis_clock):
    assert Limiter().take("k", Limit(0, 60)) == LimitDecision(
        allowed=False, retry_after=60, remaining=(0,), resets=(0,)
    )


def test_a_decision_is_required_or_raised(redis):
    LimitDecision(allowed=True).require()
    with pytest.raises(errors.RateLimited) as raised:
        LimitDecision(allowed=False, retry_after=7).require("Too many messages.")
    assert (raised.value.message, raised.value.headers) == (
        "Too many messages.",
        {"Retry-After": "7"},
    )


def own_connections(redis):
    """Return the connections to the database of these tests: others use the same server."""
    own = redis.connection_pool.connection_kwargs["db"]
    return [each for each in redis.client_list(_type="normal") if int(each["db"]) == own]


@pytest.mark.xdist_group("scripts")
def test_script_flushed_from_redis_is_sent_again(redis, redis_clock):
    limiter = Limiter()
    limiter.take("k", THREE)
    redis.script_flush()
    assert limiter.take("k", THREE).remaining == (1,)


def test_lost_connection_is_reopened(redis, redis_clock):
    limiter = Limiter()
    limiter.take("k", THREE)
    for client in own_connections(redis):
        if int(client["id"]) != redis.client_id():
            redis.client_kill_filter(_id=client["id"])
    assert limiter.take("k", THREE).remaining == (1,)


def _take(address, count, results):
    client = Redis.from_url(address)
    redis_client.cache_clear()
    django_settings.REDIS_URL = address
    limiter = Limiter()
    results.put(sum(limiter.take("shared", Limit(50, 86_400)).allowed for _ in range(count)))
    client.close()


@pytest.mark.promise("limits-5")
def test_a_limit_holds_across_processes(redis, settings):
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    parts = [
        context.Process(target=_take, args=(settings.REDIS_URL, 40, results)) for _ in range(4)
    ]
    for part in parts:
        part.start()
    passed = sum(results.get(timeout=120) for _ in parts)
    for part in parts:
        part.join()
    assert passed == 50


@pytest.fixture
def away_clock(monkeypatch):
    """Return the clock of the pauses in which nobody tries Redis."""
    return StandingClock(monkeypatch, absence)


@pytest.mark.promise("limits-8")
def test_calls_pass_at_once_without_redis_and_this_is_logged(redis_at, away_clock):
    limiter = Limiter()
    with tcp.TcpServer(lambda connection, _: None) as closing:
        redis_at(f"redis://127.0.0.1:{closing.port}/0")
        with structlog.testing.capture_logs() as logs:
            taken = [limiter.take("k", Limit(1, 60)) for _ in range(500)]
            assert closing.connections == 2  # one call, which tries twice
            away_clock.advance(rate_limits.AWAY_SECONDS)
            taken += [limiter.take("k", Limit(1, 60)) for _ in range(500)]
            assert closing.connections == 4
    assert taken == [LimitDecision(allowed=True)] * 1000
    assert logs == [{"event": "limits.open", "error": "ConnectionError", "log_level": "warning"}]
    assert limiter.away


def test_silent_redis_delays_only_one_caller(redis_at, settings, away_clock):
    settings.REDIS_TIMEOUT = 0.5
    with tcp.TcpServer(lambda connection, _: tcp.stall(connection)) as silent:
        redis_at(f"redis://127.0.0.1:{silent.port}/0")
        limiter = Limiter()
        limiter.take("k", THREE)  # waits for its time-out, and knows
        away_clock.advance(rate_limits.AWAY_SECONDS)

        def call():
            with Stopwatch() as watch:
                assert limiter.take("k", THREE).allowed
            return watch.seconds

        waits = at_once(call, 20)
        assert silent.connections == 2  # one of the twenty has tried
    assert max(waits) < 2.5


def test_limits_apply_again_when_redis_is_back(redis, redis_clock, settings, redis_at, away_clock):
    address = settings.REDIS_URL
    limiter = Limiter()
    redis_at("redis://127.0.0.1:1/0")
    assert limiter.take("k", Limit(1, 60)).allowed
    redis_at(address)
    away_clock.advance(rate_limits.AWAY_SECONDS)
    with structlog.testing.capture_logs() as logs:
        assert [limiter.take("k", Limit(1, 60)).allowed for _ in range(2)] == [True, False]
    assert logs == [{"event": "limits.back", "log_level": "info"}]
    assert not limiter.away


def test_ended_threads_leave_no_connections_behind(redis):
    limiter = Limiter()
    before = len(own_connections(redis))
    for _ in range(300):  # more than a pool of connections would make
        thread = threading.Thread(target=lambda: limiter.take("k", THREE))
        thread.start()
        thread.join()
    assert not limiter.away
    assert len(own_connections(redis)) <= before + 2
