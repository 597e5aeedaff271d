"""The counting job: exact against a naive count, late, twice, at once, and after an outage."""

import random
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from messaging.housekeeping.tasks import housekeeping
from messaging.models import (
    PARTITIONED,
    Attempt,
    CountedUntil,
    Delivery,
    Event,
    HourCount,
    MinuteCount,
)
from messaging.statistics import minutes
from messaging.statistics.tasks import count_minutes
from messaging.store.reports import statistics
from rme.core import ids
from rme.core.db import clock
from tests import factories
from tests.messaging.statistics.scene import (
    NOW,
    START,
    attempt,
    begin,
    delivery,
    event,
    run,
    stored,
    totals,
)
from tests.rest import Api, all_events, message, work
from tests.threads import at_once

pytestmark = pytest.mark.django_db
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
KINDS = (
    "accepted", "scheduled", "sent", "delivered", "failed", "bounced", "blocked", "expired",
    "cancelled", "open", "deferred",
)  # fmt: skip
REASONS = ("", "SUPPRESSED", "PROVIDER_ERROR", "550 no such user ada@x.example")


def naive():
    """Return what the job should store, counted row by row."""
    deliveries = {row.pk: row for row in Delivery.objects.all()}
    events = all_events()
    has_failed = {each.delivery_id for each in events if each.type == "failed"}
    found, timed = Counter(), Counter()
    for each in events:
        row = deliveries[each.delivery_id]
        kind, reason = each.type, (each.detail or {}).get("reason", "")
        if kind in ("scheduled", "open", "deferred"):
            continue
        if kind == "bounced":
            if row.status != "FAILED" or row.pk in has_failed:
                continue
            kind = "failed"
        if kind not in ("failed", "blocked", "expired"):
            reason = ""
        elif reason not in ("SUPPRESSED", "PROVIDER_ERROR"):
            reason = {"failed": "PROVIDER_ERROR", "expired": "EXPIRED", "blocked": ""}[kind]
        at = ids.moment(each.pk).replace(second=0, microsecond=0)
        account = row.account_id or 0 if kind in ("sent", "delivered", "failed") else 0
        key = (each.organization_id, at, row.test, each.channel, account, kind, reason)
        found[key] += 1
        timed[key] += kind == "sent"
    for each in Attempt.objects.filter(account_id__isnull=False, outcome__isnull=False):
        at = ids.moment(each.pk).replace(second=0, microsecond=0)
        outcome = f"attempt_{each.outcome.lower()}"
        key = (each.organization_id, at, False, each.channel, each.account_id, outcome, "")
        found[key] += 1
    return {key: (number, timed[key]) for key, number in found.items()}


@given(st.randoms(use_true_random=False), st.integers(min_value=0, max_value=30))
@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_job_counts_the_same_as_a_naive_count(db, chance, size):
    with transaction.atomic():
        fill(chance, size)
        begin()
        run(START + 20 * MINUTE)
        assert stored() == naive()
        run(START + HOUR)  # once more, as final
        assert stored() == naive()
        transaction.set_rollback(True)


def fill(chance, size):
    for _ in range(size):
        row = delivery(
            START + chance.random() * 9 * MINUTE,
            organization=chance.choice(("acme", "other")),
            test=chance.random() < 0.3,
            channel=chance.choice(("EMAIL", "SMS")),
            accepted_at=START if chance.random() < 0.5 else None,
            accepted_channel=chance.choice((None, "PUSH")),
            account_id=chance.choice((None, 3, 4)),
            status=chance.choice(("SENT", "FAILED")),
        )
        for kind in chance.sample(KINDS, chance.randint(0, 4)):
            reason = chance.choice(REASONS)
            at = START + chance.random() * 9 * MINUTE
            event(row, kind, at, **({"reason": reason} if reason else {}))
        for outcome in chance.sample(["Accepted", "Retryable", "Gone", None], 2):
            at = START + chance.random() * 9 * MINUTE
            sent_at = at if outcome == "Accepted" and chance.random() < 0.5 else None
            attempt(row, outcome, at, account_id=chance.choice((None, 3, 4)), sent_at=sent_at)


