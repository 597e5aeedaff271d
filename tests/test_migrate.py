"""Migrating while the service runs: who uses the tables is held up for a moment at most."""

import io
import re
import threading
import time
from contextlib import contextmanager

import pytest
from django.core.management import call_command
from django.db import (
    NotSupportedError,
    OperationalError,
    connection,
    connections,
    models,
    transaction,
)
from django.db.migrations.loader import MigrationLoader
from psycopg.errors import QueryCanceled

from messaging.models import Delivery
from rme.core.db import locks
from rme.core.db.partitions import LOCK
from rme.core.db.partitions.indexes import AddPartitionedIndex
from rme.core.db.partitions.options import SetPartitionOptions
from tests import factories
from tests.rest import message

TABLE = Delivery._meta.db_table
INDEXED = "tests.migrating.indexed"
SECONDS = 60


def query(statement, *values):
    with connection.cursor() as cursor:
        cursor.execute(statement, values or None)
        return cursor.fetchall() if cursor.description else []


def in_thread(job, *arguments):
    """Start a job with a database connection of its own."""
    done = []

    def run():
        try:
            done.append(job(*arguments))
        finally:
            connections.close_all()

    thread = threading.Thread(target=run)
    thread.start()
    return thread, done


def wait_until(condition):
    until = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)


@contextmanager
def held(partition):
    """Hold a lock on a partition, as a writer does, in a transaction of another connection."""
    release, holding = threading.Event(), threading.Event()

    def write():
        with transaction.atomic():
            query(f'LOCK TABLE "{partition}" IN ROW EXCLUSIVE MODE')
            holding.set()
            release.wait(SECONDS)

    writer, _ = in_thread(write)
    assert holding.wait(SECONDS)
    try:
        yield
    finally:
        release.set()
        writer.join(SECONDS)


def accepting(api, person, stop):
    """Accept until told to stop, in a thread; return it and the statuses of the answers so far."""
    statuses = []

    def accept():
        while not stop.is_set():
            statuses.append(api.send(message(person)).status_code)
            time.sleep(0.05)  # within the limit of calls

    return in_thread(accept)[0], statuses


@pytest.mark.django_db(transaction=True)
def test_migration_waiting_for_a_long_reader_delays_no_accept(api, org, settings):
    settings.INSTALLED_APPS = [*settings.INSTALLED_APPS, "tests.migrating"]
    person, stop, output = factories.contact(org), threading.Event(), io.StringIO()

    def migrate(*target):
        call_command("migrate", "migrating", *target, verbosity=0, stderr=output)

    try:
        with transaction.atomic():
            query("SELECT 1 FROM messaging_message LIMIT 1")
            migrator, _ = in_thread(migrate)
            wait_until(lambda: "(try 1 of" in output.getvalue())
            acceptor, statuses = accepting(api, person, stop)
            # Accepts go on between the tries, and wait for no longer than one of them waits.
            wait_until(lambda: "(try 3 of" in output.getvalue())
            during = len(statuses)
        migrator.join(SECONDS)
        stop.set()
        acceptor.join(SECONDS)
        assert during > 3
        assert set(statuses) == {202}
        assert query("SELECT count(late) FROM messaging_message") == [(0,)]
        assert [
            re.sub(r"process \d+ \(\w+\), for \d+ s", "…", line)
            for line in output.getvalue().splitlines()[:3]
        ] == [
            f"migrate: migrating.0001_late_column: its tables are in use (try {number} of 40); "
            f"again in {pause} s. Oldest transaction: …."
            for number, pause in ((1, 1), (2, 2), (3, 4))
        ]
        assert query("SHOW lock_timeout") == [("0",)]
    finally:
        stop.set()
        migrate("zero")


@pytest.mark.django_db(transaction=True)
def test_a_migration_waits_for_a_change_of_partitions():
    output = io.StringIO()
    with locks.alone(LOCK) as alone:
        assert alone
        thread, _ = in_thread(
            lambda: call_command("migrate", "messaging", verbosity=0, stderr=output)
        )
        wait_until(lambda: output.getvalue())
    thread.join(SECONDS)
    assert set(output.getvalue().splitlines()) == {
        "migrate: Another process is changing the tables; waiting for it."
    }


def is_waiting(command):
    """Return whether a statement with this beginning waits for a lock."""
    return query(
        "SELECT 1 FROM pg_stat_activity WHERE query LIKE %s "
        "AND wait_event_type = 'Lock' AND datname = current_database()",
        f"{command}%",
    )


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("target", "command", "left"),
    [
        ("0002_index", "CREATE INDEX CONCURRENTLY", [(True,)]),
        ("0003_remove_index", "DROP INDEX CONCURRENTLY", []),
    ],
)
def test_an_index_of_a_plain_table_waits_for_a_long_writer(settings, target, command, left):
    settings.INSTALLED_APPS = [*settings.INSTALLED_APPS, INDEXED]
    output = io.StringIO()

    def migrate(name):
        call_command("migrate", "indexed", name, verbosity=0, stderr=output)

    try:
        migrate("0001_table" if left else "0002_index")
        with held("indexed_row"):
            migrator, _ = in_thread(migrate, target)
            wait_until(lambda: is_waiting(command))
            time.sleep(1.5)  # longer than the lock_timeout of `migrate`
        migrator.join(SECONDS)
        assert output.getvalue() == ""
        assert (
            query("SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass('indexed_name')")
            == left
        )
    finally:
        migrate("zero")


