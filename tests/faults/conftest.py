"""One service for all tests that break its engines and mend them again."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.engines import Broken, on_own_engines


@pytest.fixture(scope="session")
def broken() -> Iterator[Broken]:
    """Return a service on engines of the tests' own."""
    quick = {"WEB_THREADS": "2", "LEASE_SECONDS": "6", "UNKNOWN_SECONDS": "2"}
    with (
        tempfile.TemporaryDirectory(prefix="rme-test-", dir="/var/tmp") as folder,
        on_own_engines(Path(folder), **quick) as found,
    ):
        yield found
