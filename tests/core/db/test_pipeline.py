"""Statements that leave together: their order, their answers, and all or nothing."""

import select
import threading
from datetime import UTC, datetime

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

from rme.core.db import pipeline, prepared_statements
from tests.core.db.prepared_scene import add, add_later, by_cursor, roll_back, stored, table  # noqa: F401

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("table")]


@pytest.fixture
def conversations(monkeypatch, table):  # noqa: F811
    """Count how often the process waits for answers of a transaction."""
    stored()  # what a test before let go of is found out here, and not by a second try
    seen = []
    hear = pipeline.hear
    monkeypatch.setattr(pipeline, "hear", lambda pgconn: seen.append(1) or hear(pgconn))
    return seen


def test_what_nobody_waits_for_leaves_with_what_somebody_does(conversations):
    with prepared_statements.transaction():
        one, two = add_later(1), add_later(2)
        assert conversations == []
        assert stored() == [1, 2]
        three = add_later(3)
        assert (one.rows(), two.rows()) == ([(1,)], [(2,)])
        assert len(conversations) == 1
    assert three.rows() == [(3,)]
    assert len(conversations) == 2
    assert stored() == [1, 2, 3]


def test_a_transaction_that_asks_for_nothing_is_one_conversation(conversations):
    with prepared_statements.transaction():
        answers = [add_later(n) for n in range(5)]
    assert [answer.rows() for answer in answers] == [[(n,)] for n in range(5)]
    assert len(conversations) == 1
    with prepared_statements.transaction():
        pass
    assert len(conversations) == 1


def test_the_order_is_kept_where_cursors_come_between():
    with prepared_statements.transaction():
        add_later(1)
        assert by_cursor("UPDATE straight SET n = n + 10 RETURNING n", []) == [(11,)]
        add_later(2)
        assert by_cursor("SELECT n FROM straight ORDER BY n", []) == [(2,), (11,)]
        add_later(datetime(2026, 1, 1, tzinfo=UTC).year)
    assert stored() == [2, 11, 2026]


def test_the_first_error_of_several_is_told_and_nothing_is_done():
    with connection.cursor() as cursor:
        cursor.execute("CREATE UNIQUE INDEX ON straight (n)")
    with pytest.raises(IntegrityError), prepared_statements.transaction():
        add_later(1)
        again = add_later(1)
        prepared_statements.send("SELECT 1 / %s::int", [0])
    with pytest.raises(InterfaceError):
        again.rows()
    with pytest.raises(DataError), prepared_statements.transaction():
        add_later(2)
        prepared_statements.execute("SELECT 1 / %s::int", [0])
    assert stored() == []
    with prepared_statements.transaction():
        add_later(3)
    assert stored() == [3]


def test_what_waits_is_given_up_with_its_transaction():
    with pytest.raises(ZeroDivisionError), prepared_statements.transaction():
        answer = add_later(1)
        raise ZeroDivisionError
    with pytest.raises(InterfaceError):
        answer.rows()
    assert stored() == []


def test_an_error_that_shows_at_the_end_is_told():
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE straight ADD UNIQUE (n) DEFERRABLE INITIALLY DEFERRED")
    with pytest.raises(IntegrityError), prepared_statements.transaction():
        add(1)
        add(1)
    assert stored() == []


def test_what_is_sent_together_is_one_conversation(conversations):
    with prepared_statements.together():
        answers = [add_later(n) for n in range(5)]
        assert conversations == []
    assert [answer.rows() for answer in answers] == [[(n,)] for n in range(5)]
    assert len(conversations) == 1
    with prepared_statements.together():
        pass
    assert len(conversations) == 1
    assert stored() == [0, 1, 2, 3, 4]


def test_what_is_sent_together_is_all_or_nothing():
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE straight ADD UNIQUE (n) DEFERRABLE INITIALLY DEFERRED")
    with pytest.raises(DataError), prepared_statements.together():
        add_later(1)
        prepared_statements.send("SELECT 1 / %s::int", [0])
        add_later(2)
    with pytest.raises(IntegrityError), prepared_statements.together():
        add_later(3)
        add_later(3)
    with pytest.raises(ZeroDivisionError), prepared_statements.together():
        add_later(4)
        raise ZeroDivisionError
    assert stored() == []
    with prepared_statements.together():
        add_later(5)
    assert stored() == [5]


