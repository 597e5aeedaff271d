"""Services that several modules break and mend again."""

from collections.abc import Iterator

import pytest

from tests.faults.accounting import Sink
from tests.faults.engines import Broken, on_own_engines
from tests.service import Service, data_folder, running


@pytest.fixture(scope="package")
def scene() -> Iterator[tuple[Service, Sink]]:
    """Run a service with engines of its own, which may be called without a limit, and a sink."""
    with data_folder() as folder:
        sink = Sink(folder)
        env = {
            "SMTP_URL": f"smtp+plain://127.0.0.1:{sink.port}",
            "LEASE_SECONDS": "6",
            "UNKNOWN_SECONDS": "2",
            "UNKNOWN_BACKOFF_SECONDS": "0,1,1,1,1,1,1,1",  # workers are killed that often
        }
        try:
            with running(folder, **env) as service:
                updated = service.sql(
                    "UPDATE tenants_organization SET calls_per_second = 1000000 RETURNING id"
                )
                assert len(updated) >= 2
                yield service, sink
        finally:
            sink.stop()


@pytest.fixture
def young_scene(scene: tuple[Service, Sink]) -> tuple[Service, Sink]:
    """Return the scene for tests that come first: what is killed often starts again ever later."""
    return scene


@pytest.fixture(scope="package")
def broken() -> Iterator[Broken]:
    """Return a service on engines of the tests' own."""
    quick = {"WEB_THREADS": "2", "LEASE_SECONDS": "6", "UNKNOWN_SECONDS": "2"}
    with (
        data_folder() as var,
        on_own_engines(var, **quick) as found,
    ):
        yield found
