"""Reading figures: each period equals a count of its minutes, whatever table answers."""

import random
from collections import Counter
from datetime import timedelta
from itertools import pairwise

import pytest

from messaging.models import HourCount, MinuteCount
from messaging.statistics import figures, minutes
from messaging.statistics.figures import TimeRange
from tests.messaging.statistics.scene import NOW, attempt, begin, delivery, event, run, totals

pytestmark = pytest.mark.django_db
HOUR, WEEK = timedelta(hours=1), timedelta(days=7)
UNTIL = NOW.replace(second=0)


def fill(moments, *, test=False, organization="acme"):
    """Store a sent and a failed delivery at each moment."""
    for at in moments:
        row = delivery(at, account_id=3, test=test, organization=organization)
        event(row, "accepted", at)
        event(row, "sent", at + timedelta(milliseconds=100))
        event(row, "failed", at, reason="TEMPLATE_ERROR")
        attempt(row, "Accepted", at, account_id=3)
        attempt(row, "Retryable", at, account_id=3)


def counted(moments):
    """Count all minutes of the moments, an hour of them at a time, until now."""
    for hour in sorted({minutes.hour_of(at) for at in moments}):
        begin(hour)
        minutes_left = True
        while minutes_left:
            minutes_left = minutes.count_slice(hour + HOUR + timedelta(minutes=11))
    begin(minutes.hour_of(NOW - HOUR))
    run()


def test_before_the_first_run_there_are_no_statistics():
    assert figures.read("acme", test=False) is None


def test_periods_are_counted_to_the_minute():
    chance = random.Random(3)
    ages = [HOUR * age for age in (0.5, 1.5, 23.7, 24.4, 80, 160, 167.9, 168.2, 169, 191, 200)]
    moments = [UNTIL - age - timedelta(seconds=chance.randint(0, 50)) for age in ages]
    fill(moments)
    fill(moments[:2], test=True)
    fill(moments[:3], organization="other")
    counted(moments)
    found = figures.read("acme", test=False)
    assert (found.until, list(found.periods)) == (UNTIL, ["1 h", "24 h", "7 d"])
    for name, period in found.periods.items():
        for shown, (start, end) in (
            (found.current[name], period),
            (found.before[name], period.earlier(WEEK)),
        ):
            inside = sum(start <= at < end for at in moments)
            counts = {each: inside for each in ("accepted", "failed", "sent") if inside}
            assert (name, {c: each.counts for c, each in shown.items()}) == (
                name, {"EMAIL": counts} if inside else {}
            )  # fmt: skip
            if inside:
                assert sum(shown["EMAIL"].latencies) == inside
                assert 90 < shown["EMAIL"].latency(0.5) < 129
    assert found.reasons == [("EMAIL", "failed", "TEMPLATE_ERROR", 3)]
    test = figures.read("acme", test=True)
    assert test.current["1 h"]["EMAIL"].counts == {"accepted": 1, "sent": 1, "failed": 1}
    assert (test.accounts, test.before["7 d"]) == ({}, {})


def test_hours_of_channels_and_accounts_are_their_minutes():
    moments = [UNTIL - HOUR * age - timedelta(minutes=7) for age in (0, 0.2, 3, 22.5, 23.5)]
    fill(moments)
    counted(moments)
    found = figures.read("acme", test=False)
    starts = figures.last_hours(UNTIL)
    assert (len(starts), starts[-1]) == (24, UNTIL - HOUR)
    expected = Counter(minutes.hour_of(at) for at in moments)
    for strip in (found.channels["EMAIL"], found.accounts[3]):
        assert [each.at for each in strip] == starts
    assert [each.counts.get("accepted", 0) for each in found.channels["EMAIL"]] == [
        expected[at] for at in starts
    ]
    assert [(each.answered, each.success) for each in found.accounts[3]] == [
        (2 * expected[at], 0.5 if expected[at] else None) for at in starts
    ]


def test_pieces_cover_a_period_exactly_once():
    chance = random.Random(1)
    for _ in range(200):
        end = UNTIL - timedelta(minutes=chance.randint(0, 3000))
        period = TimeRange(end - timedelta(minutes=chance.randint(1, 12_000)), end)
        border = minutes.hour_of(UNTIL - timedelta(minutes=chance.randint(0, 200)))
        pieces = figures._pieces(0, period, border, UNTIL - timedelta(days=30))
        assert (pieces[0].start, pieces[-1].end) == period
        assert all(a.end == b.start for a, b in pairwise(pieces))
        hours = [piece for piece in pieces if piece.table is HourCount]
        assert all(minutes.hour_of(at) == at for each in hours for at in each[2:])
        assert all(each.end <= border for each in hours)


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
        with django_assert_num_queries(3):
            found = figures.read("acme", test=False)
        assert found.current["1 h"]["SMS"].counts == totals() == {"sent": number}
