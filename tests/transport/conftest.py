"""A transport that may call this machine, for the servers of tests/fakes."""

from collections.abc import Iterator

import pytest

from rme.transport import AddressPolicy, Transport


@pytest.fixture
def transport() -> Iterator[Transport]:
    made = Transport(AddressPolicy(["localhost", "127.0.0.1"]))
    yield made
    made.close()
