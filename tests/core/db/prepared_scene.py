"""What the tests of statements straight to libpq share: a table, and ways to it."""

import pytest
from django.db import connection, transaction

from rme.core.db import prepared_statements

NAMES = "SELECT name FROM pg_prepared_statements WHERE name LIKE 'rme_%' ORDER BY prepare_time"


@pytest.fixture
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
    prepared_statements.execute("INSERT INTO straight VALUES (%s::int)", [n])


def add_later(n):
    return prepared_statements.send("INSERT INTO straight VALUES (%s::int) RETURNING n", [n])


def stored():
    return [n for (n,) in prepared_statements.execute("SELECT n FROM straight ORDER BY n")]


def by_cursor(text, parameters):
    with connection.cursor() as cursor:
        cursor.execute(text, parameters)
        return cursor.fetchall()


def roll_back():
    """Let psycopg let go of all that was prepared, as it does when it rolls back."""
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        for _ in range(5):
            by_cursor("SELECT count(*) FROM straight WHERE n > %s", [5])
        raise ZeroDivisionError
