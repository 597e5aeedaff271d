"""Behind a real PgBouncer in transaction mode, with fewer connections than there are clients."""

import inspect
import os
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from django.db import OperationalError, ProgrammingError, connection, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from structlog.testing import capture_logs

from messaging.accept import idempotency
from messaging.models import Message
from messaging.store.idempotency import KeyScope
from rme.core.db import availability, locks
from rme.core.db.postgresql import direct
from rme.core.environment import database_settings
from rme.tenants.models import Organization
from tests import factories
from tests.fakes.pgbouncer import PREPARING, PREPARING_REASON, REASON, SERVER, PgBouncer
from tests.rest import Api, message

KEY = {"Idempotency-Key": "order-42"}
needs_pooler = pytest.mark.skipif(SERVER is None, reason=REASON)


@pytest.fixture(scope="module")
def pooler(django_db_setup, django_db_blocker):
    """Start one PgBouncer for all tests of the module."""
    with django_db_blocker.unblock(), tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        given = connection.get_connection_params()
        found = PgBouncer(Path(folder) / "pool", str(given["host"]), str(given["dbname"]))
        found.start()
        yield found
        found.stop()


@pytest.fixture
def preparing(transactional_db):
    """Put a PgBouncer that keeps statements prepared between this process and PostgreSQL."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        given = connection.get_connection_params()
        host, name = str(given["host"]), str(given["dbname"])
        found = PgBouncer(Path(folder) / "pool", host, name, size=1, prepares=True)
        found.start()
        env = {"DATABASE_URL": found.url, "DATABASE_DIRECT_URL": own_url(found)}
        with databases(DATABASE_POOLER="transaction", DATABASE_PREPARED_STATEMENTS="1", **env):
            yield found
        found.stop()


@contextmanager
def databases(**env):
    """Let this process and its threads use the databases that an environment names."""
    own, before = connections["default"], dict(connections.settings)
    own.close()
    own.close_pool()
    for alias, database in database_settings.read(env).items():
        connections.settings[alias] = {**before["default"], **database}
    connections["default"] = connections.create_connection("default")
    try:
        with pytest.MonkeyPatch.context() as patch:
            # Django's test case refuses threads a database that is not there when it begins.
            refusing = inspect.getclosurevars(BaseDatabaseWrapper.ensure_connection).nonlocals
            connect = refusing["real_ensure_connection"]
            patch.setattr(BaseDatabaseWrapper, "ensure_connection", connect)
            yield
    finally:
        for alias in list(connections.settings):
            connections[alias].close()
            connections[alias].close_pool()
            del connections[alias]
        connections.settings.clear()
        connections.settings.update(before)
        connections["default"] = own


def own_url(pooler):
    return urlsplit(os.environ["DATABASE_URL"])._replace(path=f"/{pooler.name}").geturl()


@pytest.fixture
def pooled(transactional_db, pooler):
    """Put PgBouncer between this process and PostgreSQL."""
    env = {"DATABASE_URL": pooler.url, "DATABASE_DIRECT_URL": own_url(pooler)}
    with databases(DATABASE_POOLER="transaction", **env):
        yield


def in_threads(count, function):
    """Run a function in threads at once, each with a connection of its own."""
    start = threading.Barrier(count)

    def run(number):
        try:
            start.wait(30)
            return function(number)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


def session_locks():
    """Return how many advisory locks somebody holds."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database = "
            "(SELECT oid FROM pg_database WHERE datname = current_database())"
        )
        return cursor.fetchone()[0]


@needs_pooler
def test_a_key_is_used_once_by_calls_that_share_connections(pooled):
    org = factories.organization()
    factories.welcome(org)
    body = message(factories.contact(org))
    api = Api(org)
    answers = in_threads(8, lambda _: api.send(body, **KEY))
    codes = {answer.status_code for answer in answers}
    assert codes in ({202}, {202, 409})
    assert Message.objects.count() == 1
    again = api.send(body, **KEY)
    assert (again.status_code, again.json()["messageId"]) == (202, str(Message.objects.get().pk))
    many = in_threads(8, lambda number: api.send(body, **{"Idempotency-Key": f"{number}"}))
    assert [answer.status_code for answer in many] == [202] * 8
    assert session_locks() == 0


@needs_pooler
def test_a_key_is_held_while_its_request_waits(pooled):
    scope = KeyScope(factories.organization().pk, 1, "order-42")
    inside, done = threading.Event(), threading.Event()

    def waiting(number):
        if number:
            assert inside.wait(30)
            with idempotency.holding([scope]) as held:
                left_out = scope not in held
            done.set()
            return left_out
        with idempotency.holding([scope], is_waiting=True) as held:
            inside.set()
            assert done.wait(30)
            return held

    assert in_threads(2, waiting) == [{scope: None}, True]
    assert session_locks() == 0


def prepared_count():
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_prepared_statements WHERE name LIKE 'PGBOUNCER%'")
        return cursor.fetchone()[0]


@pytest.mark.skipif(not PREPARING.exists(), reason=PREPARING_REASON)
def test_pooler_keeps_statements_prepared(preparing):
    org = factories.organization()
    factories.welcome(org)
    body = message(factories.contact(org))
    api = Api(org)
    assert [api.send(body).status_code for _ in range(2)] == [202] * 2
    prepared = prepared_count()
    assert prepared > 3
    answers = in_threads(6, lambda _: [api.send(body).status_code for _ in range(3)])
    assert answers == [[202] * 3] * 6  # by six clients in turns on one of PostgreSQL's sessions
    assert prepared_count() < 2 * prepared  # clients share what has the same text
    preparing.stop()
    preparing.start()
    connection.close()  # as at the end of a request
    assert [api.send(body).status_code for _ in range(2)] == [202] * 2
    connection.cursor().execute("DEALLOCATE ALL")
    assert [api.send(body).status_code for _ in range(2)] == [202] * 2


