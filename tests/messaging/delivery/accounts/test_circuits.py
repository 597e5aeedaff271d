"""Circuit breakers of provider accounts: when they open and close, and the order of accounts."""

from contextlib import contextmanager

import pytest

from messaging.delivery.accounts import CircuitState, circuits
from messaging.delivery.accounts.circuits import PROBES, CircuitStates
from rme.core.cache import TtlCache
from rme.core.outcomes import Accepted, Fault, Gone, Misconfigured, Rejected, Retryable, Unknown
from rme.core.redis.connection import redis_client

GOOD, BAD = Accepted("1"), Retryable("down")
A, B = 1, 2
OPEN = CircuitStates(frozenset({A}))


pytestmark = pytest.mark.usefixtures("redis", "redis_clock")


def state():
    return circuits.read([A])[A].state


def open_it():
    return circuits.report([(A, BAD)] * 20)


@pytest.fixture
def rest(redis_clock, settings):
    """Return a function that opens a circuit and lets its time pass."""

    def open_and_wait():
        open_it()
        redis_clock.advance(settings.CIRCUIT_OPEN_SECONDS - 0.001)
        assert state() is CircuitState.OPEN
        redis_clock.advance(0.001)

    return open_and_wait


@pytest.mark.promise("routes-8")
@pytest.mark.parametrize(
    ("good", "bad", "expected"),
    [
        (0, 19, CircuitState.CLOSED),
        (0, 20, CircuitState.OPEN),
        (10, 10, CircuitState.OPEN),
        (11, 10, CircuitState.CLOSED),
        (20, 0, CircuitState.CLOSED),
    ],
)
def test_circuit_opens_when_half_of_twenty_fail(good, bad, expected):
    circuits.report([(A, GOOD)] * good + [(A, BAD)] * bad)
    assert state() is expected


@pytest.fixture
def calls():
    """Return how often Redis has run a script since the test began."""

    def count():
        stats = redis_client().info("commandstats").get("cmdstat_evalsha", {})
        return stats.get("calls", 0) - stats.get("failed_calls", 0)  # which lacked the script

    before = count()
    return lambda: count() - before


def test_redis_is_not_called_while_all_circuits_are_closed(calls):
    assert circuits.states([A, B]) == CircuitStates()
    for _ in range(9):
        assert circuits.states([B]) == circuits.report([(A, GOOD), (B, GOOD)]) == CircuitStates()
    assert calls() == 1


def test_earlier_answers_are_reported_with_the_first_failure(calls):
    circuits.states([A])
    circuits.report([(A, GOOD)] * 11)
    assert circuits.report([(A, BAD)] * 10) == CircuitStates()  # of 21, not of ten
    assert circuits.report([(A, BAD)]) == OPEN
    assert calls() == 3


@pytest.mark.parametrize("failure", [BAD, Retryable("busy", 0.5), Misconfigured("wrong key")])
def test_a_failure_is_reported_at_once(calls, failure):
    circuits.states([A])
    circuits.report([(A, failure)] * 20)
    assert calls() == 2
    assert circuits.states([A]) == circuits.report([(A, GOOD)]) == OPEN
    assert calls() == 4


@pytest.fixture
def elsewhere(monkeypatch):
    """Return a context in which the code runs as another process, with caches of its own."""

    @contextmanager
    def elsewhere():
        with monkeypatch.context() as there:
            there.setattr(circuits, "_known_closed", TtlCache(seconds=0.2))
            there.setattr(circuits, "_unreported", TtlCache(seconds=1))
            yield

    return elsewhere


def test_failures_of_other_workers_are_seen_a_moment_later(elsewhere, cache_clock):
    circuits.states([A])
    with elsewhere():
        open_it()
    assert circuits.report([(A, GOOD)]) == CircuitStates()
    cache_clock.advance(0.2)
    assert circuits.report([(A, GOOD)]) == OPEN


def test_old_answers_do_not_close_a_circuit(rest, elsewhere, cache_clock):
    circuits.states([A])
    circuits.report([(A, GOOD)] * PROBES)
    with elsewhere():
        rest()
    cache_clock.advance(1)
    circuits.states([A])
    assert state() is CircuitState.HALF_OPEN


def test_circuit_counts_over_windows_and_processes():
    for _ in range(3):
        assert circuits.report([(A, BAD)] * 5 + [(A, GOOD)]) == CircuitStates()
    assert circuits.report([(A, BAD)] * 2) == OPEN


