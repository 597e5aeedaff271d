"""Threads and seconds are shared fairly among organizations and persons."""

import threading
import time

import pytest

from rme.core import errors
from rme.core.process import admission
from rme.core.process.admission import NOBODY, Budget, ComputingTime, FairPool, Owners
from tests.clocks import StandingClock


class Gate:
    """Calls that run until they are let go, and the order in which they began."""

    def __init__(self):
        self.began = []
        self.open = threading.Event()
        self.arrived = threading.Semaphore(0)

    def call(self, name):
        def run():
            self.began.append(name)
            self.arrived.release()
            self.open.wait(10)
            return name

        return run

    def wait(self, count):
        for _ in range(count):
            assert self.arrived.acquire(timeout=10)


ACME, OTHER = Owners("acme"), Owners("other")


def test_organization_never_has_the_last_thread_and_a_person_no_more_than_half():
    pool, gate = FairPool(4, "test"), Gate()
    for number in range(5):
        pool.submit(Owners("acme", "1"), gate.call(f"acme 1 {number}"))
    gate.wait(2)
    for number in range(5):
        pool.submit(Owners("acme", "2"), gate.call(f"acme 2 {number}"))
    gate.wait(1)
    pool.submit(OTHER, gate.call("other"))
    gate.wait(1)
    assert gate.began == ["acme 1 0", "acme 1 1", "acme 2 0", "other"]
    gate.open.set()


def test_owners_take_turns_regardless_of_their_number_of_calls():
    pool, gate = FairPool(1, "test"), Gate()
    pool.submit(NOBODY, gate.call("first"))
    gate.wait(1)
    done = [pool.submit(ACME, gate.call(f"acme {number}")) for number in range(3)]
    done += [pool.submit(OTHER, gate.call(f"other {number}")) for number in range(2)]
    gate.open.set()
    assert [each.result(10) for each in done] == [
        "acme 0",
        "acme 1",
        "acme 2",
        "other 0",
        "other 1",
    ]
    assert gate.began == ["first", "acme 0", "other 0", "acme 1", "other 1", "acme 2"]


def test_owner_with_a_full_queue_is_rejected_and_others_are_not():
    pool, gate = FairPool(2, "test", line=3), Gate()
    done = [pool.submit(ACME, gate.call(number)) for number in range(4)]
    gate.wait(1)
    with pytest.raises(errors.RateLimited) as refusal:
        pool.submit(ACME, gate.call("one too many"))
    assert refusal.value.headers == {"Retry-After": "1"}
    pool.submit(OTHER, gate.call("other"))
    gate.wait(1)
    done[3].cancel()  # its caller has gone, so that another may wait in its place
    pool.submit(ACME, gate.call("later"))
    gate.open.set()
    assert [each.result(10) for each in done[:3]] == [0, 1, 2]


def test_many_cancelled_callers_are_skipped_at_the_next_turn():
    pool, gate = FairPool(1, "test", line=2000), Gate()
    first = pool.submit(NOBODY, gate.call("first"))
    gate.wait(1)
    for _ in range(1500):
        pool.submit(ACME, gate.call("gone")).cancel()
    last = pool.submit(OTHER, gate.call("last"))
    gate.open.set()
    assert (first.result(10), last.result(10)) == ("first", "last")
    assert gate.began == ["first", "last"]


def test_call_with_a_late_owner_counts_for_it_or_waits():
    pool, gate = FairPool(4, "test"), Gate()
    for number in range(2):
        pool.submit(Owners("acme"), gate.call(number))
    gate.wait(2)

    def late(turn):
        turn.claim(ACME)
        return gate.call("late")()

    third = pool.enter(NOBODY, late)
    gate.wait(1)
    fourth = pool.enter(NOBODY, late, may_repeat=True)
    with pytest.raises(errors.RateLimited):
        fourth.future.result(10)
    assert (third.starts_again, fourth.starts_again, fourth.claimed) == (False, True, ACME)
    gate.open.set()
    assert third.future.result(10) == "late"


def test_error_of_a_call_reaches_its_caller_and_the_thread_survives():
    pool = FairPool(1, "test")

    def fail():
        raise LookupError

    with pytest.raises(LookupError):
        pool.submit(ACME, fail).result(10)
    assert pool.submit(ACME, lambda: 1).result(10) == 1


def test_budget_names_the_wait_for_the_next_second(monkeypatch):
    StandingClock(monkeypatch, admission)
    budget = Budget(rate=0.5, burst=2.0)
    budget.charge("acme", 1.9)
    budget.require("acme")
    budget.charge("acme", 3.0)
    with pytest.raises(errors.RateLimited) as refusal:
        budget.require("acme")
    assert refusal.value.headers == {"Retry-After": "6"}
    budget.require("other")


def compute(seconds):
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


class RestClock(StandingClock):
    """A clock by which a thread rests until the test lets it go on."""

    def __init__(self, patch):
        super().__init__(patch, admission)
        self.rests, self.is_over = [], threading.Event()

    def sleep(self, seconds):
        self.rests.append(seconds)
        assert self.is_over.wait(10)


def compute_in_only_thread(*, beside_another):
    """Let the only thread of an organization compute much; return its pool."""
    computing = ComputingTime(Budget(rate=0.01, burst=0.05))
    pool = FairPool(2, "test", computing=computing)

    def call():
        compute(0.3)
        if beside_another:
            computing.note("other")

    pool.submit(ACME, call).result(10)
    return pool


def test_thread_of_an_organization_that_computes_much_rests_while_another_calls(monkeypatch):
    clock = RestClock(monkeypatch)
    resting = compute_in_only_thread(beside_another=True)
    later = resting.submit(ACME, lambda: None)
    resting.submit(OTHER, lambda: None).result(10)
    assert not later.done()
    clock.is_over.set()
    later.result(10)
    resting.shutdown()
    (rest, *_) = clock.rests
    assert 0.3 <= rest <= admission.REST_SECONDS


def test_thread_of_an_organization_that_computes_much_does_not_rest_alone(monkeypatch):
    clock = RestClock(monkeypatch)
    compute_in_only_thread(beside_another=False).submit(ACME, lambda: None).result(10)
    assert clock.rests == []
