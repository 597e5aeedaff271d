"""Connections that died, statements that get no answer, and which errors say so."""

import threading

import psycopg
import pytest
from django.db import (
    DataError,
    Error,
    IntegrityError,
    InternalError,
    OperationalError,
    ProgrammingError,
    connection,
    transaction,
)
from psycopg import errors

from rme.core import absence
from rme.core.db import availability, prepared_statements
from rme.core.db.availability import Reach
from tests.clocks import StandingClock

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def clock(monkeypatch):
    """Return the clock of the pauses in which nobody tries PostgreSQL."""
    return StandingClock(monkeypatch, absence)


@pytest.fixture
def bound():
    """Bound the statements of this process, as those of the web are."""
    yield availability.limit
    availability.limit(None)
    connection.close()
    connection.close_pool()


def pid():
    return prepared_statements.execute("SELECT pg_backend_pid()")[0][0]


def end(*pids):
    """End backends from beside, and wait until they are gone."""
    given = connection.get_connection_params()
    where = {name: given[name] for name in ("host", "port", "user", "dbname") if name in given}
    with psycopg.connect(**where) as beside:
        for each in pids:
            beside.execute("SELECT pg_terminate_backend(%s, 5000)", [each])


def of_cursor(statement):
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchone()[0]


def test_connection_ended_while_idle_is_replaced():
    first = pid()
    end(first)
    availability.refresh()
    second = pid()
    assert second != first
    connection.close()  # back into the pool, where it is ended
    end(second)
    assert of_cursor("SELECT pg_backend_pid()") not in (first, second)


def test_all_connections_of_the_pool_may_have_been_ended():
    connection.close()
    connection.close_pool()  # with those that other tests ended
    pid()
    raws = [connection.pool.getconn() for _ in range(3)]
    pids = [each.execute("SELECT pg_backend_pid()").fetchone()[0] for each in raws]
    for each in raws:
        connection.pool.putconn(each)
    connection.close()
    end(*pids)
    assert pid() not in pids


def test_live_connection_is_checked_without_a_statement():
    before = pid()
    with connection.execute_wrapper(lambda *_: pytest.fail("a statement was executed")):
        availability.refresh()
        assert availability.is_alive(connection.connection)
    assert pid() == before


def test_a_notice_of_the_server_does_not_end_a_connection():
    before = pid()
    prepared_statements.execute("LISTEN told")

    def tell():
        of_cursor("SELECT pg_notify('told', '')")
        connection.close()

    beside = threading.Thread(target=tell)
    beside.start()
    beside.join(10)
    availability.refresh()
    assert pid() == before


def test_connection_in_a_transaction_is_not_replaced():
    with transaction.atomic():
        before = pid()
        availability.refresh()
        assert pid() == before


@pytest.mark.parametrize(
    "execute", [prepared_statements.execute, of_cursor], ids=["direct", "cursor"]
)
def test_postgresql_cancels_a_slow_statement(bound, execute, monkeypatch):
    """Its limit is far below the client's here: a stalled client must not be the first to end."""
    monkeypatch.setattr(availability, "SERVER_SHARE", 0.02)
    connection.close()
    connection.close_pool()
    bound(20.0)
    first = pid()
    with pytest.raises(OperationalError) as caught:
        execute("SELECT pg_sleep(30)")
    assert caught.value.__cause__.sqlstate == "57014"
    assert pid() == first
    with availability.unlimited():
        assert availability.allowed() is None
        execute("SELECT pg_sleep(1)")
    assert availability.allowed() == 20.0
    with pytest.raises(OperationalError):
        execute("SELECT pg_sleep(30)")


def test_postgresql_cancels_before_the_client_gives_up(bound):
    connection.close()
    connection.close_pool()
    bound(20.0)
    assert of_cursor("SHOW statement_timeout") == "18s"


def in_pipeline(statement):
    with prepared_statements.pipeline() as batch:
        batch.send(statement)


def in_transaction(statement):
    with prepared_statements.transaction():
        prepared_statements.execute(statement)


def by_atomic(statement):
    with transaction.atomic():
        of_cursor(statement)


@pytest.mark.parametrize(
    "execute", [prepared_statements.execute, of_cursor, in_pipeline, in_transaction, by_atomic]
)
def test_a_statement_without_an_answer_ends_in_time(execute):
    """The server goes on: nothing but our own bound can end the wait."""
    first = pid()
    with availability.within(0.3), pytest.raises(OperationalError) as caught:
        execute("SELECT pg_sleep(3)")
    assert availability.is_unavailable(caught.value)
    availability.refresh()
    assert pid() != first


def test_one_caller_retries_an_absent_database_while_others_fail_at_once(bound, clock):
    bound(1.0)
    reach, lost = Reach(), psycopg.OperationalError()
    reach.require()
    reach.lost(lost)
    with pytest.raises(psycopg.OperationalError):
        reach.require()
    clock.advance(availability.RETRY_SECONDS)
    reach.require()
    with pytest.raises(psycopg.OperationalError):
        reach.require()
    reach.found()
    reach.require()
    reach.require()


def caused(kind, cause):
    error = kind("x")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "away"),
    [
        (caused(OperationalError, errors.AdminShutdown()), True),
        (caused(OperationalError, errors.CannotConnectNow()), True),
        (caused(OperationalError, errors.ConnectionFailure()), True),
        (caused(OperationalError, errors.DiskFull()), True),
        (caused(OperationalError, errors.QueryCanceled()), True),
        (caused(OperationalError, psycopg.OperationalError()), True),
        (caused(InternalError, errors.ReadOnlySqlTransaction()), True),
        (caused(Error, psycopg.DatabaseError()), False),
        (caused(InternalError, errors.InFailedSqlTransaction()), False),
        (caused(ProgrammingError, errors.UndefinedTable()), False),
        (caused(ProgrammingError, psycopg.ProgrammingError()), False),
        (caused(DataError, psycopg.DataError()), False),
        (caused(IntegrityError, errors.UniqueViolation()), False),
        (ValueError(), False),
    ],
)
def test_an_error_says_whether_the_database_is_away(error, away):
    assert availability.is_unavailable(error) is away
