"""One service for all tests that break its engines and mend them again."""

from collections.abc import Iterator

import pytest

from tests.faults.engines import Broken, on_own_engines
from tests.service import data_folder


@pytest.fixture(scope="package")
def broken() -> Iterator[Broken]:
    """Return a service on engines of the tests' own."""
    quick = {"WEB_THREADS": "2", "LEASE_SECONDS": "6", "UNKNOWN_SECONDS": "2"}
    with (
        data_folder() as var,
        on_own_engines(var, **quick) as found,
    ):
        yield found
