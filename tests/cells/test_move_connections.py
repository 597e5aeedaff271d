"""The connections of a move: sessions of PostgreSQL itself, whose commits are on its standby."""

import os
import tempfile
import threading
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from django.conf import settings as project
from django.core.management import CommandError
from django.db import connection

from rme.cells import moving
from rme.cells.moving import databases
from rme.core.environment import database_settings, database_url
from tests.cells.two_databases import move, phase, to_us
from tests.drills.machine import machine_folder
from tests.drills.postgres import Server, wait_until
from tests.fakes.pgbouncer import REASON, SERVER, PgBouncer
from tests.service import free_port


@pytest.fixture
def pooler():
    """Start a PgBouncer in transaction mode before this cell's database."""
    if SERVER is None:
        pytest.skip(REASON)
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        given = connection.get_connection_params()
        found = PgBouncer(Path(folder) / "pool", str(given["host"]), str(given["dbname"]))
        found.start()
        yield found
        found.stop()


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("redis", "scene")
def test_move_bypasses_the_pooler_of_its_cell(us, pooler, monkeypatch):
    own = urlsplit(os.environ["DATABASE_URL"])._replace(path=f"/{pooler.name}").geturl()
    env = {"DATABASE_URL": pooler.url, "DATABASE_POOLER": "transaction"}
    found = database_settings.read({**env, "DATABASE_DIRECT_URL": own})
    monkeypatch.setattr(project, "DATABASES", found)
    move()
    with us():
        assert phase() == ""


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("redis", "scene")
def test_a_move_through_a_pooler_is_refused(us, pooler, settings, monkeypatch):
    direct, pooled = settings.MOVE_DATABASE_URL, database_url.parse(pooler.url)
    settings.MOVE_DATABASE_URL = pooler.url
    with pytest.raises(CommandError, match=r"MOVE_DATABASE_URL leads to a pooler"):
        move()
    settings.MOVE_DATABASE_URL = direct
    monkeypatch.setattr(project, "DATABASES", {"default": pooled})
    with pytest.raises(CommandError, match=r"or DATABASE_URL leads to a pooler"):
        move()
    with psycopg.connect(pooler.url, autocommit=True) as client:
        source = "SELECT source FROM pg_settings WHERE name = 'bytea_output'"
        assert client.execute(source).fetchone() == ("default",)  # nothing was left in its session
    assert phase() == ""


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("redis", "scene")
def test_move_waits_only_for_foreign_transactions_and_names_them_first(us):
    said = []
    with (
        moving.opened(to_us(), "acme", said.append) as mover,
        databases.connect(to_us().source, "") as another_move,
    ):
        another_move.execute("BEGIN")
        another_move.execute("SELECT 1")
        url = os.environ["DATABASE_URL"]
        name = connection.settings_dict["NAME"]
        with psycopg.connect(url, dbname=name, application_name="pg_dump") as dump:
            dump.execute("SELECT 1")
            with pytest.raises(moving.TakesTooLong, match=r"of process \d+ \(pg_dump\)\.$"):
                mover.move(moving.MoveLimits(leaving_seconds=0.0))
        assert (phase(), "leaving" in said) == ("", False)
        mover.move(moving.MoveLimits())
    with us():
        assert phase() == ""


@pytest.fixture
def server():
    """Run a server that ends connections which wait, and whose standby is not there."""
    with machine_folder() as folder:
        server = Server(folder, idle_in_transaction_session_timeout="1s", statement_timeout="1s")
        server.start()
        try:
            server.sql("CREATE TABLE kept (number int)")
            yield server
        finally:
            server.stop()


def test_connection_uses_the_writable_host_without_time_limits(server):
    url = f"postgres://rme@127.0.0.1:{free_port()},127.0.0.1:{server.port}/rme?sslmode=disable"
    with databases.connect(database_url.parse(url), "MOVE_DATABASE_URL") as found:
        given = found.info.get_parameters()
        assert (given["target_session_attrs"], given["sslmode"]) == ("read-write", "disable")
        for name in ("statement_timeout", "idle_in_transaction_session_timeout"):
            assert found.execute(f"SHOW {name}").fetchone() == ("0",)


def test_commit_missing_on_the_standby_is_an_error(server):
    server.sql("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
    server.sql("SELECT pg_reload_conf()")
    wait_until(lambda: server.sql("SHOW synchronous_standby_names") == [("nobody",)], "")
    waiting = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
    cancel = threading.Thread(target=wait_until, args=(lambda: server.sql(waiting), "it waits not"))
    url = f"postgres://rme@127.0.0.1:{server.port}/rme"
    with databases.connect(database_url.parse(url), "MOVE_DATABASE_URL") as found:
        cancel.start()
        with pytest.raises(psycopg.OperationalError, match="without the synchronous standby"):
            found.execute("INSERT INTO kept VALUES (1)")
    cancel.join()
