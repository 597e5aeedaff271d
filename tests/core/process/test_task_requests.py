"""Wakeups: one task for each channel, however many accepts ask for it."""

from redis import Redis

from rme.core.process import task_requests
from rme.core.process.task_requests import clear_wakeup, set_wakeup
from tests.threads import at_once


def test_a_wakeup_is_requested_once_until_it_is_cleared(redis: Redis) -> None:
    assert [set_wakeup("sms"), set_wakeup("sms"), set_wakeup("email")] == [
        True,
        False,
        True,
    ]
    clear_wakeup("sms")
    assert set_wakeup("sms")
    assert 0 < redis.pttl("rme:bell:sms") <= task_requests.LOST_AFTER_MS


def test_of_threads_that_request_at_once_one_has_to_enqueue(redis: Redis) -> None:
    assert sorted(at_once(lambda: set_wakeup("sms"), 8)) == [False] * 7 + [True]