@pytest.mark.django_db(transaction=True)
def test_interrupted_index_of_a_plain_table_is_built_again(settings):
    settings.INSTALLED_APPS = [*settings.INSTALLED_APPS, INDEXED]
    try:
        call_command("migrate", "indexed", "0001_table", verbosity=0)
        query("INSERT INTO indexed_row (name) VALUES ('a'), ('a')")
        with pytest.raises(OperationalError), held("indexed_row"):
            query("SET statement_timeout = 300")
            query("CREATE INDEX CONCURRENTLY indexed_name ON indexed_row (name)")
        query("SET statement_timeout = 0")
        valid = "SELECT indisvalid FROM pg_index WHERE indexrelid = 'indexed_name'::regclass"
        assert query(valid) == [(False,)]
        call_command("migrate", "indexed", "0002_index", verbosity=0)
        assert query(valid) == [(True,)]
    finally:
        query("SET statement_timeout = 0")
        call_command("migrate", "indexed", "zero", verbosity=0)


def add_index(name="delivery_late"):
    state = MigrationLoader(connection).project_state()
    operation = AddPartitionedIndex(
        "delivery",
        models.Index(fields=["contact_id"], name=name, condition=models.Q(status="FAILED")),
    )
    after = state.clone()
    operation.state_forwards("messaging", after)
    with connection.schema_editor(atomic=False) as editor:
        operation.database_forwards("messaging", editor, state, after)


def parts(name="delivery_late"):
    """Return how many partitions there are, and the validity of each index that is attached."""
    [(count,)] = query("SELECT count(*) FROM pg_inherits WHERE inhparent = %s::regclass", TABLE)
    valid = query(
        "SELECT indisvalid FROM pg_index JOIN pg_inherits ON inhrelid = indexrelid "
        "WHERE inhparent = %s::regclass UNION ALL "
        "SELECT indisvalid FROM pg_index WHERE indexrelid = %s::regclass",
        name,
        name,
    )
    return count, [each for (each,) in valid]


@pytest.mark.django_db(transaction=True)
def test_an_index_of_a_partitioned_table_is_built_while_others_write(api, org):
    person, stop = factories.contact(org), threading.Event()
    api.send(message(person))
    acceptor, statuses = accepting(api, person, stop)
    try:
        # Building waits for this writer of a partition, and nobody waits for the building.
        with held(f"{TABLE}_default"):
            builder, _ = in_thread(add_index)
            wait_until(lambda: is_waiting("CREATE INDEX CONCURRENTLY"))
            before = len(statuses)
            wait_until(lambda: len(statuses) > before + 5)
        builder.join(SECONDS)
        stop.set()
        acceptor.join(SECONDS)
        count, valid = parts()
        assert valid == [True] * (count + 1)
        assert set(statuses) == {202}
        [(shown,)] = query("SELECT pg_get_indexdef('delivery_late'::regclass)")
        assert shown.endswith("(contact_id) WHERE ((status)::text = 'FAILED'::text)")
    finally:
        stop.set()
        query("DROP INDEX IF EXISTS delivery_late")


@pytest.mark.django_db(transaction=True)
def test_interrupted_index_of_a_partitioned_table_is_built_again(org):
    try:
        with held(f"{TABLE}_default"):
            query("SET statement_timeout = 300")
            with pytest.raises(OperationalError) as raised:
                add_index()
            assert isinstance(raised.value.__cause__, QueryCanceled)
            query("SET statement_timeout = 0")
        assert query(
            "SELECT indisvalid FROM pg_index WHERE indexrelid = 'delivery_late_default'::regclass"
        ) == [(False,)]
        add_index()
        add_index()  # which finds nothing to do
        count, valid = parts()
        assert valid == [True] * (count + 1)
    finally:
        query("SET statement_timeout = 0")
        query("DROP INDEX IF EXISTS delivery_late")


@pytest.mark.django_db
def test_an_index_of_a_partitioned_table_needs_a_migration_without_a_transaction():
    with pytest.raises(NotSupportedError):
        add_index()


def options():
    """Return the storage parameters of all partitions of deliveries, each combination once."""
    return query(
        "SELECT DISTINCT array_to_string(reloptions, ',') FROM pg_partition_tree(%s::regclass) "
        "JOIN pg_class ON oid = relid WHERE isleaf",
        TABLE,
    )


@pytest.mark.django_db(transaction=True)
def test_options_of_partitions_are_set_and_reset_while_others_write():
    state = MigrationLoader(connection).project_state()
    operation = SetPartitionOptions("delivery", fillfactor=50)
    with held(f"{TABLE}_default"), connection.schema_editor(atomic=False) as editor:
        query("SET lock_timeout = 1000")
        try:
            operation.database_backwards("messaging", editor, state, state)
            before = options()
            operation.database_forwards("messaging", editor, state, state)
        finally:
            query("RESET lock_timeout")
    assert (before, options()) == ([(None,)], [("fillfactor=50",)])
