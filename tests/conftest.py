"""What all tests share: real PostgreSQL and Redis, clean caches, and an organization."""

import gc
import os
import shutil
import tempfile
from collections.abc import Generator, Iterator
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import pytest_django
from django.db import connection
from django.test import TransactionTestCase
from pytest_django.plugin import blocking_manager_key
from redis import Redis

from rme.core import cache
from rme.core.cache import TtlCache
from rme.core.db import availability
from rme.core.environment import redis_url
from rme.core.process import task_requests
from rme.core.process.errands import ERRANDS, HOST_ERRANDS, SERVICE_ERRANDS
from rme.core.redis.connection import redis_client
from rme.core.redis.rate_limits import limiter
from rme.core.telemetry import meters
from rme.run.engines import Postgres
from rme.tenants.models import AuditEntry, AuditValues, Organization
from rme.transport import per_thread
from tests import databases, factories, pruning, rendering
from tests.clocks import RedisClock, StandingClock
from tests.rest import Api
from tests.service import CRASHES, MIGRATED, Service, data_folder, running

os.environ["DJANGO_SETTINGS_MODULE"] = "rme.settings"  # of programs that tests start


def _import_a_share(config: pytest.Config) -> None:
    """Import a worker's share of all test modules; the other workers find them compiled then.

    Without this, each worker of a fresh checkout compiles all of them.
    """
    worker = os.environ.get("PYTEST_XDIST_WORKER", "").removeprefix("gw")
    if worker and config.args == ["tests"]:
        paths = sorted(Path("tests").rglob("test_*.py"))
        for path in paths[int(worker) :: int(os.environ["PYTEST_XDIST_WORKER_COUNT"])]:
            # The collection reports what cannot be imported.
            with suppress(ImportError, SyntaxError):
                import_module(".".join(path.with_suffix("").parts))


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Exclude modules and collected tests from garbage collection: they live until the end."""
    gc.disable()
    try:
        _import_a_share(session.config)
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


_STARTED = ("young_scene", "scene", "broken", "callers_service")
"""Fixtures of several modules that start a service, in the order in which they are wanted."""


_SYSTEM_FOLDERS = frozenset({
    "browser", "clients", "combinations", "deploy", "drills", "faults", "journeys", "router", "run",
    "sms", "upgrade", "workers",
})  # fmt: skip
"""Folders whose tests start services, browsers or other programs."""
_SYSTEM_GROUPS = frozenset({"service", "service-2", "browser", "kannel", "engines"})
"""Groups of tests that start them in other folders."""


def _is_system_test(item: pytest.Item) -> bool:
    groups = {mark.args[0] for mark in item.iter_markers("xdist_group")}
    folder, *_ = item.path.relative_to(Path(__file__).parent).parts
    return folder in _SYSTEM_FOLDERS or not groups.isdisjoint(_SYSTEM_GROUPS)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark tests that start services, browsers or other programs: `make test-system` runs them."""
    if _is_system_test(item):
        item.add_marker("system")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put tests that share a service next to each other: it runs only as long as they need it."""

    def place(item: pytest.Item) -> int:
        names = item.fixturenames if isinstance(item, pytest.Function) else []
        return next((n for n, name in enumerate(_STARTED, 1) if name in names), 0)

    items.sort(key=place)


def pytest_configure(config: pytest.Config) -> None:
    """Make what all processes of this run share: a folder, and a migrated database for workers.

    Hypothesis is to try the same values each time: what a run finds, the next one finds too.
    `--hypothesis-profile=default` tries others.
    """
    hypothesis.settings.register_profile("same", derandomize=True, database=None, deadline=None)
    if not config.getoption("hypothesis_profile", None):
        hypothesis.settings.load_profile("same")
    if MIGRATED not in os.environ:
        os.environ[MIGRATED] = folder = tempfile.mkdtemp(prefix="rme-test-", dir="/var/tmp")
        Path(folder).chmod(0o755)
        config.add_cleanup(partial(shutil.rmtree, folder, ignore_errors=True))
        if config.getoption("numprocesses", None):
            databases.migrate_template(config.stash[blocking_manager_key])
            config.add_cleanup(databases.drop_template)


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings_parallel_suffix: None) -> None:
    """Copy the database from one that was migrated for all workers, if there is one."""
    databases.use_template()


@pytest.fixture(autouse=True)
def cache_clock() -> Iterator[StandingClock]:
    """Start every test with nothing remembered, in this process and in its Redis database.

    What a cache holds ages as a test says, so that a test on a busy machine makes the same
    statements as on an idle one.
    """
    TtlCache.clear_all()
    # An earlier test that did without a service would let the first second of this one do so too.
    for absence in (task_requests.absence, limiter._absence, availability.reach._absence):
        absence.note_answer()
    for errands in (ERRANDS, HOST_ERRANDS, SERVICE_ERRANDS):
        errands.budget.forget()
    redis_client().flushdb()
    assert availability.allowed() is None, "an earlier test bounded the statements of its process"
    with pytest.MonkeyPatch.context() as patch:
        yield StandingClock(patch, cache)
    TtlCache.clear_all()


@pytest.fixture
def redis_clock(monkeypatch: pytest.MonkeyPatch) -> RedisClock:
    """Return the clock of rate limits and circuits, which stands until it is advanced."""
    return RedisClock(monkeypatch)


@pytest.fixture
def opened(settings: Any) -> Iterator[None]:
    """Let this thread's transport call servers on loopback, as a deployment may open a host."""
    settings.OUTBOUND_OPEN_HOSTS = ["127.0.0.1"]
    per_thread._local.__dict__.clear()
    yield
    per_thread._local.__dict__.clear()


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
    settings.CELERY_BROKER_URL = redis_url.broker_settings(settings.REDIS_URL, "REDIS_URL")["url"]
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
    settings.MFA_TOTP_TOLERANCE = 20  # a code may be minutes late on a machine with load
    # What is left behind is stored by another connection, which sees nothing of a test's open
    # transaction: tests of that have transactions of their own and set a patience.
    settings.PATIENCE_SECONDS = 60.0
    # Tests with many threads are about what they do, and not about how fast the machine is.
    settings.DATABASES["default"]["OPTIONS"]["pool"]["timeout"] = 60.0


