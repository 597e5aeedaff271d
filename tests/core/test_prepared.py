"""Statements straight to libpq: the same rows and errors, whatever else the connection does."""

import threading
from datetime import UTC, datetime

import pytest
from django.db import DataError, OperationalError, ProgrammingError, connection, transaction
from django.test.utils import CaptureQueriesContext

from rme.core import prepared, sql

pytestmark = pytest.mark.django_db(transaction=True)

NAMES = "SELECT name FROM pg_prepared_statements WHERE name LIKE 'rme_%' ORDER BY prepare_time"


@pytest.fixture(autouse=True)
def table():
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE straight (n int)")
    yield
    connection.close()
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE straight")


def kept():
    with connection.cursor() as cursor:
        cursor.execute(NAMES)
        return [name for (name,) in cursor.fetchall()]


def add(n):
    prepared.execute("INSERT INTO straight VALUES (%s::int)", [n])


def stored():
    return [n for (n,) in prepared.execute("SELECT n FROM straight ORDER BY n")]


def by_cursor(text, parameters):
    with connection.cursor() as cursor:
        cursor.execute(text, parameters)
        return cursor.fetchall()


@pytest.mark.parametrize(
    ("text", "parameters"),
    [
        ("SELECT %s::text, %s::int, %s::float8", ["é☃𝄞 '\\ $1 %s", -7, 0.1]),
        ("SELECT now() - now(), NULL, true, '{\"a\": [1]}'::jsonb, 3::numeric", []),
        ("SELECT %s::uuid, %s::timestamptz", ["0" * 32, "2026-03-04T05:06:07.891Z"]),
        ("SELECT unnest(%s::text[]), 100 %% 7", [sql.array(["a,b", '"', "\\", "{}", "", "NULL"])]),
        ("SELECT 1 WHERE false", []),
    ],
)
def test_rows_are_those_of_a_cursor(text, parameters):
    before = len(kept())
    assert prepared.execute(text, parameters) == by_cursor(text, parameters)
    assert len(kept()) == before + 1


@pytest.mark.parametrize("value", [datetime(2026, 1, 1, tzinfo=UTC), ["a"], None, True])
def test_other_parameters_go_by_a_cursor(value):
    before = kept()
    assert prepared.execute("SELECT %s", [value])[0][0] in (value, str(value), "{a}")
    assert kept() == before


def test_a_statement_is_prepared_once():
    add(1)
    before = kept()
    for n in range(2, 10):
        add(n)
    assert kept() == before
    assert stored() == [*range(1, 10)]


def test_what_is_watched_is_seen():
    with CaptureQueriesContext(connection) as seen:
        with prepared.transaction():
            add(1)
        stored()
    assert [each["sql"].split()[0] for each in seen if each["sql"] != "BEGIN"][:1] == ["INSERT"]
    assert len([each for each in seen if "straight" in each["sql"]]) == 2


@pytest.mark.parametrize(
    ("text", "parameters", "error"),
    [
        ("SELECT 1 / %s::int", [0], DataError),
        ("SELECT nothing FROM straight", [], ProgrammingError),
        ("INSERT INTO straight VALUES (%s::int)", ["x"], DataError),
        ("SELECT %s::text", ["a\0b"], (ValueError, DataError)),
    ],
)
def test_errors_are_djangos_and_the_next_statement_goes_on(text, parameters, error):
    with pytest.raises(error):
        prepared.execute(text, parameters)
    with pytest.raises(error), prepared.transaction():
        add(1)
        prepared.execute(text, parameters)
    add(2)
    assert stored() == [2]


def test_a_transaction_is_all_or_nothing():
    with prepared.transaction():
        add(1)
        with connection.cursor() as cursor:  # both ways belong to it
            cursor.execute("INSERT INTO straight VALUES (2)")
        add(3)
    with pytest.raises(ZeroDivisionError), prepared.transaction():
        add(4)
        raise ZeroDivisionError
    assert stored() == [1, 2, 3]


def test_a_transaction_is_seen_by_others_when_it_is_committed():
    seen = []

    def look():
        seen.append(stored())
        connection.close()

    def look_beside():
        other = threading.Thread(target=look)
        other.start()
        other.join(10)

    with prepared.transaction():
        add(1)
        look_beside()
    look_beside()
    assert seen == [[], [1]]


def roll_back():
    """Let psycopg let go of all that was prepared, as it does when it rolls back."""
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        for _ in range(5):
            by_cursor("SELECT count(*) FROM straight WHERE n > %s", [5])
        raise ZeroDivisionError


def test_what_was_let_go_by_a_rollback_is_prepared_again():
    add(1)
    stored()
    roll_back()
    assert kept() == []
    add(2)
    assert stored() == [1, 2]
    roll_back()
    with prepared.transaction():
        add(3)
        assert stored() == [1, 2, 3]
    roll_back()
    with prepared.transaction():
        prepared.execute("SELECT 'never before'")
        add(4)
    assert stored() == [1, 2, 3, 4]


def test_in_anothers_transaction_all_goes_by_cursors():
    add(1)
    roll_back()
    with transaction.atomic():
        add(2)
        with pytest.raises(DataError), transaction.atomic():
            prepared.execute("SELECT 1 / %s::int", [0])
        with prepared.transaction():
            add(3)
        assert stored() == [1, 2, 3]
    assert stored() == [1, 2, 3]


def test_a_savepoint_is_no_place_for_it():
    with prepared.transaction():
        add(1)
        with pytest.raises(ZeroDivisionError), transaction.atomic():
            add(2)
            raise ZeroDivisionError
        assert [n for (n,) in by_cursor("SELECT n FROM straight", [])] == [1]


def test_so_many_are_kept_and_no_more(monkeypatch):
    monkeypatch.setattr(prepared, "_MOST", 5)
    for number in range(23):
        assert prepared.execute(f"SELECT {number}") == [(number,)]
    assert len(kept()) <= 5


def test_a_lost_connection_is_an_operational_error_and_the_next_is_whole():
    add(1)
    (pid,) = prepared.execute("SELECT pg_backend_pid()")[0]

    def end():
        prepared.execute("SELECT pg_terminate_backend(%s::int)", [pid])
        connection.close()

    other = threading.Thread(target=end)
    other.start()
    other.join(10)
    with pytest.raises(OperationalError):
        stored()
    connection.close_if_unusable_or_obsolete()
    assert stored() == [1]
