"""Partitions by month, week and day: made ahead, and nothing lost where they were not."""

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
from rme.core.db import clock, partitions
from rme.core.db.partitions import repartition
from rme.core.db.periods import Period

pytestmark = pytest.mark.django_db(transaction=True)
TABLE = Delivery._meta.db_table
FAR = datetime(2031, 5, 10, tzinfo=UTC)
EARLY = datetime(2021, 5, 10, tzinfo=UTC)
"""Before all partitions that there are."""
MAY, JUNE = f"{TABLE}_203105", f"{TABLE}_203106"
LONGEST_MS = 2000
"""How long a writer may be held up: more is an error in these tests, by its lock_timeout."""


@pytest.fixture(autouse=True)
def _no_months_of_2031():
    yield
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname FROM pg_class WHERE relkind = 'r' AND relname ~ %s",
            [f"^{TABLE}_(2021|2031|kept)"],
        )
        for (name,) in cursor.fetchall():
            cursor.execute(f'DROP TABLE "{name}"')
    assert repartition.clear(TABLE)
    partitions.create_ahead([TABLE], now=clock.now())  # a change of period drops those ahead


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
    assert partitions.create_ahead([TABLE], now=FAR, ahead=1) == [MAY, JUNE]
    assert where(identifier) == MAY
    assert partitions.create_ahead([TABLE], now=FAR, ahead=1) == []
    [later] = add(datetime(2035, 1, 1, tzinfo=UTC))
    assert where(later) == f"{TABLE}_default"
    Delivery.objects.all().delete()


def names(created):
    return [name.removeprefix(f"{TABLE}_") for name in created]


def test_partitions_of_days_and_weeks_are_created_ahead():
    assert names(partitions.create_ahead([TABLE], now=FAR, period=Period.DAY, ahead=2)) == [
        "20310510",
        "20310511",
        "20310512",
    ]
    june = datetime(2031, 6, 4, tzinfo=UTC)
    assert names(partitions.create_ahead([TABLE], now=june, period=Period.WEEK, ahead=1)) == [
        "2031w23",
        "2031w24",
    ]
    [day], [week] = add(FAR), add(datetime(2031, 6, 9, tzinfo=UTC))
    assert [where(day), where(week)] == [f"{TABLE}_20310510", f"{TABLE}_2031w24"]


def test_default_is_seven_days_four_weeks_or_three_months_ahead():
    created = {
        period: partitions.missing([TABLE], now=datetime(2032, 1, 5, tzinfo=UTC), period=period)
        for period in Period
    }
    assert {period: len(found) for period, found in created.items()} == {
        Period.DAY: 1 + 7,
        Period.WEEK: 1 + 4,
        Period.MONTH: 1 + 3,
    }


def test_new_partition_length_starts_after_existing_rows():
    """May is in use; June, which is empty, makes room; the week across both gets its days."""
    partitions.create_ahead([TABLE], now=FAR, ahead=1)
    [may] = add(datetime(2031, 5, 31, tzinfo=UTC))
    late = datetime(2031, 5, 28, tzinfo=UTC)
    assert names(partitions.create_ahead([TABLE], now=late, period=Period.WEEK, ahead=1)) == [
        "20310601",
        "2031w23",
    ]
    [june] = add(datetime(2031, 6, 1, tzinfo=UTC))
    assert [where(may), where(june)] == [MAY, f"{TABLE}_20310601"]
    assert partitions.create_ahead([TABLE], now=late, period=Period.WEEK, ahead=1) == []
    assert names(partitions.create_ahead([TABLE], now=late, ahead=1)) == [
        f"203106{day:02}" for day in range(9, 31)
    ]
    assert partitions.length_at(TABLE, late) is Period.MONTH
    assert partitions.length_at(TABLE, FAR - timedelta(days=90)) is None


def test_a_new_partition_is_analyzed():
    partitions.create_ahead([TABLE], now=FAR, ahead=0)
    assert query("SELECT reltuples FROM pg_class WHERE relname = %s", MAY) == [(0.0,)]