def test_counts_of_real_sends_agree_with_their_events(org, api):
    ada = factories.contact(org)
    for channel in ("EMAIL", "SMS", "EMAIL"):
        api.send(message(ada, channel=channel))
    Api(org, mode="TEST").send(message(ada))
    work()
    org.suppression_set.create(channel="EMAIL", address=ada.email, reason="STOP")
    api.send(message(ada))
    now = clock.now() + 2 * MINUTE
    run(now)
    live, test = totals(test=False), totals(test=True)
    assert live == {"accepted": 3, "sent": 3, "delivered": 3, "blocked": 1}
    assert test == {"accepted": 1, "sent": 1, "delivered": 1}
    assert totals(outcome="blocked", reason="SUPPRESSED") == {"blocked": 1}
    assert {sum(row.latencies) for row in MinuteCount.objects.filter(outcome="sent")} <= {1, 2}


def test_latency_runs_from_the_time_it_was_to_be_sent():
    row = delivery(START, scheduled_for=START + 5 * MINUTE)
    event(row, "sent", START + 5 * MINUTE + timedelta(milliseconds=100))
    begin()
    run()
    (latencies,) = MinuteCount.objects.values_list("latencies", flat=True)
    assert [bucket for bucket, n in enumerate(latencies) if n] == [14]  # 90.5 to 128 ms


def test_a_minute_is_counted_when_it_has_passed_and_not_before():
    row = delivery(START)
    event(row, "sent", START + timedelta(seconds=59))
    begin()
    assert run(START + MINUTE + timedelta(seconds=4)) == 0
    assert run(START + MINUTE + timedelta(seconds=5)) == 1
    assert totals() == {"sent": 1}


def test_rows_committed_late_are_counted_ten_minutes_later():
    begin()
    row = delivery(START)
    event(row, "sent", START)
    run(START + 2 * MINUTE)
    event(row, "delivered", START)  # its id is of a minute that was counted
    attempt(row, "Accepted", START)
    run(START + 9 * MINUTE)
    assert totals() == {"sent": 1}
    run(START + 12 * MINUTE)
    assert totals() == {"sent": 1, "delivered": 1, "attempt_accepted": 1}
    assert stored() == naive()


def test_counting_again_changes_nothing():
    row = delivery(START)
    event(row, "sent", START)
    begin()
    run()
    once = stored()
    begin()
    run()
    assert (stored(), once) == (once, naive())


@pytest.mark.django_db(transaction=True)
def test_concurrent_jobs_count_once():
    for minute in range(30):
        row = delivery(START + minute * MINUTE)
        event(row, "accepted", START + minute * MINUTE)
        event(row, "sent", START + minute * MINUTE + timedelta(seconds=1))
    begin()
    at_once(run, 4)
    run()
    assert stored() == naive()
    assert totals() == {"accepted": 30, "sent": 30}


def test_after_an_outage_it_continues_where_it_stopped():
    row = delivery(START)
    for minute in range(55):
        event(row, "delivered", START + minute * MINUTE)
    begin()
    assert minutes.count_slice(NOW)
    assert CountedUntil.objects.get().final_until == START + minutes.SLICE
    assert totals() == {"delivered": 5}
    assert run() == 11  # to 11:50 as final by nine more slices, to 12:00 by two
    assert totals() == {"delivered": 55}
    progress = CountedUntil.objects.get()
    until = NOW.replace(second=0)
    assert (progress.final_until, progress.first_until) == (until - 10 * MINUTE, until)


def test_first_run_starts_at_the_first_event():
    began = START - timedelta(days=2)
    row = delivery(began)
    event(row, "sent", began)
    attempt(row, "Accepted", began - 2.5 * MINUTE)  # by a worker whose clock is behind
    minutes.count_slice(NOW)
    assert CountedUntil.objects.get().final_until == began - HOUR + minutes.SLICE
    run()
    assert totals(at=began - 3 * MINUTE) == {"attempt_accepted": 1}
    CountedUntil.objects.all().delete()
    Event.objects.all().delete()
    Delivery.objects.all().delete()
    run()
    assert CountedUntil.objects.get().first_until == NOW.replace(second=0)