def test_a_lock_of_what_is_sent_together_is_held_to_its_end():
    free = "SELECT pg_try_advisory_lock(7)"
    with prepared_statements.together():
        prepared_statements.send("SELECT pg_advisory_xact_lock(7)")
        own = prepared_statements.send(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()"
        )
    assert own.rows() == [(1,)]
    assert prepared_statements.execute(free) == [(True,)]
    assert prepared_statements.execute("SELECT pg_advisory_unlock(7)") == [(True,)]


def test_nobody_asks_before_the_end_of_what_is_sent_together():
    with pytest.raises(ProgrammingError), prepared_statements.together():
        add_later(1)
        stored()
    assert stored() == []


@pytest.mark.parametrize("value", [True, None, "a\0b", ["a"]])
def test_nothing_that_is_sent_together_goes_beside_it(value):
    with pytest.raises(ProgrammingError), prepared_statements.together():
        add_later(1)
        prepared_statements.send("SELECT %s", [value])
    assert stored() == []


def test_what_is_read_by_a_cursor_meanwhile_is_no_part_of_it():
    with prepared_statements.together():
        add_later(1)
        assert by_cursor(" select count(*) FROM straight", []) == [(0,)]
        add_later(2)
    assert stored() == [1, 2]


@pytest.mark.parametrize("nested", [False, True])
def test_nothing_is_written_by_a_cursor_beside_what_is_sent_together(nested):
    def write():
        by_cursor("INSERT INTO straight VALUES (3) RETURNING n", [])

    with pytest.raises(ProgrammingError), prepared_statements.together():
        add_later(1)
        if nested:
            with transaction.atomic():
                write()
        else:
            write()
    assert stored() == []
    add(4)
    assert stored() == [4]


@pytest.mark.parametrize("opening", [prepared_statements.together, prepared_statements.transaction])
def test_no_transaction_is_opened_inside_of_what_is_sent_together(opening):
    with pytest.raises(ProgrammingError), prepared_statements.together():
        add_later(1)
        with opening():
            add_later(2)
    assert stored() == []
    with prepared_statements.together():
        add_later(3)
    assert stored() == [3]


def test_what_is_sent_together_in_anothers_transaction_belongs_to_it():
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        with prepared_statements.together():
            answer = add_later(1)
        assert answer.rows() == [(1,)]
        raise ZeroDivisionError
    assert stored() == []


def test_what_was_let_go_is_prepared_again_for_what_is_sent_together():
    with prepared_statements.together():
        add_later(1)
    roll_back()
    with prepared_statements.together():
        add_later(2)
        add_later(3)
    assert stored() == [1, 2, 3]


def test_much_goes_both_ways_at_once():
    long = "x" * 3_000_000  # more than sockets and libpq hold
    with prepared_statements.transaction():
        answers = [
            prepared_statements.send("SELECT %s::text || %s::text", [long, str(n)])
            for n in range(5)
        ]
    assert [answer.rows() == [(long + str(n),)] for n, answer in enumerate(answers)] == [True] * 5


def test_who_is_interrupted_while_it_waits_leaves_no_half_conversation(monkeypatch):
    class Interrupted:
        def __init__(self):
            self.poll = self

        def __call__(self, *_):
            raise KeyboardInterrupt

        def register(self, *_):
            pass

        modify = register

    add(1)
    with monkeypatch.context() as patched:
        patched.setattr(select, "poll", Interrupted)
        with pytest.raises(KeyboardInterrupt), prepared_statements.transaction():
            prepared_statements.execute("SELECT pg_sleep(0.2)")
    assert stored() == [1]


def test_a_connection_lost_in_a_transaction_is_an_operational_error():
    add(1)

    def end(pid):
        prepared_statements.execute("SELECT pg_terminate_backend(%s::int)", [pid])
        connection.close()

    with pytest.raises(OperationalError), prepared_statements.transaction():
        (pid,) = prepared_statements.execute("SELECT pg_backend_pid()")[0]
        other = threading.Thread(target=end, args=[pid])
        other.start()
        other.join(10)
        add_later(2)
    assert stored() == [1]
