"""Retention: what is past goes, what is on its way stays, and locks are never waited for long."""

import threading
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from django.db import connection, connections, transaction

from messaging.consent.tasks import drop_contents
from messaging.housekeeping.tasks import housekeeping
from messaging.models import Attempt, Delivery, Event, Message, MessageContent
from messaging.store import retention
from messaging.store.retention import job
from rme.core import ids
from rme.core.db import clock, partitions, sql
from rme.core.db.periods import Period
from tests.messaging.store.retention.retention_scene import (
    CONTENTS,
    NOW,
    TABLES,
    at,
    create,
    days,
    kept,
    kept_messages,
    left,
    months_of,
    query,
    store,
    whole,
)
from tests.threads import at_once

pytestmark = pytest.mark.django_db(transaction=True)


def test_contents_go_after_their_days_and_messages_stay():
    old, fresh = store(at(2031, 5, 10)), store(at(2031, 5, 20))
    retention.apply(now=NOW)
    assert kept(MessageContent) == {fresh}
    assert kept(Message) == {old, fresh}


def test_whole_months_of_contents_go_with_their_partition():
    store(at(2031, 4, 10))
    retention.apply(now=NOW)
    assert months_of(MessageContent._meta.db_table) == ["203105", "203106"]
    assert left() == {**whole(1), "MessageContent": 0}


def test_contents_are_dropped_between_the_hourly_runs(redis):
    today = Period.DAY.start_of(clock.now())
    create([CONTENTS], today - timedelta(days=40), Period.DAY)
    store(today - timedelta(days=40))
    recent = store(today - timedelta(days=20))
    drop_contents()
    assert kept(MessageContent) == {recent}
    assert Message.objects.count() == 2


def test_contents_go_with_their_messages_at_the_latest(settings):
    settings.CONTENT_RETENTION_DAYS = 900
    store(at(2030, 4, 30))
    retention.apply(now=NOW)
    assert left() == whole(0)


def test_contents_stay_until_their_day_has_ended():
    days(at(2031, 5, 16))
    noon = store(at(2031, 5, 16))
    retention.apply(now=NOW + timedelta(hours=23))
    assert kept(MessageContent) == {noon}
    retention.apply(now=NOW + timedelta(days=1))
    assert kept(MessageContent) == set()


@pytest.mark.parametrize(
    ("status", "due_at", "stays"),
    [
        ("SCHEDULED", at(2031, 9, 1), True),
        ("ACCEPTED", at(2031, 4, 10), True),
        ("SENDING", at(2031, 4, 10), True),
        ("UNKNOWN", None, True),
        ("SENT", at(2031, 7, 1), True),  # falls back to another channel then
        ("SENT", None, False),
        ("DELIVERED", None, False),
        ("FAILED", None, False),
        ("CANCELLED", None, False),
    ],
)
@pytest.mark.parametrize("moment", [at(2031, 4, 10), at(2030, 1, 10)])
def test_only_finished_messages_lose_their_content(moment, status, due_at, stays):
    store(moment, status, due_at=due_at, deliveries=3)
    store(moment + timedelta(hours=1))
    retention.apply(now=NOW)
    ended = 1 if moment.year == 2031 else 0
    held = {**whole(1), "Delivery": 3}
    gone = {**whole(0), "Message": ended, "Delivery": 3 * ended, "Attempt": ended, "Event": ended}
    rest = held if stays else gone
    assert left() == {
        name: count + (0 if name == "MessageContent" else ended) for name, count in rest.items()
    }


def test_recently_changed_message_is_kept_from_that_time_on():
    """One scheduled a year ahead does not go on the day it was sent."""
    moved = store(at(2030, 1, 10), moved=NOW - timedelta(days=29))
    store(at(2030, 1, 11))
    retention.apply(now=NOW)
    assert [kept(model) for model in (Message, MessageContent)] == [{moved}, {moved}]
    retention.apply(now=NOW + timedelta(days=2))
    assert (kept(MessageContent), kept(Message)) == (set(), {moved})
    retention.apply(now=NOW + timedelta(days=400))
    assert left() == whole(0)


def test_messages_go_by_whole_months_and_not_before():
    """400 days before NOW is 11 May 2030: April is past, May is not."""
    store(at(2030, 4, 30))
    may = store(at(2030, 5, 1))
    retention.apply(now=NOW)
    assert kept(Message) == kept_messages(Delivery) == kept_messages(Event) == {may}
    assert {table: months_of(table)[0] for table in TABLES} == {
        **dict.fromkeys(TABLES, "203005"),
        MessageContent._meta.db_table: "203105",
    }


