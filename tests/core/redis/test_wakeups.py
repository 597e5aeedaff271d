"""Wakeups: one task for each channel, however many accepts ask for it."""

from redis import Redis

from rme.core.redis import wakeups
from rme.core.redis.wakeups import clear_wakeup, request_wakeup
from tests.threads import at_once


def test_a_wakeup_is_requested_once_until_it_is_cleared(redis: Redis) -> None:
    assert [request_wakeup("sms"), request_wakeup("sms"), request_wakeup("email")] == [
        True,
        False,
        True,
    ]
    clear_wakeup("sms")
    assert request_wakeup("sms")
    assert 0 < redis.pttl("rme:bell:sms") <= wakeups.LOST_AFTER_MS


def test_of_threads_that_request_at_once_one_has_to_enqueue(redis: Redis) -> None:
    assert sorted(at_once(lambda: request_wakeup("sms"), 8)) == [False] * 7 + [True]
