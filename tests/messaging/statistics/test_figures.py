"""The figures of a period are those of the lists behind them."""

import random
from collections import Counter
from datetime import timedelta
from itertools import pairwise

import pytest

from messaging.domain.figures import FIGURE_OF, STATUSES, Figure
from messaging.domain.statuses import Status
from messaging.models import Delivery, HourCount, MinuteCount
from messaging.reports import delivery_list
from messaging.statistics import figures, minutes
from messaging.statistics.figures import TimeRange
from messaging.store.reports.deliveries import DeliveryFilter
from rme.core import ids
from tests.messaging.statistics.scene import (
    NOW,
    attempt,
    begin,
    delivery,
    event,
    run,
    statuses,
)

pytestmark = pytest.mark.django_db
HOUR, WEEK = timedelta(hours=1), timedelta(days=7)
UNTIL = NOW.replace(second=0)


def counted(moments):
    """Count all minutes of the moments, an hour of them at a time, until now."""
    for hour in sorted({minutes.hour_of(at) for at in moments}):
        begin(hour)
        minutes_left = True
        while minutes_left:
            minutes_left = minutes.count_slice(hour + HOUR + timedelta(minutes=11))
    begin(minutes.hour_of(NOW - HOUR))
    run()


def listed(span, **query):
    """Return how many deliveries the list of a period shows."""
    wanted = DeliveryFilter(since=span.start, until=span.end, test=False, **query)
    return len(delivery_list.find("acme", wanted, limit=1000).rows)


def test_before_the_first_run_there_are_no_statistics():
    assert figures.read("acme", test=False) is None


def test_each_figure_is_as_long_as_the_list_behind_it():
    chance = random.Random(3)
    moments = []
    for _ in range(60):
        at = UNTIL - chance.random() * timedelta(hours=30)
        status = chance.choice(list(Status))
        channel = chance.choice(("EMAIL", "SMS"))
        reason = "SUPPRESSED" if status == Status.BLOCKED else None
        delivery(at, status=status, channel=channel, reason=reason, test=chance.random() < 0.1)
        moments.append(at)
    delivery(UNTIL - HOUR, organization="other")
    counted([*moments, UNTIL - HOUR])
    found = figures.read("acme", test=False)
    assert (found.span.end, found.span.end - found.span.start) == (UNTIL, 24 * HOUR)
    for channel, shown in found.current.channels.items():
        assert shown.accepted == listed(found.span, channel=channel) > 0
        assert {figure: listed(found.span, channel=channel, statuses=STATUSES[figure])
                for figure in Figure} == shown.counts  # fmt: skip
    total = found.current.total
    assert total.accepted == sum(each.accepted for each in found.current.hours)
    assert total.accepted == listed(found.span)
    for line in found.reasons:
        query = {"channel": line.channel, "reason": line.reason}
        assert line.times == listed(found.span, statuses=STATUSES[line.figure], **query)
    assert {line.reason for line in found.reasons} == {"SUPPRESSED"}


def test_late_changes_move_a_message_from_one_figure_to_another():
    at = UNTIL - 5 * HOUR
    row = delivery(at, status="SENT")
    counted([at])
    assert statuses() == {"sent": 1}
    for status, kind in (("DELIVERED", "delivered"), ("FAILED", "bounced")):
        Delivery.objects.filter(pk=row["id"]).update(status=status)
        event(row, kind, UNTIL - timedelta(minutes=3))
        begin(UNTIL - timedelta(minutes=5))
        run()
        assert statuses() == {status.lower(): 1}


def test_fallback_moves_a_message_back_to_waiting():
    at = UNTIL - 5 * HOUR
    row = delivery(at, status="SENT")
    counted([at])
    Delivery.objects.filter(pk=row["id"]).update(status="ACCEPTED")
    event(row, "fallback", UNTIL - timedelta(minutes=3))
    begin(UNTIL - timedelta(minutes=5))
    run()
    assert statuses() == {"accepted": 1}


def test_hours_with_many_deliveries_are_counted_every_ten_minutes():
    border = UNTIL - timedelta(minutes=UNTIL.minute % 10)
    at = border - 5 * HOUR
    row = delivery(at, status="SENT")
    delivery(at, status="SENT")
    counted([at])
    Delivery.objects.filter(pk=row["id"]).update(status="FAILED")
    event(row, "bounced", border - timedelta(minutes=2))
    begin(border - timedelta(minutes=4))
    now = border + minutes.GRACE
    assert minutes.count_slice(now, few=1)
    assert not minutes.count_slice(now, few=1)
    assert statuses() == {"sent": 2}
    assert minutes.count_slice(border + minutes.FINAL_AFTER, few=1)
    assert statuses() == {"sent": 1, "failed": 1}


def test_every_hour_has_its_turn_to_be_counted_anew():
    windows = minutes.STATUS_DAYS // minutes.STATUS_WINDOW
    ends = [UNTIL + minutes.STATUS_WINDOW * number for number in range(windows)]
    turns = {hour for end in ends for hour in minutes._next_in_turn(end)}
    assert {minutes.hour_of(UNTIL) + HOUR * number for number in range(48)} <= turns