@pytest.fixture(autouse=True, scope="session")
def _pages_are_recorded_alone(django_test_environment: None) -> None:
    """Record of what tests render the pages alone."""
    rendering.record_pages_alone()


@pytest.fixture(scope="session")
def django_db_setup(
    django_db_setup: None, django_db_blocker: pytest_django.DjangoDbBlocker
) -> None:
    """Let tests with transactions of their own be followed by an empty audit, as by all tables.

    The audit refuses to be emptied. `tests/tenants/audit` has that switched on.
    """
    with django_db_blocker.unblock(), connection.cursor() as cursor:
        for model in (AuditEntry, AuditValues):
            table = model._meta.db_table
            cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER audit_no_truncate")
        databases.keep()
    TransactionTestCase._fixture_teardown = databases.empty  # type: ignore[method-assign]


@pytest.fixture
def redis() -> Redis:
    """Return a client of an empty Redis."""
    client = redis_client()
    client.flushdb()
    return client


@pytest.fixture
def counting(tmp_path: Path) -> Iterator[Path]:
    """Share this process's metrics in a folder, where they start at 0; return it."""
    meters.share(tmp_path / "metrics")
    yield tmp_path / "metrics"
    meters.reset()


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


@pytest.fixture(scope="session")
def _callers_service() -> Iterator[Service]:
    env = {"OUTBOUND_OPEN_HOSTS": "127.0.0.1", "WEB_WORKERS": "1"}
    with data_folder() as var, running(var, **env) as service:
        yield service


@pytest.fixture
def callers_service(_callers_service: Service) -> Service:
    """Return a service with the demo organizations, which several modules call and may stop."""
    process = _callers_service.process
    if process is None or process.poll() is not None:
        _callers_service.start()
    return _callers_service


@pytest.fixture(scope="session")
def _recorded_statements() -> Iterator[pruning.Recorder]:
    with pruning.Recorder().recording() as recorder:
        yield recorder


@pytest.fixture(autouse=True)
def _statements_do_not_prune_under_a_lock(_recorded_statements: pruning.Recorder) -> Iterator[None]:
    """Fail a test that executes what PostgreSQL 18 cannot: docs/architecture.md, "Locks and
    pruning". Each text is planned once.
    """
    yield
    if statements := _recorded_statements.take():
        refused = pruning.refused(statements, databases.url_of(connection.settings_dict["NAME"]))
        assert not refused, "\n\n".join(each.text for each in refused)


@pytest.fixture(scope="session")
def _postgresql() -> Postgres:
    return Postgres(Path(os.environ.get("RME_VAR", "var")))


@pytest.fixture(autouse=True)
def _postgresql_does_not_crash(_postgresql: Postgres) -> Iterator[None]:
    """Fail a test during which the embedded PostgreSQL crashed: it restarts by itself.

    So does that of a service which the test started or shares with others.
    """
    yield
    assert [*_postgresql.crashes(), *CRASHES.take()] == []
