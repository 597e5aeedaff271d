"""What the tests of prepared statements share: a table, and ways to it."""

import pytest
from django.db import connection, transaction

from rme.core.db import prepared_statements

NAMES = """
SELECT name FROM pg_prepared_statements WHERE statement NOT LIKE '%pg_prepared_statements%'
ORDER BY prepare_time"""


@pytest.fixture
def table():
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE direct (n int)")
    yield
    connection.close()
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE direct")


def prepared():
    with connection.cursor() as cursor:
        cursor.execute(NAMES)
        return [name for (name,) in cursor.fetchall()]


def add(n):
    prepared_statements.execute("INSERT INTO direct VALUES (%s::int)", [n])


def add_later(batch, n):
    return batch.send("INSERT INTO direct VALUES (%s::int) RETURNING n", [n])


def stored():
    return [n for (n,) in prepared_statements.execute("SELECT n FROM direct ORDER BY n")]


def by_cursor(text, parameters):
    with connection.cursor() as cursor:
        cursor.execute(text, parameters)
        return cursor.fetchall()


def roll_back():
    """Have psycopg drop all prepared statements, as it does when it rolls back."""
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        for _ in range(5):
            by_cursor("SELECT count(*) FROM direct WHERE n > %s", [5])
        raise ZeroDivisionError


def drop_prepared():
    """Drop our prepared statements without psycopg's knowledge, as a pooler might."""
    for name in prepared():
        connection.connection.pgconn.exec_(f"DEALLOCATE {name}".encode())