def test_changes_beyond_the_most_wait_for_their_turn():
    at = UNTIL - 5 * HOUR
    row = delivery(at, status="SENT")
    delivery(at, status="SENT")
    counted([at])
    Delivery.objects.filter(pk=row["id"]).update(status="FAILED")
    border = UNTIL - timedelta(minutes=UNTIL.minute % 10)
    event(row, "bounced", border - timedelta(minutes=2))
    for many, found in ((1, {"sent": 2}), (2, {"sent": 1, "failed": 1})):
        begin(border - timedelta(minutes=4))
        assert minutes.count_slice(border + minutes.FINAL_AFTER, few=1, many=many)
        assert statuses() == found


def test_attempt_without_an_event_moves_a_message():
    at = UNTIL - 5 * HOUR
    row = delivery(at, status="ACCEPTED", scheduled_for=UNTIL - timedelta(minutes=3))
    counted([at])
    Delivery.objects.filter(pk=row["id"]).update(status="SENT")
    sent_at = UNTIL - timedelta(minutes=3)
    attempt(row, "Accepted", sent_at, sent_at=sent_at)
    begin(UNTIL - timedelta(minutes=5))
    run()
    assert statuses() == {"sent": 1}


def test_week_before_is_compared_hour_by_hour():
    moments = [UNTIL - timedelta(minutes=7) - age for age in (HOUR, WEEK, WEEK + HOUR, 10 * WEEK)]
    for at in moments:
        delivery(at, status="DELIVERED")
    counted(moments[:3])
    found = figures.read("acme", test=False)
    assert [period.total.accepted for period in (found.current, found.before)] == [1, 2]
    for period, expected in ((found.current, moments[:1]), (found.before, moments[1:3])):
        ago = timedelta() if period is found.current else WEEK
        hours = Counter(minutes.hour_of(at + ago) for at in expected)
        starts = figures.last_hours(UNTIL)
        assert [each.accepted for each in period.hours] == [hours[start] for start in starts]


def test_latencies_and_attempts_are_those_of_the_period():
    moments = [UNTIL - HOUR * age - timedelta(minutes=7) for age in (0, 0.2, 3, 22.5, 24.5)]
    for at in moments:
        row = delivery(at, account_id=3)
        event(row, "sent", at + timedelta(milliseconds=100))
        for outcome in ("Accepted", "Retryable"):
            attempt(row, outcome, at, account_id=3)
    counted(moments)
    found = figures.read("acme", test=False)
    assert sum(found.latencies["EMAIL"]) == 4
    assert 90 < found.latency("EMAIL", 0.5) < 129
    assert found.latency("PUSH", 0.5) is None
    expected = Counter(minutes.hour_of(at) for at in moments)
    assert [(each.at, each.answered, each.success) for each in found.accounts[3]] == [
        (at, 2 * expected[at], 0.5 if expected[at] else None) for at in figures.last_hours(UNTIL)
    ]
    assert figures.read("acme", test=True).accounts == {}


def test_parts_cover_a_period_exactly_once():
    chance = random.Random(1)
    for _ in range(200):
        end = UNTIL - timedelta(minutes=chance.randint(0, 3000))
        span = TimeRange(end - timedelta(minutes=chance.randint(1, 12_000)), end)
        border = minutes.hour_of(UNTIL - timedelta(minutes=chance.randint(0, 200)))
        parts = figures._parts(span, border, UNTIL - timedelta(days=30))
        assert (parts[0].start, parts[-1].end) == span
        assert all(a.end == b.start for a, b in pairwise(parts))
        hours = [part for part in parts if part.table is HourCount]
        assert all(minutes.hour_of(at) == at for each in hours for at in each[1:])
        assert all(each.end <= border for each in hours)


def test_beginning_of_an_id_is_its_time():
    for at in (UNTIL, UNTIL + timedelta(milliseconds=65_535), minutes.EPOCH):
        first = minutes.EPOCH + minutes.TICK * int(str(ids.at_least(at))[:8], 16)
        assert first <= at < first + minutes.TICK


def test_statements_do_not_grow(django_assert_num_queries):
    for number in (1, 6):
        for account in range(number):
            moment = UNTIL - timedelta(minutes=20)
            row = {"organization_id": "acme", "at": moment, "test": False, "channel": "SMS"}
            MinuteCount.objects.update_or_create(
                **row, account_id=account, outcome="sent", reason="",
                defaults={"count": 1, "latencies": [1] * 49},
            )  # fmt: skip
        begin(UNTIL - timedelta(minutes=10))
        with django_assert_num_queries(4):
            found = figures.read("acme", test=False)
        assert sum(found.latencies["SMS"]) == 49 * number


def test_every_status_is_in_one_figure():
    shown = Counter(status for statuses in STATUSES.values() for status in statuses)
    assert shown == dict.fromkeys(Status, 1)
    assert set(FIGURE_OF) == set(Status)
