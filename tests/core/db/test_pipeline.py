"""Pipelines and transactions: the order of statements, their rows, and all or nothing."""

import signal
import threading
from datetime import UTC, datetime

import psycopg
import pytest
from django.db import (
    DataError,
    IntegrityError,
    InterfaceError,
    OperationalError,
    ProgrammingError,
    connection,
    transaction,
)

from rme.core.db import availability, prepared_statements
from tests import databases
from tests.core.db.prepared_scene import add, add_later, by_cursor, roll_back, stored, table
from tests.core.db.test_availability import end, pid
from tests.service import wait_for

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("table")]
__all__ = ["table"]


@pytest.fixture
def round_trips(tmp_path, table):
    """Return a function that counts the round trips so far, by libpq's trace of the protocol."""
    stored()
    path = tmp_path / "trace"
    pgconn = connection.connection.pgconn
    with path.open("w") as file:
        pgconn.trace(file.fileno())

        def count():
            pgconn.untrace()  # which writes what libpq has buffered
            pgconn.trace(file.fileno())
            return path.read_text().count("ReadyForQuery")

        yield count
        pgconn.untrace()


def test_statements_are_sent_once_the_rows_of_one_are_needed(round_trips):
    with prepared_statements.transaction() as batch:
        one, two = add_later(batch, 1), add_later(batch, 2)
        assert round_trips() == 0
        assert batch.send("SELECT count(*) FROM direct").rows() == [(2,)]
        three = add_later(batch, 3)
        assert (one.rows(), two.rows()) == ([(1,)], [(2,)])
        assert round_trips() == 1
    assert three.rows() == [(3,)]
    assert round_trips() == 2
    assert stored() == [1, 2, 3]


def test_transaction_without_rows_to_read_is_one_round_trip(round_trips):
    with prepared_statements.transaction() as batch:
        answers = [add_later(batch, n) for n in range(5)]
    assert [answer.rows() for answer in answers] == [[(n,)] for n in range(5)]
    assert round_trips() == 1
    with prepared_statements.transaction():
        pass
    assert round_trips() == 1


def test_order_is_kept_with_cursors_in_between():
    with prepared_statements.transaction() as batch:
        add_later(batch, 1)
        assert by_cursor("UPDATE direct SET n = n + 10 RETURNING n", []) == [(11,)]
        add_later(batch, 2)
        assert by_cursor("SELECT n FROM direct ORDER BY n", []) == [(2,), (11,)]
        add_later(batch, datetime(2026, 1, 1, tzinfo=UTC).year)
    assert stored() == [2, 11, 2026]


def test_execute_between_keeps_the_order_and_is_not_delayed():
    with prepared_statements.transaction() as batch:
        add_later(batch, 1)
        update = "UPDATE direct SET n = n + 10 RETURNING n"
        assert prepared_statements.execute(update) == [(11,)]
        add_later(batch, 2)
    assert stored() == [2, 11]
    with prepared_statements.pipeline() as batch:
        add_later(batch, 3)
        assert stored() == [2, 11]
        with pytest.raises(ProgrammingError):
            prepared_statements.execute(update)
    assert stored() == [2, 3, 11]


def test_batch_of_an_outer_transaction_keeps_the_order_of_both():
    with prepared_statements.transaction() as outer:
        add_later(outer, 1)
        with prepared_statements.transaction() as inner:
            add_later(inner, 2)
            add_later(outer, 3)
            add_later(inner, 4)
        add_later(outer, 5)
    order = by_cursor("SELECT n FROM direct ORDER BY ctid", [])
    assert [n for (n,) in order] == [1, 2, 3, 4, 5]


def test_statements_of_two_transactions_keep_their_batch():
    with prepared_statements.transaction() as batch:
        first = add_later(batch, 1)
    with prepared_statements.transaction() as batch:
        second = add_later(batch, 2)
        assert first.rows() == [(1,)]
        assert second.result is None
        assert second.rows() == [(2,)]


def test_first_of_several_errors_is_raised_and_nothing_is_stored():
    with connection.cursor() as cursor:
        cursor.execute("CREATE UNIQUE INDEX ON direct (n)")
    with pytest.raises(IntegrityError), prepared_statements.transaction() as batch:
        add_later(batch, 1)
        again = add_later(batch, 1)
        batch.send("SELECT 1 / %s::int", [0])
    with pytest.raises(InterfaceError):
        again.rows()
    with pytest.raises(DataError), prepared_statements.transaction() as batch:
        add_later(batch, 2)
        prepared_statements.execute("SELECT 1 / %s::int", [0])
    assert stored() == []
    with prepared_statements.transaction() as batch:
        add_later(batch, 3)
    assert stored() == [3]


