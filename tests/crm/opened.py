"""A thread whose transport may call stubs on loopback."""

from collections.abc import Iterator
from typing import Any

import pytest

from rme.transport import per_thread


@pytest.fixture
def opened(settings: Any) -> Iterator[None]:
    """Let this thread's transport call loopback, as a deployment may open a host."""
    settings.OUTBOUND_OPEN_HOSTS = ["127.0.0.1"]
    per_thread._local.__dict__.clear()
    yield
    per_thread._local.__dict__.clear()
