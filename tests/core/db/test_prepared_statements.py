"""Prepared statements: the rows and errors of a cursor, in any transaction."""

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
from django.db.transaction import TransactionManagementError
from django.test.utils import CaptureQueriesContext

from rme.core.db import availability, prepared_statements, sql
from tests.core.db.prepared_scene import (
    add,
    add_later,
    by_cursor,
    drop_prepared,
    prepared,
    roll_back,
    stored,
    table,
)

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("table")]
__all__ = ["table"]


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
def test_rows_equal_rows_of_a_cursor(text, parameters):
    before = len(prepared())
    assert prepared_statements.execute(text, parameters) == by_cursor(text, parameters)
    assert len(prepared()) == before + 1


@pytest.mark.parametrize("value", [None, True, False, 7, -0.5, "a"])
def test_parameters_of_simple_types_are_passed(value):
    kinds = {bool: "bool", int: "int", float: "float8"}
    text = f"SELECT %s::{kinds.get(type(value), 'text')}"
    assert prepared_statements.execute(text, [value]) == [(value,)] == by_cursor(text, [value])


@pytest.mark.parametrize("value", [datetime(2026, 1, 1, tzinfo=UTC), ["a"], b"a"])
def test_other_parameters_are_refused(value):
    with pytest.raises(TypeError):
        prepared_statements.execute("SELECT %s", [value])


def test_a_statement_is_prepared_once():
    add(1)
    before = prepared()
    for n in range(2, 10):
        add(n)
    assert prepared() == before
    assert stored() == [*range(1, 10)]


def test_statements_are_counted_where_they_are_executed():
    stored()
    before = prepared()
    with CaptureQueriesContext(connection) as captured:
        with prepared_statements.transaction() as batch:
            add_later(batch, 1)
            by_cursor("SELECT 1", [])
            add_later(batch, 2)
        with prepared_statements.pipeline() as batch:
            add_later(batch, 3)
            add_later(batch, 4)
        stored()
    insert = "INSERT INTO direct VALUES (%s::int) RETURNING n"
    assert [each["sql"] for each in captured] == [
        *("BEGIN", insert, "SELECT 1", insert, "COMMIT"),
        *(insert, insert),
        "SELECT n FROM direct ORDER BY n",
    ]
    assert prepared()[: len(before)] == before  # on the same way as ever


def test_wrappers_see_each_statement_and_may_refuse_it():
    seen = []

    def note(execute, text, parameters, many, context):
        seen.append((text.split()[0], parameters, many, context["connection"].alias))
        return execute(text, parameters, many, context)

    def refuse(execute, text, parameters, many, context):
        if parameters == ["2"]:
            raise OperationalError
        return execute(text, parameters, many, context)

    with connection.execute_wrapper(note), connection.execute_wrapper(refuse):
        with prepared_statements.pipeline() as batch:
            add_later(batch, 1)
            add_later(batch, 3)
        with pytest.raises(OperationalError), prepared_statements.pipeline() as batch:
            add_later(batch, 1)
            add_later(batch, 2)
        with pytest.raises(OperationalError):
            add(2)
        assert stored() == [1, 3]
    assert seen == [
        *(("INSERT", [n], False, "default") for n in ("1", "3", "1", "2", "2")),
        ("SELECT", [], False, "default"),
    ]


@pytest.mark.parametrize(
    ("text", "parameters", "error"),
    [
        ("SELECT 1 / %s::int", [0], DataError),
        ("SELECT nothing FROM direct", [], ProgrammingError),
        ("INSERT INTO direct VALUES (%s::int)", ["x"], DataError),
        ("SELECT %s::text", ["a\0b"], (ValueError, DataError)),
    ],
)
def test_errors_are_djangos_and_the_next_statement_works(text, parameters, error):
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
            cursor.execute("INSERT INTO direct VALUES (2)")
        add(3)
    with pytest.raises(ZeroDivisionError), prepared_statements.transaction():
        add(4)
        raise ZeroDivisionError
    assert stored() == [1, 2, 3]


def test_transaction_is_visible_to_others_only_after_commit():
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


def test_statements_dropped_by_a_rollback_are_prepared_again():
    add(1)
    stored()
    roll_back()
    assert prepared() == []
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
    with prepared_statements.transaction() as batch:
        add_later(batch, 5)
        add_later(batch, 6)
    assert stored() == [1, 2, 3, 4, 5, 6]


