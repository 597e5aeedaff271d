"""Calls to a platform: how long one may take, and when none is made any more."""

import time
from typing import Any

import pytest

from rme.crm.connectors import base, circuit
from rme.crm.connectors.base import Deadline, PlatformAway, PlatformSlow
from rme.crm.connectors.circuit import FAILURES, Circuit
from rme.crm.connectors.platform_calls import PlatformCaller, limit_of
from rme.transport import Failure, FailureKind, Reply, Request
from tests.clocks import StandingClock

URL = "https://platform.example/"
RESETS = Failure(FailureKind.UNKNOWN, "reset")
GOOD = Reply(200, {}, b"{}")


class ScriptedTransport:
    """Stands in for the transport: takes requests, and gives what is next."""

    def __init__(self, *results: Reply | Failure) -> None:
        self.results = list(results)
        self.seen: list[Request] = []

    def perform(self, requests: list[Request]) -> list[Reply | Failure]:
        self.seen += requests
        return [self.results.pop(0)]


def caller(wire: Any, known: Circuit | None = None, seconds: float = 60.0) -> PlatformCaller:
    made = PlatformCaller(wire, circuit=known)
    made.deadline = Deadline.after(seconds)
    return made


@pytest.mark.promise("salesforce-3")
def test_a_connection_takes_a_second_and_an_answer_three():
    wire = ScriptedTransport(GOOD)
    caller(wire).call(URL)
    assert [(each.connect_timeout, each.timeout) for each in wire.seen] == [(1.0, 3.0)]


@pytest.mark.promise("salesforce-3")
def test_remaining_time_bounds_both_timeouts(monkeypatch):
    clock = StandingClock(monkeypatch, base)
    wire = ScriptedTransport(GOOD)
    calling = caller(wire, seconds=0.75)
    clock.advance(0.25)
    calling.call(URL)
    assert [(each.connect_timeout, each.timeout) for each in wire.seen] == [(0.5, 0.5)]


@pytest.mark.promise("salesforce-4")
def test_read_is_retried_once_and_create_never():
    wire = ScriptedTransport(RESETS, GOOD)
    assert caller(wire).call(URL) is GOOD
    wire = ScriptedTransport(RESETS, RESETS, GOOD)
    with pytest.raises(PlatformAway):
        caller(wire).call(URL)
    assert len(wire.seen) == 2
    wire = ScriptedTransport(RESETS, GOOD)
    with pytest.raises(PlatformSlow):
        caller(wire).call(URL, creates=True)
    assert len(wire.seen) == 1


# --- the circuit --------------------------------------------------------------------------------
def opened(clock: Any = time.monotonic) -> Circuit:
    known = Circuit(clock)
    for _ in range(FAILURES):
        known.enter()
        known.leave(3.0, PlatformSlow)
    return known


def test_hanging_platform_is_no_longer_called():
    wire, known = ScriptedTransport(GOOD), opened()
    with pytest.raises(PlatformSlow):
        caller(wire, known).call(URL)
    assert wire.seen == []


def test_fast_failures_and_slow_successes_leave_the_circuit_closed():
    known = Circuit()
    for took, failed in ((3.0, PlatformSlow), (3.0, PlatformSlow), (0.1, PlatformAway)) * 3:
        known.enter()
        known.leave(took, failed)
    for took, failed in ((3.0, PlatformSlow), (3.0, PlatformSlow), (3.0, None)) * 3:
        known.enter()
        known.leave(took, failed)
    wire = ScriptedTransport(GOOD)
    caller(wire, known).call(URL)
    assert len(wire.seen) == 1


def test_one_call_at_a_time_checks_whether_it_is_back():
    now = [1000.0]
    known = opened(lambda: now[0])
    now[0] += circuit.REST_SECONDS + 0.1
    known.enter()  # this one looks
    with pytest.raises(PlatformSlow):
        known.enter()
    known.leave(3.0, PlatformAway)
    with pytest.raises(PlatformAway):
        known.enter()
    now[0] += circuit.REST_SECONDS + 0.1
    known.enter()
    known.leave(0.2, None)
    for _ in range(5):
        known.enter()


def test_waiting_calls_open_the_circuit_after_the_first_failure():
    now = [1000.0]
    known = Circuit(lambda: now[0])
    for _ in range(FAILURES):
        known.enter()
    now[0] += 3.0
    known.enter()  # none has failed yet
    known.leave(3.0, PlatformSlow)
    with pytest.raises(PlatformSlow):
        known.enter()
    known.leave(3.0, None)  # it answers after all
    known.enter()


def test_each_platform_has_its_own_circuit():
    one = circuit.circuit_of("acme", "https://a.example")
    assert circuit.circuit_of("acme", "https://a.example") is one
    assert circuit.circuit_of("acme", "https://b.example") is not one
    assert circuit.circuit_of("other", "https://a.example") is not one


@pytest.mark.parametrize(
    ("given", "seconds"), [("5", 5), ("0", 1), ("x", 60), ("", 60), ("9" * 5000, 3600)]
)
def test_quota_lasts_as_long_as_the_answer_says_within_bounds(given, seconds):
    assert limit_of(Reply(429, {"retry-after": given})).retry_after == seconds