@pytest.mark.promise("routes-8")
@pytest.mark.parametrize(
    ("seconds", "expected"), [(54, OPEN), (54.001, CircuitStates()), (60, CircuitStates())]
)
def test_old_failures_do_not_count(redis_clock, seconds, expected):
    redis_clock.advance(5.999)  # the end of a tenth of a period
    circuits.report([(A, BAD)] * 19)
    redis_clock.advance(seconds)
    assert circuits.report([(A, BAD)] * 19) == expected


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (GOOD, CircuitState.CLOSED),
        (Rejected("no such number", hard=True), CircuitState.CLOSED),
        (Rejected("spam", Fault.CONTENT), CircuitState.CLOSED),
        (Gone("dead"), CircuitState.CLOSED),
        (Retryable("that host", 60.0, blames_account=False), CircuitState.CLOSED),
        (BAD, CircuitState.OPEN),
        (Unknown("silence"), CircuitState.OPEN),
        (Misconfigured("wrong key"), CircuitState.OPEN),
    ],
    ids=lambda value: type(value).__name__,
)
def test_only_provider_failures_open_the_circuit(outcome, expected):
    circuits.report([(A, outcome)] * 20)
    assert state() is expected


@pytest.mark.promise("routes-10")
def test_misconfigured_account_opens_its_circuit_at_once():
    assert circuits.report([(A, Misconfigured("wrong key"))]) == OPEN


def test_one_refusal_among_answers_does_not_open():
    assert circuits.report([(A, Misconfigured("that sender")), (A, GOOD)]) == CircuitStates()


def test_accounts_have_their_own_circuits():
    circuits.report([(A, BAD)] * 20 + [(B, GOOD)] * 20)
    assert [each.state for each in circuits.read([A, B]).values()] == [
        CircuitState.OPEN,
        CircuitState.CLOSED,
    ]


def test_outcome_without_an_account_has_no_circuit():
    assert circuits.report([(None, BAD)] * 50) == CircuitStates()
    assert redis_client().keys() == []


def test_open_circuit_stays_open_despite_last_resort_successes():
    open_it()
    assert circuits.report([(A, GOOD)] * 50) == OPEN
    assert circuits.states([A, B]) == OPEN


@pytest.mark.promise("routes-9")
def test_after_a_rest_a_few_sends_try_it_once(rest):
    rest()
    assert state() is CircuitState.HALF_OPEN
    assert circuits.states([A]) == CircuitStates(frozenset({A}), {A: PROBES})
    assert circuits.states([A]) == OPEN  # somebody is at it


@pytest.mark.promise("routes-9")
def test_a_failed_try_opens_it_again(rest):
    rest()
    circuits.states([A])
    circuits.report([(A, GOOD)] * 4 + [(A, BAD)])
    assert state() is CircuitState.OPEN


@pytest.mark.promise("routes-9")
def test_five_answers_close_it_and_the_past_is_forgotten(rest):
    rest()
    circuits.states([A])
    circuits.report([(A, GOOD)] * 4)
    assert state() is CircuitState.HALF_OPEN
    assert circuits.states([A]).probes == {A: PROBES}  # an answer lets the next try at once
    circuits.report([(A, GOOD)])
    assert state() is CircuitState.CLOSED
    circuits.report([(A, BAD)] * 19)
    assert state() is CircuitState.CLOSED


@pytest.mark.promise("routes-11")
def test_retry_after_puts_an_account_last_for_its_duration(redis_clock):
    assert circuits.report([(A, Retryable("busy", 0.5))]) == OPEN
    redis_clock.advance(0.499)
    assert (state(), circuits.states([A, B])) == (CircuitState.CLOSED, OPEN)
    redis_clock.advance(0.001)
    assert circuits.states([A, B]) == CircuitStates()


def test_retry_after_of_one_host_does_not_affect_the_account():
    assert circuits.report([(A, Retryable("busy", 60.0, blames_account=False))]) == CircuitStates()


@pytest.mark.promise("routes-11")
@pytest.mark.parametrize("wish", [float("nan"), float("inf"), -5.0, 0.0, None])
def test_invalid_retry_after_is_ignored(wish):
    assert circuits.report([(A, Retryable("busy", wish))]) == CircuitStates()


@pytest.mark.promise("routes-11")
def test_a_retry_after_is_honoured_for_a_quarter_of_an_hour_at_most(redis_clock):
    circuits.report([(A, Retryable("busy", 1e12))])
    until = float(redis_client().hget("rme:circuit:1", "rest"))
    assert until - redis_clock.now == 900
    assert 1100 < redis_client().ttl("rme:circuit:1") <= 900 + 1 + 300  # the clock keeps it longer


def test_probes_run_out():
    states = CircuitStates(frozenset({A}), {A: 2})
    seen = []
    for _ in range(3):
        seen.append(states.is_tried_last(A))
        states.count_first_try(A)
    assert seen == [False, False, True]


def test_all_circuits_are_closed_without_redis(settings):
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    redis_client.cache_clear()
    try:
        assert open_it() == CircuitStates()
        assert state() is CircuitState.CLOSED
    finally:
        redis_client.cache_clear()
