"""A transport that may call this machine, and a Redis that holds nothing of other tests."""

from collections.abc import Iterator

import pytest
from redis import Redis

from rme.core.transport import AddressPolicy, Transport


@pytest.fixture
def transport(redis: Redis) -> Iterator[Transport]:
    made = Transport(AddressPolicy(["localhost", "127.0.0.1"]))
    yield made
    made.close()
    redis.flushdb()  # what was held and counted here must slow down no other test
