"""The database refuses to change the audit, for the application's role and for any other."""

import psycopg
import pytest
from django.db import DatabaseError, connection, transaction

from rme.tenants import audit
from rme.tenants.audit import Action, Actor
from rme.tenants.models import AuditEntry, AuditValues

pytestmark = pytest.mark.django_db
ENTRY, VALUES = AuditEntry._meta.db_table, AuditValues._meta.db_table


@pytest.fixture
def entry(org):
    audit.record(Actor(1, "olga"), [audit.about(org, Action.CHANGED, changes={"name": ["A", "B"]})])
    return AuditEntry.objects.get()


def refused(statement, role=None):
    """Return the state and text of the error by which PostgreSQL refuses a statement."""
    with pytest.raises(DatabaseError) as caught, transaction.atomic():
        with connection.cursor() as cursor:
            if role:
                cursor.execute(f"SET LOCAL ROLE {role}")
            cursor.execute(statement)
    cause = caught.value.__cause__
    assert isinstance(cause, psycopg.Error)
    return cause.sqlstate, str(cause).splitlines()[0]


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        (f"UPDATE {ENTRY} SET actor_name = 'x'", f"UPDATE of {ENTRY}"),
        (f"UPDATE {ENTRY} SET actor_name = 'x' WHERE false", f"UPDATE of {ENTRY}"),
        (f"DELETE FROM {ENTRY}", f"DELETE of {ENTRY}"),
        (f"TRUNCATE {ENTRY}", f"TRUNCATE of {ENTRY}"),
        (f"UPDATE {VALUES} SET label = 'x'", f"UPDATE of {VALUES}"),
        (f"TRUNCATE {VALUES}", f"TRUNCATE of {VALUES}"),
    ],
)
@pytest.mark.parametrize("replica", [False, True])
def test_entry_cannot_be_changed(entry, statement, name, replica):
    with connection.cursor() as cursor:
        for table in (ENTRY, VALUES):  # off for the tests that empty all tables behind them
            cursor.execute(f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER audit_no_truncate")
        if replica:  # which switches other triggers off
            cursor.execute("SET LOCAL session_replication_role = replica")
    assert refused(statement) == ("42501", f"The audit is append-only: {name} is refused.")
    assert AuditEntry.objects.get() == entry


def test_a_second_role_as_owner_refuses_by_privilege_and_keeps_the_triggers(entry):
    with connection.cursor() as cursor:
        cursor.execute("CREATE ROLE audit_owner NOLOGIN; CREATE ROLE audit_writer NOLOGIN")
        cursor.execute("GRANT USAGE ON SCHEMA public TO audit_writer")
        cursor.execute(f"ALTER TABLE {ENTRY} OWNER TO audit_owner")
        cursor.execute(f"ALTER TABLE {VALUES} OWNER TO audit_owner")
        cursor.execute(f"GRANT SELECT, INSERT ON {ENTRY} TO audit_writer")
        cursor.execute(f"GRANT SELECT, INSERT, DELETE ON {VALUES} TO audit_writer")
    for statement in (
        f"UPDATE {ENTRY} SET actor_name = 'x'",
        f"DELETE FROM {ENTRY}",
        f"TRUNCATE {ENTRY}",
        f"ALTER TABLE {ENTRY} DISABLE TRIGGER audit_append_only",
        f"DROP TRIGGER audit_append_only ON {ENTRY}",
        f"DROP TABLE {ENTRY}",
    ):
        state, text = refused(statement, "audit_writer")
        assert (state, text.split(" ")[0]) in (("42501", "permission"), ("42501", "must"))
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL ROLE audit_writer")
        audit.record(Actor(1, "olga"), [audit.NewEntry(Action.EXPORTED, "acme", text="messages")])
        assert AuditEntry.objects.count() == 2


def test_deleted_organization_leaves_its_audit(entry, org):
    org.delete()
    assert AuditEntry.objects.get() == entry
