"""Partitions by month: made ahead, and nothing lost where they were not."""

import io
import threading
import time
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, connections, transaction

from messaging.models import Delivery
from rme.core import ids
from rme.core.db import partitions, repartition

pytestmark = pytest.mark.django_db(transaction=True)
TABLE = Delivery._meta.db_table
FAR = datetime(2031, 5, 10, tzinfo=UTC)
MAY, JUNE = f"{TABLE}_203105", f"{TABLE}_203106"
LONGEST_MS = 2000
"""How long a writer may be held up: more is an error in these tests, by its lock_timeout."""


@pytest.fixture(autouse=True)
def _no_months_of_2031():
    yield
    with connection.cursor() as cursor:
        cursor.execute("SELECT relname FROM pg_class WHERE relname ~ %s", [f"^{TABLE}_2031[01]"])
        for (name,) in cursor.fetchall():
            if not name.endswith(("_pkey", "_idx")) and len(name) == len(MAY):
                cursor.execute(f'DROP TABLE "{name}"')
    assert repartition.clear(TABLE)


def add(moment, count=1, status="SENDING"):
    """Add deliveries of a moment, as accepting does; their ids are a millisecond apart."""
    rows = [
        Delivery(
            id=ids.at_least(moment + timedelta(milliseconds=number)),
            organization_id="acme",
            message_id=ids.new_id(),
            contact_id="1",
            category="TRANSACTIONAL",
            channels=["EMAIL"],
            channel="EMAIL",
            status=status,
            expires_at=moment,
        )
        for number in range(count)
    ]
    return [row.pk for row in Delivery.objects.bulk_create(rows, batch_size=1000)]


def query(statement, *values):
    with connection.cursor() as cursor:
        cursor.execute(statement, values or None)
        return cursor.fetchall()


@contextmanager
def waiting_no_longer_than(milliseconds):
    """Let a statement of this connection fail that waits too long for a lock."""
    with connection.cursor() as cursor:
        cursor.execute(f"SET lock_timeout = {milliseconds}")
    yield
    with connection.cursor() as cursor:
        cursor.execute("RESET lock_timeout")  # it goes back to the pool


def where(identifier):
    [(name,)] = query(f"SELECT tableoid::regclass::text FROM {TABLE} WHERE id = %s", identifier)
    return name


def create_partitions():
    """Return what the command says, or how it fails."""
    output = io.StringIO()
    try:
        call_command("create_partitions", stdout=output)
    except CommandError as error:
        return str(error)
    return output.getvalue()


def in_thread(job):
    """Start a job with a database connection of its own."""
    done = []

    def run():
        try:
            done.append(job())
        finally:
            connections.close_all()

    thread = threading.Thread(target=run)
    thread.start()
    return thread, done


def wait_until(condition):
    until = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.002)


def somebody_waits_for_a_lock():
    return query(
        "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() "
        "AND wait_event_type = 'Lock'"
    )


def test_rows_of_the_default_partition_are_moved_to_their_month():
    [identifier] = add(FAR)
    assert where(identifier) == f"{TABLE}_default"
    assert partitions.create_ahead([TABLE], now=FAR, months=1) == [MAY, JUNE]
    assert where(identifier) == MAY
    assert partitions.create_ahead([TABLE], now=FAR, months=1) == []
    [later] = add(datetime(2035, 1, 1, tzinfo=UTC))
    assert where(later) == f"{TABLE}_default"
    Delivery.objects.all().delete()


def options_of(name):
    [(options,)] = query("SELECT reloptions FROM pg_class WHERE relname = %s", name)
    return options


@pytest.mark.parametrize("rows", [0, 1])
def test_a_new_partition_leaves_as_much_room_for_updates_as_the_others(rows):
    add(FAR, rows)
    assert partitions.create_ahead([TABLE], now=FAR, months=0) == [MAY]
    assert options_of(MAY) == options_of(f"{TABLE}_default") == ["fillfactor=50"]


def test_an_update_that_commits_during_the_move_is_kept():
    [identifier] = add(FAR)

    def update():
        with transaction.atomic():
            Delivery.objects.filter(pk=identifier).update(status="SENT")
            updated.set()
            commit.wait(60)

    updated, commit = threading.Event(), threading.Event()
    updater, _ = in_thread(update)
    assert updated.wait(60)
    mover, made = in_thread(lambda: partitions.create_ahead([TABLE], now=FAR, months=0))
    wait_until(somebody_waits_for_a_lock)
    commit.set()
    updater.join(60)
    mover.join(60)
    assert made == [[MAY]]
    assert query(f"SELECT status FROM {TABLE} WHERE id = %s", identifier) == [("SENT",)]


