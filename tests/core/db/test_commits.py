"""A commit that waits for all those before it."""

import pytest
from django.db import InternalError, connection

from rme.core.db import availability, commits

pytestmark = pytest.mark.django_db(transaction=True)


def sql(statement):
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchall() if cursor.description else []


@pytest.fixture
def plain_role():
    """Execute the statements as a role that may read and write, and no more."""
    sql("CREATE ROLE rme_test_plain")
    sql("GRANT SELECT, UPDATE ON django_migrations TO rme_test_plain")
    sql("SET ROLE rme_test_plain")
    yield
    sql("RESET ROLE")
    sql("DROP OWNED BY rme_test_plain")
    sql("DROP ROLE rme_test_plain")


@pytest.mark.usefixtures("plain_role")
def test_confirming_writes_a_commit_record():
    state = (
        "SELECT pg_wal_lsn_diff(pg_current_wal_flush_lsn(), '0/0')::bigint, "
        "pg_snapshot_xmax(pg_current_snapshot())::text::bigint"
    )
    ((flushed, transaction),) = sql(state)
    commits.confirm_earlier()
    ((later, next_transaction),) = sql(state)
    assert (later > flushed, next_transaction > transaction) == (True, True)


def test_a_read_only_server_refuses_it():
    sql("SET default_transaction_read_only = on")
    try:
        with pytest.raises(InternalError) as caught:
            commits.confirm_earlier()
        assert availability.is_unavailable(caught.value)
    finally:
        sql("SET default_transaction_read_only = off")
