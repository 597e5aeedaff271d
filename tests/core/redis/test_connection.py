"""The connection that each thread has of its own."""

from redis import Redis

from rme.core.redis.connection import command
from tests.threads import at_once


def test_lost_connection_is_reopened(redis: Redis) -> None:
    before = command("CLIENT", "ID")
    redis.client_kill_filter(_id=str(before))
    assert command("PING") == b"PONG"
    assert command("CLIENT", "ID") != before


def test_each_thread_has_its_own_connection(redis: Redis) -> None:
    ids = at_once(lambda: (command("CLIENT", "ID"), command("CLIENT", "ID")), 4)
    assert all(first == second for first, second in ids)
    assert len({first for first, _ in ids}) == 4
