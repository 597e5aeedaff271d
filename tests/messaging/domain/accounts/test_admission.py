"""Which sends may go now, on values alone."""

from collections import Counter

import pytest

from messaging.domain.accounts.admission import (
    Admission,
    Availability,
    RateGrant,
    admit,
    rate_wait,
    room,
)
from messaging.domain.progress.next_steps import BACKOFF_LIMIT


def key_of(account: str) -> str:
    return account


@pytest.mark.parametrize(
    ("routes", "free", "ordered", "sends"),
    [
        ([["a", "b"]], {}, [["a", "b"]], {"a": 1}),
        ([["a", "b"]], {"a": 1}, [["a", "b"]], {"a": 1}),
        # an account that takes no more is passed over
        ([["a", "b"]], {"a": 0}, [["b", "a"]], {"b": 1}),
        ([["a", "b"]], {"a": -1, "b": 0}, [["a", "b"]], None),
        ([["a", "b", "c"]], {"a": 0, "b": 0}, [["c", "a", "b"]], {"c": 1}),
        # all devices of a recipient, or none
        ([["a"], ["a"]], {"a": 1}, [["a"], ["a"]], {"a": 2}),
        ([["a"], ["b"]], {"a": 1, "b": 0}, [["a"], ["b"]], None),
        ([["a"], []], {"a": 1}, [["a"], []], {"a": 1}),
    ],
)
def test_admission_is_limited_by_free_sends(routes, free, ordered, sends):
    expected = None if sends is None else Counter(sends)
    assert admit(routes, free, key_of) == Admission(ordered, expected)


GRANT = RateGrant(sends=2, wait=0.5, seconds_each=0.1)


@pytest.mark.parametrize(
    ("used", "wait"),
    [({}, None), ({"a": 1}, None), ({"a": 2}, 0.5), ({"a": 5}, 0.8)],
)
def test_each_delivery_waits_behind_earlier_ones(used, wait):
    seconds = rate_wait({"a": 1}, used, {"a": GRANT})
    assert seconds == (wait if wait is None else pytest.approx(wait))


def test_longest_wait_of_several_accounts_counts():
    grants = {"a": GRANT._replace(sends=0), "b": RateGrant(0, 7.0, 1.0)}
    assert rate_wait({"a": 1, "b": 1}, {}, grants) == 7.0


def test_wait_for_a_rate_has_a_limit():
    assert rate_wait({"a": 1}, {}, {"a": RateGrant(0, 10**6, 1.0)}) == BACKOFF_LIMIT


@pytest.mark.parametrize(
    ("counts", "requested", "count"),
    [
        ([], 10, 0),
        ([0], 10, 0),
        ([3, 4], 10, 7),
        ([3, 40], 10, 10),
        ([0, None], 10, 10),
    ],
)
def test_room_of_several_accounts(counts, requested, count):
    assert room([Availability(each) for each in counts], requested) == count