@needs_pooler
def test_locks_hold_across_transactions(pooled):
    inside, done = threading.Event(), threading.Event()

    def contend(number):
        if not number:
            with locks.alone("job") as alone, locks.holding(["a", "b"], time.monotonic() + 30):
                assert (alone, direct.is_pooled()) == (True, False)
                factories.organization()
                inside.set()
                assert done.wait(30)
            return direct.is_pooled()
        assert inside.wait(30)
        with locks.alone("job") as alone:
            assert not alone
        with pytest.raises(locks.Busy), locks.holding(["b"], time.monotonic() + 0.3):
            pass
        done.set()
        return Organization.objects.count()

    assert in_threads(2, contend) == [True, 1]
    assert session_locks() == 0
    refused = pytest.raises(ProgrammingError, match="within a transaction")
    with transaction.atomic(), refused, locks.alone("job"):
        pass


def shown(setting):
    with connection.cursor() as cursor:
        cursor.execute(f"SHOW {setting}")
        return cursor.fetchone()[0]


@needs_pooler
def test_time_limits_apply_to_one_session(pooled):
    assert (shown("jit"), shown("client_connection_check_interval")) == ("off", "2s")
    availability.limit(20.0)
    try:
        with availability.unlimited():
            assert (shown("statement_timeout"), shown("jit")) == ("0", "off")
            assert availability.allowed() is None
        with direct.session():
            assert shown("statement_timeout") == "18s"
        assert in_threads(4, lambda _: shown("statement_timeout")) == ["0"] * 4
        with availability.within(0.3), pytest.raises(OperationalError):
            connection.cursor().execute("SELECT pg_sleep(30)")
        availability.reach.found()
        availability.refresh()
        assert shown("jit") == "off"
    finally:
        availability.limit(None)


@needs_pooler
def test_rows_are_read_in_parts_and_migrations_have_a_session(pooled, capsys):
    for number in range(5):
        factories.organization(f"o{number}")
    assert len(list(Organization.objects.order_by("pk").iterator(chunk_size=2))) == 5
    call_command("migrate", verbosity=0)
    assert direct.is_pooled()


@needs_pooler
def test_unconfigured_pooler_is_detected(transactional_db, pooler):
    told = "DATABASE_URL leads to a pooler in transaction mode: set DATABASE_POOLER=transaction"
    with capture_logs() as logs, pytest.raises(psycopg.OperationalError):
        availability.BoundedConnection.connect(pooler.url, options="-c jit=off")
    assert {"event": "database.pooler", "hint": direct._HINT, "log_level": "warning"} in logs
    pooler.stop()
    pooler.start(ignored="options")
    with databases(DATABASE_URL=pooler.url):
        assert str(direct.problem()).startswith(told)
        with pytest.raises(CommandError, match="DATABASE_POOLER=transaction"):
            call_command("migrate", verbosity=0)


@needs_pooler
@pytest.mark.parametrize(
    ("name", "told"),
    [("session_{}", "None"), ("{}?application_name=x", "DATABASE_DIRECT_URL leads to a pooler")],
    ids=["a pool in session mode", "the pool in transaction mode"],
)
def test_direct_address_is_checked(transactional_db, pooler, name, told):
    pooler.stop()
    pooler.start(ignored="options")
    url = pooler.url.removesuffix(pooler.name) + name.format(pooler.name)
    env = {"DATABASE_POOLER": "transaction", "DATABASE_URL": pooler.url}
    with databases(DATABASE_DIRECT_URL=url, **env):
        assert str(direct.problem()).startswith(told)


@pytest.mark.parametrize(
    ("env", "told"),
    [
        ({"DATABASE_POOLER": "statement"}, "DATABASE_POOLER=statement is not known"),
        ({"DATABASE_POOLER": "transaction"}, "go together"),
        ({"DATABASE_DIRECT_URL": "postgres://b/x"}, "go together"),
        (
            {"DATABASE_POOLER": "transaction", "DATABASE_DIRECT_URL": "postgres://a/x"},
            "DATABASE_DIRECT_URL is DATABASE_URL",
        ),
    ],
    ids=["unknown", "without a direct address", "without a pooler", "the same address"],
)
def test_unworkable_settings_are_rejected(env, told):
    with pytest.raises(ImproperlyConfigured, match=told):
        database_settings.read({"DATABASE_URL": "postgres://a/x", **env})


def test_prepared_statements_are_off_behind_a_pooler_unless_it_keeps_them():
    env = {"DATABASE_POOLER": "transaction", "DATABASE_DIRECT_URL": "postgres://b/x"}
    env["DATABASE_URL"] = "postgres://a/x"
    kept = database_settings.read({**env, "DATABASE_PREPARED_STATEMENTS": "1"})
    for found, threshold in ((database_settings.read(env), None), (kept, 2)):
        assert found["default"]["OPTIONS"]["prepare_threshold"] == threshold
        assert "options" not in found["default"]["OPTIONS"]
        assert found["direct"]["OPTIONS"]["prepare_threshold"] == 2
