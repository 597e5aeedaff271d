"""Migrating a database of an early release, while its processes read and write: nobody waits for
a lock for longer than two seconds, and all rows stay as they were.
"""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg.errors import RaiseException

from messaging.domain.statuses import Status
from tests.migrating import release
from tests.service import ROOT

LONGEST_MS = 2000
"""How long a reader or writer waits for a lock: more is an error, by its lock_timeout."""
COUNT = 1000
EARLY = 1_600_000_000_000
"""In 2020, in milliseconds: the default partition has the rows of that time."""

# A lock that lasts as long as a table is large would pass in these small ones. So each change of
# the schema is asked what its transaction has read of a table that it keeps writers from. What the
# session read before is known at the first change: PostgreSQL counts it here too, for a second.
_GUARD = f"""
CREATE VIEW reads AS
  SELECT relid, relname, seq_tup_read + coalesce(idx_tup_fetch, 0) AS tuples
  FROM pg_stat_xact_user_tables WHERE relname ~ '^messaging_({"|".join(release.TABLES)})(_|$)';
CREATE FUNCTION remember_reads() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN
  IF coalesce(current_setting('guard.reads', true), '') = '' THEN
    PERFORM set_config('guard.reads', coalesce(json_object_agg(relid, tuples), '{{}}')::text, true)
    FROM reads;
  END IF;
END $$;
CREATE FUNCTION refuse_long_locks() RETURNS event_trigger LANGUAGE plpgsql AS $$
DECLARE
  before json := coalesce(nullif(current_setting('guard.reads', true), ''), '{{}}');
  found text;
BEGIN
  SELECT string_agg(r.relname || ' under ' || l.mode, ', ' ORDER BY r.relname) INTO found
  FROM pg_locks l JOIN reads r ON r.relid = l.relation
  WHERE l.pid = pg_backend_pid() AND l.granted
    AND r.tuples > coalesce((before ->> r.relid::text)::bigint, 0)
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND l.mode IN ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock');
  IF found IS NOT NULL THEN RAISE EXCEPTION 'rows were read of %', found; END IF;
END $$;
CREATE EVENT TRIGGER remember_reads ON ddl_command_start EXECUTE FUNCTION remember_reads();
CREATE EVENT TRIGGER refuse_long_locks ON ddl_command_end EXECUTE FUNCTION refuse_long_locks();
"""
LONG_LOCKS = [
    "CREATE INDEX ON messaging_delivery (contact_id)",
    "ALTER TABLE messaging_event ALTER channel SET NOT NULL",
    "ALTER TABLE messaging_attempt ALTER latency_ms TYPE bigint",
    "ALTER TABLE messaging_message ADD CHECK (category <> '')",
]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Return the address of a database with the schema of the early release."""
    server = urlsplit(os.environ["DATABASE_URL"])
    name = f"test_release_{os.getpid()}"
    with psycopg.connect(server._replace(path="/postgres").geturl(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        own = server._replace(path=f"/{name}").geturl()
        try:
            run(own, "-m", "tests.migrating.release")
            yield own
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def run(url: str, *command: str) -> None:
    subprocess.run(
        [sys.executable, *command], cwd=ROOT, env={**os.environ, "DATABASE_URL": url}, check=True
    )


@contextmanager
def connected(url: str) -> Iterator["psycopg.Connection"]:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"SET lock_timeout = {LONGEST_MS}")
        yield connection


def going_on(url: str, stop: threading.Event, step: Callable[["psycopg.Connection", int], int]):
    """Repeat a step of the early release until told to stop; return what the steps returned."""
    done = []
    with connected(url) as connection:
        while not stop.is_set():
            done.append(step(connection, len(done)))
            time.sleep(0.005)
    return done


def stored(connection: "psycopg.Connection", schema: str) -> dict[str, int]:
    """Return how many rows each table of a schema has."""
    [counts] = connection.execute(
        "SELECT "
        + ", ".join(f"(SELECT count(*) FROM {schema}.messaging_{name})" for name in release.TABLES)
    )
    return dict(zip(release.TABLES, counts, strict=True))


def changed(connection: "psycopg.Connection", name: str) -> int:
    """Return how many rows of before are gone or have another value in a column of before."""
    columns = ", ".join(
        column
        for (column,) in connection.execute(
            "SELECT quote_ident(attname) FROM pg_attribute "
            "WHERE attrelid = %s::regclass AND attnum > 0 ORDER BY attnum",
            [f"before.messaging_{name}"],
        )
    )
    [(count,)] = connection.execute(
        f"SELECT count(*) FROM (SELECT {columns} FROM before.messaging_{name} "
        f"EXCEPT SELECT {columns} FROM messaging_{name}) gone"
    )
    return int(count)


def test_early_release_keeps_running_during_the_migration(url):
    now = time.time_ns() // 1_000_000
    statuses = [str(status) for status in Status]
    with connected(url) as connection:
        for since in (EARLY, now):
            values = {"first": 1, "last": COUNT}
            keys = connection.execute(release.write(since, statuses), values).fetchall()
        connection.execute("CREATE SCHEMA before")
        for name in release.TABLES:
            copy = f"before.messaging_{name} AS TABLE messaging_{name}"
            connection.execute(f"CREATE TABLE {copy}")
        connection.execute(_GUARD)
        for statement in LONG_LOCKS:
            with pytest.raises(RaiseException):
                connection.execute(statement)

    insert, stop = release.write(now, ["SENDING"]), threading.Event()

    def write(connection, number):
        number += COUNT + 1
        [(key,)] = connection.execute(insert, {"first": number, "last": number})
        return connection.execute(release.CHANGE, [key]).rowcount

    def read(connection, number):
        return len(connection.execute(release.READ, keys[number % COUNT]).fetchall())

    with ThreadPoolExecutor() as pool:
        others = [pool.submit(going_on, url, stop, step) for step in (write, read)]
        try:
            run(url, "manage.py", "migrate", "--verbosity", "0")
        finally:
            stop.set()
        written, found = (each.result(60) for each in others)
    assert len(written) > 10
    assert set(written) == set(found) == {1}
    with connected(url) as connection:
        assert {name: changed(connection, name) for name in release.TABLES} == dict.fromkeys(
            release.TABLES, 0
        )
        assert stored(connection, "public") == {
            name: count + len(written) for name, count in stored(connection, "before").items()
        }
        assert connection.execute(
            "SELECT DISTINCT status FROM messaging_delivery ORDER BY 1"
        ).fetchall() == [(status,) for status in sorted(statuses)]