def test_hours_are_the_sums_of_their_minutes():
    chance = random.Random(5)
    begin(START - HOUR)
    for _ in range(40):
        at = START - HOUR + chance.random() * 2 * HOUR
        row = delivery(at, account_id=chance.choice((None, 3)))
        event(row, "sent", at + timedelta(milliseconds=chance.randint(1, 2000)))
        event(row, "failed", at, reason=chance.choice(REASONS[1:]))
    run(NOW)
    sums = HourCount.objects.exclude(outcome__startswith=statistics.NOW)
    assert set(sums.values_list("at", flat=True)) == {START - HOUR}
    run(NOW + 15 * MINUTE)
    assert totals(HourCount) == totals() == {"sent": 40, "failed": 40}
    sums = Counter()
    for (org, at, *key), (number, timed) in stored().items():
        sums[(org, minutes.hour_of(at), *key)] += number
        assert timed in (0, number)
    assert {key: number for key, (number, _) in stored(HourCount).items()} == sums
    by_minute, by_hour = (
        [sum(place) for place in zip(*rows, strict=True)]
        for rows in (
            model.objects.filter(outcome="sent").values_list("latencies", flat=True)
            for model in (MinuteCount, HourCount)
        )
    )
    assert by_minute == by_hour


def test_minutes_and_hours_are_deleted_when_their_time_is_over():
    now = clock.now()
    for model, kept in (
        (MinuteCount, minutes.MINUTE_RETENTION),
        (HourCount, minutes.HOUR_RETENTION),
    ):
        for n, age in enumerate((kept - HOUR, kept + HOUR, kept + 2 * HOUR)):
            row = {"organization_id": "a", "test": False, "channel": "SMS", "account_id": n}
            model.objects.create(at=now - age, outcome="sent", reason="", count=1, **row)
    housekeeping()
    assert (minutes.MINUTE_RETENTION.days, minutes.HOUR_RETENTION.days) == (9, 90)
    for model in (MinuteCount, HourCount):
        assert list(model.objects.values_list("account_id", flat=True)) == [0]


def test_statements_do_not_grow(django_assert_num_queries):
    """By the number of minutes of a slice, of messages, or of organizations."""
    begin(datetime(2031, 6, 15, 10, 30, tzinfo=UTC))
    minutes.count_slice(NOW)  # nothing in it
    for number in (1, 10):
        for i in range(number):
            row = delivery(START - 25 * MINUTE, organization=f"o{i}")
            event(row, "sent", START - 25 * MINUTE + number * 5 * MINUTE / 2)
        # savepoint and its release; the progress, its lock and its update; delete, setting, insert;
        # every ten minutes, of statuses: what changed, how many there are, delete, insert
        for statements in (11, 7):
            with django_assert_num_queries(statements):
                minutes.count_slice(NOW)


def handled_rows(node):
    """Return how many rows the steps of a plan handle, those that they drop included."""
    dropped = ("Rows Removed by Filter", "Rows Removed by Join Filter")
    own = node["Actual Rows"] + sum(node.get(name, 0) for name in dropped)
    return own * node["Actual Loops"] + sum(map(handled_rows, node.get("Plans", [])))


@pytest.mark.parametrize("age", [0, 30])
def test_rows_read_do_not_depend_on_planner_statistics(age):
    """Of each event a few rows, although PostgreSQL believes that there are none."""
    size = 150
    with connection.cursor() as cursor:
        for place in range(size):
            row = delivery(START - timedelta(days=2, seconds=place))
            event(row, "sent", START - timedelta(days=2, seconds=place))
        cursor.execute(f"ANALYZE {', '.join(model._meta.db_table for model in PARTITIONED)}")
        for place in range(size):
            row = delivery(START - age * MINUTE + timedelta(milliseconds=place))
            event(row, "sent", START + timedelta(seconds=20))
            attempt(row, "Accepted", START + timedelta(seconds=20))
        with transaction.atomic():
            cursor.execute(statistics.BY_HASH)
            values = statistics.minute_values(START, START + MINUTE, minutes.REASONS)
            cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {statistics.COUNT_MINUTES}", values)
            ((((plan,),),),) = [cursor.fetchall()]
    assert totals() == {"sent": size, "attempt_accepted": size}
    assert handled_rows(plan["Plan"]) <= 25 * size


def test_the_task_counts_to_the_last_minute(org, api):
    api.send(message(factories.contact(org)))
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE {Delivery._meta.db_table} SET id = %s", [
            ids.at_least(clock.now() - 3 * MINUTE)])  # fmt: skip
    count_minutes()
    assert totals() == {"accepted": 1}
