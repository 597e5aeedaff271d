"""When PostgreSQL restarted last: shut down, or after a crash, on the embedded one and on 15."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from django.db import connection

from rme.core.db import server as postgresql
from rme.core.db.server import Restart
from rme.run.engines import Postgres
from rme.run.places import engine_env
from tests.faults.engines import eventually
from tests.messaging.delivery.test_postgresql_15 import BINARIES, server
from tests.service import CRASHES, data_folder

__all__ = ["server"]
pytestmark = pytest.mark.system
NOW = datetime(2026, 11, 26, 21, 48, 23, tzinfo=UTC)


@contextmanager
def own_server() -> Iterator[tuple[Postgres, str]]:
    with data_folder() as folder:
        engine = Postgres(folder, ephemeral=True)
        engine.start()
        try:
            yield engine, engine_env(folder)["DATABASE_URL"]
        finally:
            engine.stop()


def last_start(url: str) -> Any:
    with psycopg.connect(url) as reader:
        return reader.execute(postgresql.LAST_START).fetchone()


def crash(url: str) -> None:
    """Have a process of the server crash, and wait until the server has restarted."""
    with psycopg.connect(url) as doomed:
        os.kill(doomed.info.backend_pid, signal.SIGSEGV)
        with pytest.raises(psycopg.OperationalError):
            doomed.execute("SELECT pg_sleep(30)")

    def answers() -> bool:
        try:
            return bool(last_start(url))
        except psycopg.OperationalError:
            return False

    assert eventually(answers, 10)


def check_crash(url: str) -> None:
    before, is_after_crash = last_start(url)
    assert is_after_crash is False
    crash(url)
    at, is_after_crash = last_start(url)
    assert is_after_crash is True
    assert before < at <= datetime.now(UTC)


def test_start_after_shutdown_and_after_crash():
    with own_server() as (engine, url):
        check_crash(url)
        (found,) = CRASHES.take()
        assert "was terminated by signal 11" in found
        crashed, _ = last_start(url)
        engine.stop()
        engine.start()
        at, is_after_crash = last_start(url)
        assert (crashed < at, is_after_crash) == (True, False)


def test_statistics_reset_by_hand_is_no_crash():
    with own_server() as (_, url), psycopg.connect(url, autocommit=True) as admin:
        before = last_start(url)
        for target in ("archiver", "bgwriter"):
            admin.execute("SELECT pg_stat_reset_shared(%s)", [target])
        assert last_start(url) == before


@pytest.mark.skipif(not (BINARIES / "postgres").exists(), reason="PostgreSQL 15 is not installed")
def test_crash_of_postgresql_15(server):
    check_crash(server)


@pytest.mark.parametrize(
    ("age", "is_after_crash", "is_recent"),
    [
        (timedelta(minutes=14), False, True),
        (timedelta(minutes=15), False, False),
        (timedelta(hours=23), True, True),
        (timedelta(days=1), True, False),
    ],
)
def test_restart_is_recent(age, is_after_crash, is_recent):
    assert Restart(NOW, age, is_after_crash).is_recent == is_recent


@pytest.mark.django_db
def test_start_before_the_installation_is_not_a_restart():
    """The tests' server has run since before their database was migrated."""
    assert postgresql.read() == postgresql.ServerState(is_read_only=False, restart=None)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE django_migrations SET applied = '2020-01-01T00:00:00Z' WHERE id = 1")
    restart = postgresql.read().restart
    assert restart is not None
    assert abs(datetime.now(UTC) - restart.at - restart.age) < timedelta(seconds=30)
