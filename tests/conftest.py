"""What all tests share: real PostgreSQL and Redis, clean caches, and an organization."""

import gc
import os
from collections.abc import Generator, Iterator

import pytest
from redis import Redis

from rme.core.cache import TtlCache
from rme.core.db import availability
from rme.core.redis.connection import broker_url, redis_client
from rme.tenants.models import Organization
from tests import factories
from tests.rest import Api


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Exclude modules and collected tests from garbage collection: they live until the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


@pytest.fixture(autouse=True)
def _fresh_caches() -> Iterator[None]:
    """Start every test with nothing remembered, in this process and in its Redis database."""
    TtlCache.clear_all()
    redis_client().flushdb()
    assert availability.allowed() is None, "an earlier test bounded the statements of its process"
    yield
    TtlCache.clear_all()


@pytest.fixture(autouse=True, scope="session")
def _compiled_once() -> None:
    """Let the processes that tests start compile our modules once, and not each for itself."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


@pytest.fixture(autouse=True, scope="session")
def _own_redis_database(request: pytest.FixtureRequest) -> None:
    """Assign each pytest-xdist worker a Redis database of its own."""
    from django.conf import settings

    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    address = settings.REDIS_URL
    if address.startswith("unix://"):
        settings.REDIS_URL = f"{address.partition('?')[0]}?db={worker + 1}"
    else:
        settings.REDIS_URL = f"{address.rpartition('/')[0]}/{worker + 1}"
    settings.REDIS_TIMEOUT = 10.0  # it is there, however busy the machine
    settings.CELERY_BROKER_URL = broker_url(settings.REDIS_URL)
    redis_client.cache_clear()


@pytest.fixture(autouse=True, scope="session")
def _nothing_slow_that_is_not_tried() -> None:
    """Hash passwords by what costs nothing, and look for static files when one is asked for."""
    from django.conf import settings

    settings.PASSWORD_HASHERS = [
        "django.contrib.auth.hashers.MD5PasswordHasher",
        *settings.PASSWORD_HASHERS,
    ]
    settings.WHITENOISE_AUTOREFRESH = True
    # What is left behind is stored by another connection, which sees nothing of a test's open
    # transaction: tests of that have transactions of their own and set a patience.
    settings.PATIENCE_SECONDS = 60.0
    # Tests with many threads are about what they do, and not about how fast the machine is.
    settings.DATABASES["default"]["OPTIONS"]["pool"]["timeout"] = 60.0


@pytest.fixture
def redis() -> Redis:
    """Return a client of an empty Redis."""
    client = redis_client()
    client.flushdb()
    return client


@pytest.fixture
def org(db: None) -> Organization:
    """Return an organization with a sender domain and the template `welcome` on all channels."""
    row = factories.organization()
    factories.welcome(row)
    return row


@pytest.fixture
def api(org: Organization) -> Api:
    """Return a REST client of the organization, with a real token."""
    return Api(org)