def test_month_is_dropped_and_unfinished_messages_are_carried_over():
    """Contents of April are gone by then, but not that of the message that is still to be sent."""
    for day in range(1, 30):
        store(at(2030, 4, day))
    live = store(at(2030, 4, 30), "SCHEDULED", due_at=at(2031, 9, 1), number=1)
    ended = store(at(2030, 5, 2))
    Attempt.objects.filter(message_id=live).update(id=ids.at_least(at(2030, 5, 1)))
    before = [list(model.objects.values()) for model in (Message, MessageContent, Delivery)]
    of_live = [[row for row in rows if live in row.values()] for rows in before]
    for now in (NOW, NOW + timedelta(days=30)):
        retention.apply(now=now)
        assert [
            list(model.objects.exclude(pk=ended).exclude(**own).values())
            for model, own in (
                (Message, {}), (MessageContent, {}), (Delivery, {"message_id": ended})
            )
        ] == of_live  # fmt: skip
    assert kept_messages(Attempt) == kept_messages(Event) == {live}
    names = [model._meta.db_table for model in (Message, Delivery, Attempt, Event)]
    assert {months_of(name)[0] for name in names} == {"203104"}
    Delivery.objects.filter(message_id=live).update(status="SENT", due_at=None)
    retention.apply(now=NOW + timedelta(days=31))
    assert left() == whole(0)
    assert query("SELECT relname FROM pg_class WHERE relname ~ '_live$'") == []


def test_partitions_of_other_tables_wait_for_the_messages_of_their_time():
    """Messages have days where deliveries have a month; the last day is not past."""
    table, days = Message._meta.db_table, [datetime(2030, 5, day, tzinfo=UTC) for day in (10, 11)]
    (may,) = [each for each in partitions.past([table], before=NOW) if each.name[-6:] == "203005"]
    assert partitions.drop(may)
    for day in days:
        create([table], day, Period.DAY)
    stored = [store(day) for day in days]
    retention.apply(now=NOW)  # 400 days before is 11 May
    assert (kept(Message), kept_messages(Delivery)) == ({stored[1]}, set(stored))
    assert (months_of(table)[0], months_of(Delivery._meta.db_table)[0]) == ("20300511", "203005")
    retention.apply(now=NOW + timedelta(days=30))
    assert left() == whole(0)


def test_a_delivery_across_the_border_of_months_keeps_its_message():
    """The message is of the last millisecond of April, its delivery of the first of May."""
    border = datetime(2030, 5, 1, tzinfo=UTC)
    message_id = store(border - timedelta(milliseconds=1), "SCHEDULED", due_at=at(2031, 9, 1))
    Delivery.objects.update(id=ids.at_least(border))
    retention.apply(now=NOW)
    assert kept(Message) == kept(MessageContent) == {message_id}


def test_rows_of_the_default_partition_are_deleted_too():
    store(at(2029, 3, 3))
    store(at(2029, 3, 4), "SCHEDULED", due_at=at(2031, 9, 1))
    retention.apply(now=NOW)
    assert left() == whole(1)


def test_statements_grow_only_with_batches(django_assert_num_queries):
    retention.apply(now=NOW)  # drops the months before
    base = ids.at_least(at(2031, 5, 2)).int
    rows = [
        {"id": UUID(int=base + i), "organization_id": "acme", "body": {}}
        for i in range(2 * job.BATCH + 1)
    ]
    sql.insert({MessageContent: rows})
    # the lock and its release; contents: the partitions, the length of the one that ends there, and
    # three batches of three statements; then the partitions of messages, the oldest of them, the
    # partitions of the other tables, and two statements for each table, which find nothing
    with django_assert_num_queries(2 + (2 + 3 * 3) + (3 + 5 * 2)):
        retention.apply(now=NOW)
    assert left() == whole(0)


def test_table_in_use_is_dropped_by_the_next_run():
    """Whoever comes after the drop waits no longer than it does: a quarter of a second."""
    store(at(2030, 1, 10))
    reading, done = threading.Event(), threading.Event()

    def read() -> None:
        with transaction.atomic():
            list(Message.objects.all())
            reading.set()
            done.wait(20)
        connections.close_all()

    thread = threading.Thread(target=read)
    thread.start()
    reading.wait(10)
    started = clock.now()
    retention.apply(now=NOW)
    took = clock.now() - started
    assert took < timedelta(seconds=10)
    assert months_of(Message._meta.db_table)[0] == "203001"
    assert left()["Delivery"] == 0  # deleted in batches, which no reader holds up
    done.set()
    thread.join()
    retention.apply(now=NOW)
    assert months_of(Message._meta.db_table)[0] == "203005"


def test_detached_partition_is_dropped():
    table = Event._meta.db_table
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {table} DETACH PARTITION {table}_203001")
    retention.apply(now=NOW)
    assert months_of(table)[0] == "203005"


@pytest.mark.promise("reliability-8")
def test_two_concurrent_runs_are_harmless():
    for day in range(1, 28):
        store(at(2030, 1, day))
        store(at(2031, 5, day % 12 + 1) + timedelta(minutes=day))
    fresh = store(at(2031, 6, 10))
    at_once(lambda: retention.apply(now=NOW), 3)
    assert kept(MessageContent) == {fresh}
    assert left() == {**whole(28), "MessageContent": 1}


def test_housekeeping_does_it_and_twice_is_no_error(redis):
    store(clock.now() - timedelta(days=500))
    recent = store(clock.now() - timedelta(days=20))
    housekeeping()
    housekeeping()
    assert kept(Message) == kept(MessageContent) == {recent}
