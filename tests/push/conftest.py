"""Transports that may call this machine, and a Redis that holds nothing of other tests."""

from collections.abc import Iterator
from typing import Any

import pytest
from redis import Redis

from rme.transport import AddressPolicy, Transport


@pytest.fixture
def transport(redis: Redis) -> Iterator[Transport]:
    made = Transport(AddressPolicy(["localhost", "127.0.0.1"]))
    yield made
    made.close()
    redis.flushdb()  # what was held and counted here must slow down no other test


@pytest.fixture
def loopback(settings: Any, redis: Redis) -> Iterator[None]:
    """Let push services stand on this machine."""
    settings.OUTBOUND_OPEN_HOSTS = ["localhost"]
    yield
    redis.flushdb()


@pytest.fixture
def long_waits(settings: Any) -> None:
    """Let nothing be due again before a test says so."""
    settings.BACKOFF_SECONDS = 60.0
    settings.UNKNOWN_SECONDS = 60.0


@pytest.fixture
def worker() -> Iterator[Transport]:
    """Return the transport of a worker."""
    made = Transport(AddressPolicy(["localhost"]))
    yield made
    made.close()