def test_waiting_statements_are_dropped_with_their_transaction():
    with pytest.raises(ZeroDivisionError), prepared_statements.transaction() as batch:
        answer = add_later(batch, 1)
        raise ZeroDivisionError
    with pytest.raises(InterfaceError):
        answer.rows()
    assert stored() == []


def test_an_error_of_the_commit_is_raised():
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE direct ADD UNIQUE (n) DEFERRABLE INITIALLY DEFERRED")
    with pytest.raises(IntegrityError), prepared_statements.transaction():
        add(1)
        add(1)
    assert stored() == []


def test_a_pipeline_is_one_round_trip(round_trips):
    with prepared_statements.pipeline() as batch:
        answers = [add_later(batch, n) for n in range(5)]
        assert round_trips() == 0
    assert [answer.rows() for answer in answers] == [[(n,)] for n in range(5)]
    assert round_trips() == 1
    with prepared_statements.pipeline():
        pass
    assert round_trips() == 1
    assert stored() == [0, 1, 2, 3, 4]


def test_a_pipeline_is_all_or_nothing():
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE direct ADD UNIQUE (n) DEFERRABLE INITIALLY DEFERRED")
    with pytest.raises(DataError), prepared_statements.pipeline() as batch:
        add_later(batch, 1)
        batch.send("SELECT 1 / %s::int", [0])
        add_later(batch, 2)
    with pytest.raises(IntegrityError), prepared_statements.pipeline() as batch:
        add_later(batch, 3)
        add_later(batch, 3)
    with pytest.raises(ZeroDivisionError), prepared_statements.pipeline() as batch:
        add_later(batch, 4)
        raise ZeroDivisionError
    assert stored() == []
    with prepared_statements.pipeline() as batch:
        add_later(batch, 5)
    assert stored() == [5]


def test_a_lock_of_a_pipeline_is_held_to_its_end():
    free = "SELECT pg_try_advisory_lock(7)"
    with prepared_statements.pipeline() as batch:
        batch.send("SELECT pg_advisory_xact_lock(7)")
        own = batch.send(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()"
        )
    assert own.rows() == [(1,)]
    assert prepared_statements.execute(free) == [(True,)]
    assert prepared_statements.execute("SELECT pg_advisory_unlock(7)") == [(True,)]


def test_no_rows_can_be_read_in_a_pipeline():
    with pytest.raises(ProgrammingError), prepared_statements.pipeline() as batch:
        add_later(batch, 1).rows()
    assert stored() == []


@pytest.mark.parametrize("value", ["a\0b", ["a"]])
def test_pipeline_with_invalid_parameter_does_nothing(value):
    with pytest.raises((DataError, TypeError)), prepared_statements.pipeline() as batch:
        add_later(batch, 1)
        batch.send("SELECT %s", [value])
    assert stored() == []


def test_a_cursor_may_read_outside_of_the_pipeline():
    with prepared_statements.pipeline() as batch:
        add_later(batch, 1)
        assert by_cursor(" select count(*) FROM direct", []) == [(0,)]
        add_later(batch, 2)
    assert stored() == [1, 2]


@pytest.mark.parametrize("nested", [False, True])
def test_a_cursor_may_not_write_in_a_pipeline(nested):
    def write():
        by_cursor("INSERT INTO direct VALUES (3) RETURNING n", [])

    with pytest.raises(ProgrammingError), prepared_statements.pipeline() as batch:
        add_later(batch, 1)
        if nested:
            with transaction.atomic():
                write()
        else:
            write()
    assert stored() == []
    add(4)
    assert stored() == [4]


@pytest.mark.parametrize("opening", [prepared_statements.pipeline, prepared_statements.transaction])
def test_no_transaction_is_opened_in_a_pipeline(opening):
    with pytest.raises(ProgrammingError), prepared_statements.pipeline() as batch:
        add_later(batch, 1)
        with opening() as inner:
            add_later(inner, 2)
    assert stored() == []
    with prepared_statements.pipeline() as batch:
        add_later(batch, 3)
    assert stored() == [3]


