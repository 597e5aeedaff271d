"""Statements straight to libpq: the same rows and errors, whatever else the connection does."""

import threading
from datetime import UTC, datetime

import pytest
from django.db import (
    DataError,
    OperationalError,
    ProgrammingError,
    connection,
    transaction,
)
from django.test.utils import CaptureQueriesContext

from rme.core.db import pipeline, prepared_statements, sql
from tests.core.db.prepared_scene import add, add_later, by_cursor, kept, roll_back, stored, table  # noqa: F401

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("table")]


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
    assert prepared_statements.execute(text, parameters) == by_cursor(text, parameters)
    assert len(kept()) == before + 1


@pytest.mark.parametrize("value", [datetime(2026, 1, 1, tzinfo=UTC), ["a"], None, True])
def test_other_parameters_go_by_a_cursor(value):
    before = kept()
    assert prepared_statements.execute("SELECT %s", [value])[0][0] in (value, str(value), "{a}")
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
        with prepared_statements.transaction():
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
        prepared_statements.execute(text, parameters)
    with pytest.raises(error), prepared_statements.transaction():
        add(1)
        prepared_statements.execute(text, parameters)
    add(2)
    assert stored() == [2]


def test_a_transaction_is_all_or_nothing():
    with prepared_statements.transaction():
        add(1)
        with connection.cursor() as cursor:  # both ways belong to it
            cursor.execute("INSERT INTO straight VALUES (2)")
        add(3)
    with pytest.raises(ZeroDivisionError), prepared_statements.transaction():
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

    with prepared_statements.transaction():
        add(1)
        look_beside()
    look_beside()
    assert seen == [[], [1]]


def test_what_was_let_go_by_a_rollback_is_prepared_again():
    add(1)
    stored()
    roll_back()
    assert kept() == []
    add(2)
    assert stored() == [1, 2]
    roll_back()
    with prepared_statements.transaction():
        add(3)
        assert stored() == [1, 2, 3]
    roll_back()
    with prepared_statements.transaction():
        prepared_statements.execute("SELECT 'never before'")
        add(4)
    assert stored() == [1, 2, 3, 4]
    roll_back()
    with prepared_statements.transaction():
        add_later(5)
        add_later(6)
    assert stored() == [1, 2, 3, 4, 5, 6]


def test_what_is_new_after_a_rollback_hides_nothing_that_is_gone():
    add(1)
    stored()
    roll_back()
    prepared_statements.execute("SELECT 'new'")  # prepared now, while the others are gone
    with prepared_statements.transaction():
        prepared_statements.execute("SELECT 'new'")
        add(2)
        assert stored() == [1, 2]
    assert stored() == [1, 2]


def test_what_is_new_lets_nothing_be_prepared_again():
    add(1)
    stored()
    before = kept()
    prepared_statements.execute("SELECT 'first'")
    with prepared_statements.transaction():
        prepared_statements.execute("SELECT 'second'")
        add(2)
        prepared_statements.execute("SELECT 'third'")
    stored()
    assert kept()[: len(before)] == before
    assert len(kept()) == len(before) + 3


def test_in_anothers_transaction_all_goes_by_cursors():
    add(1)
    roll_back()
    with transaction.atomic():
        add(2)
        with pytest.raises(DataError), transaction.atomic():
            prepared_statements.execute("SELECT 1 / %s::int", [0])
        with prepared_statements.transaction():
            add(3)
        assert stored() == [1, 2, 3]
    assert stored() == [1, 2, 3]


def test_a_savepoint_is_no_place_for_it():
    with prepared_statements.transaction():
        add(1)
        with pytest.raises(ZeroDivisionError), transaction.atomic():
            add(2)
            raise ZeroDivisionError
        assert [n for (n,) in by_cursor("SELECT n FROM straight", [])] == [1]


def test_so_many_are_kept_and_no_more(monkeypatch):
    monkeypatch.setattr(pipeline, "MOST", 5)
    for number in range(23):
        assert prepared_statements.execute(f"SELECT {number}") == [(number,)]
    assert len(kept()) <= 5


def test_a_lost_connection_is_an_operational_error_and_the_next_is_whole():
    add(1)
    (pid,) = prepared_statements.execute("SELECT pg_backend_pid()")[0]

    def end():
        prepared_statements.execute("SELECT pg_terminate_backend(%s::int)", [pid])
        connection.close()

    other = threading.Thread(target=end)
    other.start()
    other.join(10)
    with pytest.raises(OperationalError):
        stored()
    connection.close_if_unusable_or_obsolete()
    assert stored() == [1]
