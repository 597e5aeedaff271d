"""The bell, and the connection that each thread has of its own."""

from redis import Redis

from rme.core.redis import redis_client
from tests.threads import at_once


def test_one_is_called_until_it_has_come(redis: Redis) -> None:
    assert [redis_client.ring("sms"), redis_client.ring("sms"), redis_client.ring("email")] == [
        True,
        False,
        True,
    ]
    redis_client.answer("sms")
    assert redis_client.ring("sms")
    assert 0 < redis.pttl("rme:bell:sms") <= redis_client.LOST_AFTER_MS


def test_a_connection_that_was_lost_is_opened_anew(redis: Redis) -> None:
    before = redis_client.ask("CLIENT", "ID")
    redis.client_kill_filter(_id=str(before))
    assert redis_client.ring("sms")
    assert redis_client.ask("CLIENT", "ID") != before


def test_threads_ask_by_connections_of_their_own(redis: Redis) -> None:
    asked = at_once(lambda: (redis_client.ask("CLIENT", "ID"), redis_client.ask("CLIENT", "ID")), 4)
    assert all(first == second for first, second in asked)
    assert len({first for first, _ in asked}) == 4


def test_of_threads_that_ring_at_once_one_is_told_to_call(redis: Redis) -> None:
    assert sorted(at_once(lambda: redis_client.ring("sms"), 8)) == [False] * 7 + [True]
