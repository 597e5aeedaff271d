"""Credentials' tokens: made by one process at a time, shared by all, kept encrypted."""

import threading
import time

import pytest
import time_machine
from redis import Redis

from push.providers import access_tokens, backoff, hourly_limit, proven
from push.providers.access_tokens import AccessToken, Lifetime
from rme.core.cache import TtlCache
from rme.core.redis.connection import redis_client
from tests.threads import at_once

LIFE = Lifetime(renew_after=40, expires_after=55, min_age=20)


class Maker:
    """Makes tokens and counts them; slowly, if asked to."""

    def __init__(self, takes: float = 0.0) -> None:
        self.takes = takes
        self.made = 0
        self._lock = threading.Lock()

    def __call__(self) -> AccessToken:
        with self._lock:
            self.made += 1
            number = self.made
        time.sleep(self.takes)
        return AccessToken(f"token-{number}", time.time(), "there")


def aged(seconds):
    return AccessToken("old", time.time() - seconds)


@pytest.mark.promise("push-sending-10")
def test_a_token_is_made_once_and_read_by_others(redis):
    make = Maker()
    first = access_tokens.get("x", LIFE, make)
    TtlCache.clear_all()  # another process
    assert (
        access_tokens.get("x", LIFE, make)
        == first
        == AccessToken("token-1", first.made_at, "there")
    )
    assert make.made == 1


@pytest.mark.promise("push-sending-12")
def test_token_is_stored_encrypted_and_expires(redis):
    access_tokens.get("x", LIFE, Maker())
    stored = redis.get("rme:push:token:x")
    assert b"token-1" not in stored
    assert 50 <= redis.ttl("rme:push:token:x") <= 55
    assert redis.get("rme:push:token:x:lock") is None
    assert "token-1" not in repr(AccessToken("token-1", 0))


def test_unreadable_token_is_replaced(redis):
    redis.set("rme:push:token:x", b"nonsense")
    assert access_tokens.get("x", LIFE, Maker()).text == "token-1"


@pytest.mark.promise("push-sending-10")
def test_simultaneous_callers_share_one_new_token(redis, monkeypatch):
    monkeypatch.setattr(access_tokens, "WAIT_SECONDS", 60.0)  # however slow this machine is
    make = Maker(takes=0.2)
    found = at_once(lambda: access_tokens.get("x", LIFE, make).text, 8)
    assert (found, make.made) == (["token-1"] * 8, 1)


def test_the_old_one_serves_while_another_process_makes_a_new_one(redis):
    access_tokens.store("x", LIFE, aged(45))
    redis.set("rme:push:token:x:lock", "another", px=5000)
    make = Maker()
    assert (access_tokens.get("x", LIFE, make).text, make.made) == ("old", 0)


@pytest.mark.parametrize(
    ("age", "refused", "text"),
    [
        (39, "", "old"),
        (41, "", "token-1"),
        (19, "old", "old"),
        (21, "old", "token-1"),
        (21, "an older one", "old"),
    ],
)
def test_a_token_is_renewed_by_age_and_refusal(redis, age, refused, text):
    with time_machine.travel(time.time(), tick=False):  # a second more would make another of it
        access_tokens.store("x", LIFE, aged(age))
        TtlCache.clear_all()
        assert access_tokens.get("x", LIFE, Maker(), refused=refused).text == text


@pytest.fixture
def no_redis(settings):
    """Let Redis be away: nobody listens at its address."""
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    redis_client.cache_clear()
    yield
    redis_client.cache_clear()


def test_each_process_keeps_its_token_without_redis(no_redis):
    make = Maker()
    assert [access_tokens.get("x", LIFE, make).text for _ in range(3)] == ["token-1"] * 3
    assert make.made == 1


def test_backoff_is_not_shared_and_counted_calls_wait_without_redis(no_redis):
    assert (backoff.start("x", 2.0), backoff.remaining(["x"])) == (2.0, {})
    backoff.reset(["x"])
    assert hourly_limit.take("x", 1, 100) == 5.0
    assert not proven.is_proven("x")
    proven.prove({"x"})
    assert proven.is_proven("x")  # this process has seen it


def test_proven_credentials_are_known_to_all_processes(redis: Redis):
    assert not proven.is_proven("x")
    proven.prove({"x", "y"})
    TtlCache.clear_all()
    assert [proven.is_proven(name) for name in ("x", "y", "z")] == [True, True, False]


def test_a_hold_ends_by_itself(redis):
    assert backoff.start("long", 60.0) == 60.0
    held = backoff.remaining(["long", "y"])
    assert (set(held), 0 < held["long"] <= 60.0) == ({"long"}, True)
    assert backoff.start("x", 0.2) == 0.2
    time.sleep(0.25)
    assert backoff.remaining(["x", "y"]) == {}
    assert backoff.start("x", 0.2) == 0.4
