"""Organizations whose mail goes by servers that are slow, and what is in flight."""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from django.db import connection

from messaging.delivery.accounts import concurrency
from messaging.delivery.sending_process import SendingProcess
from messaging.models import Delivery, ProviderAccount
from rme.tenants.models import Organization
from tests.fakes.slow_smtp import SlowSmtp


@pytest.fixture
def process() -> Iterator[SendingProcess]:
    """Return what a worker's process has in flight; nothing is left of it afterwards."""
    made = SendingProcess()
    yield made
    assert made.late_outcomes.finish(30)


@pytest.fixture
def impatient(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let windows wait for a short while."""
    settings.OUTBOUND_OPEN_HOSTS = ["127.0.0.1"]
    settings.PATIENCE_SECONDS = 1.0  # the machine may be busy
    for share in ("LEAST_WAIT", "USUAL_WAIT"):
        monkeypatch.setattr(concurrency, share, 1.0)  # and all accounts have so long


def mail_by(server: SlowSmtp, org: Organization, name: str = "mail", **fields: Any) -> int:
    """Let an organization's mail go by a server; return the account's id."""
    given = {"host": "127.0.0.1", "port": server.port, "security": "NONE"}
    given["timeout"] = fields.pop("timeout", 20)
    row = ProviderAccount.objects.create(
        organization=org,
        name=name,
        kind="smtp",
        channel="EMAIL",
        credentials=json.dumps(given),
        **fields,
    )
    return row.pk


def statuses(**chosen: Any) -> Counter[str]:
    return Counter(Delivery.objects.filter(**chosen).values_list("status", flat=True))


def limit(process: SendingProcess, account_id: int) -> int:
    """Return an account's adaptive limit."""
    load = process.load.accounts.get(account_id)
    return load.limit if load else concurrency.WINDOW


def wait_for(condition: Callable[[], object], seconds: float = 20.0) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


@contextmanager
def full_disk(table: str) -> Iterator[None]:
    """Let PostgreSQL say, of every row changed in a table, that there is no room for it (53100)."""
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            "RAISE EXCEPTION 'No space left on device' USING ERRCODE = 'disk_full'; END $$"
        )
        cursor.execute(
            f"CREATE TRIGGER no_room BEFORE UPDATE ON {table} "
            "FOR EACH ROW EXECUTE FUNCTION no_room()"
        )
        try:
            yield
        finally:
            cursor.execute("DROP FUNCTION no_room CASCADE")


@contextmanager
def database_away() -> Iterator[None]:
    """End all connections to the tests' database, and let it refuse new ones."""
    given = connection.get_connection_params()
    name = given["dbname"]
    connection.pool.timeout = 0.5  # instead of the tests' long one; the next pool has that again
    where = {key: given[key] for key in ("host", "port", "user") if key in given}
    with psycopg.connect(**where, dbname="postgres", autocommit=True) as beside:
        beside.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
        try:
            beside.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = %s",
                [name],
            )
            yield
        finally:
            beside.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')
            connection.close()
            connection.close_pool()