def test_pipeline_within_a_transaction_belongs_to_it():
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        with prepared_statements.pipeline() as batch:
            answer = add_later(batch, 1)
        assert answer.rows() == [(1,)]
        raise ZeroDivisionError
    assert stored() == []


def test_dropped_statements_are_prepared_again_for_a_pipeline():
    with prepared_statements.pipeline() as batch:
        add_later(batch, 1)
    roll_back()
    with prepared_statements.pipeline() as batch:
        add_later(batch, 2)
        add_later(batch, 3)
    assert stored() == [1, 2, 3]


def test_much_goes_both_ways_at_once():
    long = "x" * 3_000_000  # more than sockets and libpq hold
    with prepared_statements.transaction() as batch:
        answers = [batch.send("SELECT %s::text || %s::text", [long, str(n)]) for n in range(5)]
    assert [answer.rows() == [(long + str(n),)] for n, answer in enumerate(answers)] == [True] * 5


class Interrupted(Exception):
    """What a signal's handler raises, as Celery's for a time limit does."""


def sleeps(backend):
    """Return whether a backend executes `pg_sleep`, as another connection sees it."""
    statement = "SELECT wait_event = 'PgSleep' FROM pg_stat_activity WHERE pid = %s"
    with psycopg.connect(databases.url_of(connection.settings_dict["NAME"])) as beside:
        return beside.execute(statement, [backend]).fetchone()[0]


@pytest.fixture
def interrupted_backend():
    """Return this connection's backend; a signal interrupts this thread once it sleeps."""

    def handle(*_):
        raise Interrupted

    def interrupt():
        wait_for(lambda: sleeps(backend))
        signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, handle)
    backend = pid()
    interrupting = threading.Thread(target=interrupt)
    interrupting.start()
    yield backend
    interrupting.join()
    signal.signal(signal.SIGUSR1, before)
    end(backend)


@pytest.mark.parametrize("opening", [prepared_statements.pipeline, prepared_statements.transaction])
def test_an_interrupted_wait_closes_the_connection(interrupted_backend, opening):
    add(1)
    with pytest.raises(Interrupted), opening() as batch:
        add_later(batch, 2)
        batch.send("SELECT pg_sleep(60)")
    assert sleeps(interrupted_backend)  # the wait did not last until its answer
    availability.refresh()
    assert stored() == [1]


def test_pipeline_failing_before_it_is_sent_does_nothing():
    add(1)
    with pytest.raises(ProgrammingError), prepared_statements.pipeline() as batch:
        add_later(batch, 2)
        batch.send("SELECT %s", [])
    connection.close_if_unusable_or_obsolete()
    assert stored() == [1]


@pytest.mark.parametrize("opening", [prepared_statements.pipeline, prepared_statements.transaction])
@pytest.mark.parametrize("size", [0, 1_000_000])
def test_first_error_is_raised_for_results_of_any_size(opening, size):
    for _ in range(3):
        with pytest.raises(DataError), opening() as batch:
            batch.send("SELECT repeat('x', %s::int)", [size])
            batch.send("SELECT 1 / %s::int", [0])
            for n in range(50):
                batch.send("SELECT %s::text", ["x" * 100_000 + str(n)])


@pytest.mark.parametrize("opening", [prepared_statements.pipeline, prepared_statements.transaction])
def test_an_operational_error_of_a_statement_keeps_the_connection(opening):
    (before,) = prepared_statements.execute("SELECT pg_backend_pid()")
    with pytest.raises(OperationalError) as caught, opening() as batch:
        batch.send("SET LOCAL statement_timeout = 100")
        batch.send("SELECT pg_sleep(5)")
        for _ in range(50):
            batch.send("SELECT %s::text", ["x" * 100_000])
    assert caught.value.__cause__.sqlstate == "57014"
    assert prepared_statements.execute("SELECT pg_backend_pid()") == [before]


def test_a_connection_lost_in_a_transaction_is_an_operational_error():
    add(1)

    def end(pid):
        prepared_statements.execute("SELECT pg_terminate_backend(%s::int)", [pid])
        connection.close()

    with pytest.raises(OperationalError), prepared_statements.transaction() as batch:
        (pid,) = prepared_statements.execute("SELECT pg_backend_pid()")[0]
        other = threading.Thread(target=end, args=[pid])
        other.start()
        other.join(10)
        add_later(batch, 2)
    assert stored() == [1]