def test_some_rows_of_dropped_partitions_are_carried_over_to_one():
    for day in (10, 11, 12):
        now = datetime(2021, 5, day, tzinfo=UTC)
        partitions.create_ahead([TABLE], now=now, period=Period.DAY, ahead=0)
    first, _, third = add(EARLY, 3)
    second, _ = add(EARLY + timedelta(days=1), 2)
    [other] = add(EARLY + timedelta(days=2))
    [stray] = add(EARLY - timedelta(days=1))
    parts = partitions.past([TABLE], before=EARLY + timedelta(days=2))
    dropped = [
        partitions.drop_except(part, keys)
        for part, keys in zip(parts, ([first, third], [second]), strict=True)
    ]
    assert dropped == [True, True]
    assert {key: where(key) for key in (stray, first, third, second, other)} == {
        **dict.fromkeys((stray, first, third, second), f"{TABLE}_kept"),
        other: f"{TABLE}_20210512",
    }
    assert Delivery.objects.count() == 5
    assert partitions.carried_over_until(TABLE) == ids.at_least(EARLY + timedelta(days=2))
    assert options_of(f"{TABLE}_kept") == ["fillfactor=50"]
    Delivery.objects.filter(pk=stray).update(status="SENT")
    assert partitions.missing([TABLE], now=EARLY, period=Period.DAY, ahead=0) == []


def test_partition_being_read_is_dropped_later():
    partitions.create_ahead([TABLE], now=EARLY, period=Period.DAY, ahead=0)
    [key] = add(EARLY)
    [part] = partitions.past([TABLE], before=EARLY + timedelta(days=1))
    with transaction.atomic():
        query(f"SELECT 1 FROM {TABLE} LIMIT 1")
        thread, dropped = in_thread(lambda: partitions.drop_except(part, [key]))
        thread.join(60)
    assert (dropped, where(key)) == ([False], part.name)
    assert partitions.drop_except(part, [key])
    assert where(key) == f"{TABLE}_kept"


def options_of(name):
    [(options,)] = query("SELECT reloptions FROM pg_class WHERE relname = %s", name)
    return options


@pytest.mark.parametrize("rows", [0, 1])
def test_new_partition_has_the_same_fillfactor_as_others(rows):
    add(FAR, rows)
    assert partitions.create_ahead([TABLE], now=FAR, ahead=0) == [MAY]
    assert options_of(MAY) == options_of(f"{TABLE}_default") == ["fillfactor=50"]


def test_update_committed_during_the_move_is_kept():
    [identifier] = add(FAR)

    def update():
        with transaction.atomic():
            Delivery.objects.filter(pk=identifier).update(status="SENT")
            updated.set()
            commit.wait(60)

    updated, commit = threading.Event(), threading.Event()
    updater, _ = in_thread(update)
    assert updated.wait(60)
    mover, made = in_thread(lambda: partitions.create_ahead([TABLE], now=FAR, ahead=0))
    wait_until(somebody_waits_for_a_lock)
    commit.set()
    updater.join(60)
    mover.join(60)
    assert made == [[MAY]]
    assert query(f"SELECT status FROM {TABLE} WHERE id = %s", identifier) == [("SENT",)]


def test_partition_is_created_after_a_short_lock_of_its_table():
    def hold():
        with transaction.atomic():
            query(f"SELECT 1 FROM {TABLE}_default LIMIT 1")
            held.set()
            time.sleep((repartition.LOCK_MS + 100) / 1000)  # the first try fails

    held = threading.Event()
    holder, _ = in_thread(hold)
    assert held.wait(60)
    assert partitions.create_ahead([TABLE], now=FAR, ahead=0) == [MAY]
    holder.join(60)


def test_an_autovacuum_makes_way_before_a_change_of_partitions_gives_up():
    """PostgreSQL cancels an autovacuum for whoever has waited for `deadlock_timeout`."""
    [(least,)] = query("SELECT setting::int FROM pg_settings WHERE name = 'deadlock_timeout'")
    assert least * 2 <= repartition.LOCK_MS


def test_writers_continue_while_the_default_partition_is_moved():
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
    made = partitions.create_ahead([TABLE], now=FAR, ahead=1)
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
        return partitions.create_ahead([TABLE], now=FAR, ahead=0)

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


def test_long_reader_prevents_the_move_and_delays_no_writer():
    [identifier] = add(FAR)
    with transaction.atomic():
        query(f"SELECT 1 FROM {TABLE} LIMIT 1")
        thread, made = in_thread(lambda: partitions.create_ahead([TABLE], now=FAR, ahead=0))
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
    assert partitions.create_ahead([TABLE], now=FAR, ahead=0) == [MAY]
    assert query(f"SELECT count(*) FROM {MAY}") == [(1 + len(added),)]


def test_create_partitions_moves_rows_of_default_partitions():
    create_partitions()  # those ahead, which depend on today's date
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
    assert partitions.create_ahead([TABLE], now=FAR, ahead=0) == [MAY]
    assert query(f"SELECT status FROM {MAY}") == [("SENT",)]
    assert (
        query("SELECT 1 FROM pg_class WHERE relname ~ 'repartition' AND relkind IN ('r', 'p')")
        == []
    )