def test_writers_lose_nothing_and_wait_little_while_the_default_partition_is_moved():
    keys = add(FAR, 6_000)
    april = add(FAR - timedelta(days=30), 3)
    stop = threading.Event()

    def write(share):
        """Change, add and delete rows, each in a transaction of its own; return what must be."""
        mine, number = dict.fromkeys(keys[share::2], "SENDING"), 0
        order = iter(list(mine))
        with waiting_no_longer_than(LONGEST_MS):
            while not stop.is_set():
                for key in [key for _, key in zip(range(20), order, strict=False)]:
                    query(f"UPDATE {TABLE} SET status = 'SENT' WHERE id = %s RETURNING 1", key)
                    mine[key] = "SENT"
                key = next(order, None)
                if key is not None:
                    query(f"DELETE FROM {TABLE} WHERE id = %s RETURNING 1", key)
                    del mine[key]
                [new] = add(FAR + timedelta(hours=1 + share, seconds=number))
                mine[new], number = "SENDING", number + 1
        return mine

    writers = [in_thread(lambda share=share: write(share)) for share in (0, 1)]
    made = partitions.create_ahead([TABLE], now=FAR, months=1)
    stop.set()
    expected = dict.fromkeys(april, "SENDING")
    for thread, done in writers:
        thread.join(60)
        expected |= done[0]
    assert made == [f"{TABLE}_203104", MAY, JUNE]
    assert dict(query(f"SELECT id, status FROM {TABLE} WHERE id >= %s", april[0])) == expected
    assert query(f"SELECT count(*) FROM {TABLE}_default") == [(0,)]
    assert query(f"SELECT count(*) FROM {MAY}") == [(len(expected) - len(april),)]


def test_a_locked_row_is_copied_once_it_is_free():
    keys = add(FAR, 5)

    def move():
        return partitions.create_ahead([TABLE], now=FAR, months=0)

    released = threading.Event()

    def hold():
        with transaction.atomic():
            query(f"SELECT 1 FROM {TABLE} WHERE id = %s FOR UPDATE", keys[2])
            released.wait(30)

    holder, _ = in_thread(hold)
    copy = f"{TABLE}_repartition"
    thread, made = in_thread(move)
    # A row lock alone does not keep the trigger away, so copying begins and finds the row locked.
    wait_until(
        lambda: (
            query("SELECT 1 FROM pg_class WHERE relname = %s", copy)
            and query(f"SELECT count(*) FROM {copy}") == [(4,)]
        )
    )
    released.set()
    thread.join(60)
    holder.join()
    assert made == [[MAY]]
    assert query(f"SELECT id FROM {MAY} ORDER BY id") == [(key,) for key in keys]


def test_a_long_reader_keeps_the_default_partition_as_it_is_and_holds_up_no_writer():
    [identifier] = add(FAR)
    with transaction.atomic():
        query(f"SELECT 1 FROM {TABLE} LIMIT 1")
        thread, made = in_thread(lambda: partitions.create_ahead([TABLE], now=FAR, months=0))
        added = []

        def write():
            with waiting_no_longer_than(LONGEST_MS):
                while thread.is_alive():
                    added.extend(add(FAR + timedelta(seconds=1 + len(added))))
                    time.sleep(0.01)

        writer, _ = in_thread(write)
        thread.join(60)
        writer.join()
    assert made == [[]]
    assert len(added) > 10
    assert {where(key) for key in [identifier, *added]} == {f"{TABLE}_default"}
    # What the run that failed may have left is cleared by the next, which succeeds.
    assert partitions.create_ahead([TABLE], now=FAR, months=0) == [MAY]
    assert query(f"SELECT count(*) FROM {MAY}") == [(1 + len(added),)]


def test_create_partitions_moves_rows_of_default_partitions():
    earlier = datetime(2024, 2, 10, tzinfo=UTC)
    [identifier] = add(earlier)
    name = f"{TABLE}_202402"
    try:
        with transaction.atomic():
            query(f"SELECT 1 FROM {TABLE} WHERE id = %s FOR UPDATE", identifier)
            thread, refused = in_thread(create_partitions)
            thread.join(60)
        assert refused == [f"The tables are in use; not created: {name}. Try again."]
        assert create_partitions() == f"{name}\n"
        assert where(identifier) == name
    finally:
        query(f"DELETE FROM {TABLE} RETURNING 1")
        with connection.cursor() as cursor:
            cursor.execute(f"DROP TABLE IF EXISTS {name}")


def test_the_copy_of_an_interrupted_run_is_dropped():
    [identifier] = add(FAR)
    borders = {MAY: (ids.at_least(datetime(2031, 5, 1, tzinfo=UTC)), UUID(int=2**128 - 1))}
    repartition._create_copy(TABLE, borders)
    assert repartition.run(TABLE, repartition._mirror_statements(TABLE))
    Delivery.objects.filter(pk=identifier).update(status="SENT")  # into the copy too
    assert partitions.create_ahead([TABLE], now=FAR, months=0) == [MAY]
    assert query(f"SELECT status FROM {MAY}") == [("SENT",)]
    assert (
        query("SELECT 1 FROM pg_class WHERE relname ~ 'repartition' AND relkind IN ('r', 'p')")
        == []
    )
