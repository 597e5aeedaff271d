"""The bell, and the connection that each thread has of its own."""

from redis import Redis

from rme.core import bell
from tests.threads import at_once


def test_one_is_called_until_it_has_come(redis: Redis) -> None:
    assert [bell.ring("sms"), bell.ring("sms"), bell.ring("email")] == [True, False, True]
    bell.answer("sms")
    assert bell.ring("sms")
    assert 0 < redis.pttl("rme:bell:sms") <= bell.LOST_AFTER_MS


def test_a_connection_that_was_lost_is_opened_anew(redis: Redis) -> None:
    before = bell.ask("CLIENT", "ID")
    redis.client_kill_filter(_id=str(before))
    assert bell.ring("sms")
    assert bell.ask("CLIENT", "ID") != before


def test_threads_ask_by_connections_of_their_own(redis: Redis) -> None:
    asked = at_once(lambda: (bell.ask("CLIENT", "ID"), bell.ask("CLIENT", "ID")), 4)
    assert all(first == second for first, second in asked)
    assert len({first for first, _ in asked}) == 4


def test_of_threads_that_ring_at_once_one_is_told_to_call(redis: Redis) -> None:
    assert sorted(at_once(lambda: bell.ring("sms"), 8)) == [False] * 7 + [True]