def test_new_statement_after_a_rollback_does_not_hide_dropped_ones():
    add(1)
    stored()
    roll_back()
    prepared_statements.execute("SELECT 'new'")  # prepared now, while the others are gone
    with prepared_statements.transaction():
        prepared_statements.execute("SELECT 'new'")
        add(2)
        assert stored() == [1, 2]
    assert stored() == [1, 2]


def test_new_statement_keeps_others_prepared():
    with prepared_statements.transaction():  # BEGIN is prepared, too
        add(1)
        stored()
    stored()
    before = prepared()
    prepared_statements.execute("SELECT 'first'")
    with prepared_statements.transaction():
        prepared_statements.execute("SELECT 'second'")
        add(2)
        prepared_statements.execute("SELECT 'third'")
    stored()
    assert prepared()[: len(before)] == before
    assert len(prepared()) == len(before) + 3


def test_statements_within_a_transaction_belong_to_it():
    stored()
    before = prepared()
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        add(1)
        with prepared_statements.pipeline() as batch:
            add_later(batch, 2)
            add_later(batch, 3)
        with prepared_statements.transaction() as batch:
            add_later(batch, 4)
            add_later(batch, 5)
        assert stored() == [1, 2, 3, 4, 5]
        assert prepared()[: len(before)] == before  # on the same way as ever
        raise ZeroDivisionError
    assert stored() == []


@pytest.mark.parametrize("opening", [prepared_statements.pipeline, prepared_statements.transaction])
def test_error_within_a_transaction_rolls_back_to_its_savepoint(opening):
    add(1)
    with transaction.atomic():
        add(2)
        with pytest.raises(DataError), transaction.atomic():
            prepared_statements.execute("SELECT 1 / %s::int", [0])
        with pytest.raises(DataError), opening() as batch:
            add_later(batch, 3)
            batch.send("SELECT 1 / %s::int", [0])
        with opening() as batch:
            add_later(batch, 4)
        assert stored() == [1, 2, 4]
    assert stored() == [1, 2, 4]


def test_error_without_a_savepoint_ends_the_outer_transaction():
    with pytest.raises(TransactionManagementError), transaction.atomic():
        add(1)
        with pytest.raises(DataError), transaction.atomic(savepoint=False):
            prepared_statements.execute("SELECT 1 / %s::int", [0])
        add(2)
    assert stored() == []


@pytest.mark.parametrize("ending", ["rolled back", "released"])
def test_a_savepoint_in_our_transaction_ends_its_statements(ending):
    with prepared_statements.transaction() as batch:
        add_later(batch, 1)
        try:
            with transaction.atomic():
                add_later(batch, 2)
                if ending == "rolled back":
                    raise ZeroDivisionError
        except ZeroDivisionError:
            pass
        add_later(batch, 3)
        kept = [1, 3] if ending == "rolled back" else [1, 2, 3]
        assert [n for (n,) in by_cursor("SELECT n FROM direct ORDER BY n", [])] == kept
    assert stored() == kept


def test_statements_dropped_by_a_savepoint_rollback_are_prepared_again():
    """psycopg then drops all prepared statements, within the transaction."""
    add(1)
    stored()
    with transaction.atomic():
        for _ in range(5):
            by_cursor("SELECT count(*) FROM direct WHERE n > %s", [5])  # psycopg prepares it
        with pytest.raises(ZeroDivisionError), transaction.atomic():
            add(2)
            raise ZeroDivisionError
        by_cursor("SELECT 1", [])
        assert prepared() == []
        add(3)
        assert stored() == [1, 3]
    assert stored() == [1, 3]


@pytest.mark.parametrize("opening", [prepared_statements.pipeline, prepared_statements.transaction])
def test_statements_dropped_elsewhere_are_prepared_again(opening):
    for n in range(3):
        add(n)
        stored()
        drop_prepared()
    with opening() as batch:
        add_later(batch, 3)
        add_later(batch, 4)
    assert stored() == [0, 1, 2, 3, 4]


def test_statement_dropped_elsewhere_ends_the_transaction():
    add(1)
    with pytest.raises(ProgrammingError), transaction.atomic():
        by_cursor("SELECT 1", [])
        drop_prepared()
        add(2)
    assert stored() == [1]


def test_number_of_prepared_statements_is_bounded(monkeypatch):
    roll_back()
    assert connection.connection.prepared_max == availability.PREPARED_MAX
    monkeypatch.setattr(connection.connection, "prepared_max", 5)
    for number in range(23):
        assert prepared_statements.execute(f"SELECT {number}") == [(number,)]
    assert len(prepared()) <= 5


def test_a_lost_connection_is_an_operational_error_and_replaced():
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
