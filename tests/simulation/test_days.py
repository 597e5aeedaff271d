"""Days of messages in partitions by day: all goes in its time, and nothing costs more each day."""

from datetime import timedelta

import pytest

from messaging.models import Message
from messaging.store.retention import job
from tests.simulation import calls, days, plans

pytestmark = pytest.mark.django_db(transaction=True)

DAYS, MESSAGE_DAYS, CONTENT_DAYS = 7, 2, 1
STEADY = 5
"""From this day on as many partitions are dropped as created."""
SENT_AFTER = 3
COUNT = 600


def test_days_pass_and_neither_rows_nor_partitions_nor_plans_grow(org, monkeypatch):
    assert org.pk == days.ORGANIZATION
    monkeypatch.setattr(job, "TURN_SECONDS", 600.0)  # no run is short of time
    monkeypatch.setattr(job, "CONTENT_SECONDS", 600.0)
    first, counts, stored, readings = days.first_of(DAYS), [], [], {}
    with days.partitions_by_day(messages=MESSAGE_DAYS, contents=CONTENT_DAYS):
        days.create_ahead(first)
        for number in range(1, DAYS + 1):
            day = first + timedelta(days=number - 1)
            days.fill(day, COUNT)
            ended = days.end_live(day - timedelta(days=SENT_AFTER), day)
            assert ended == (days.LIVE + days.HELD if number > SENT_AFTER else 0)
            days.run_jobs(day + timedelta(days=1))
            assert (days.in_default(), days.incomplete()) == (0, 0)
            assert set(days.past_retention(day + timedelta(days=1)).values()) == {0}
            assert number == 1 or days.counted(day - timedelta(days=1)) == COUNT
            counts.append(len(days.leaves()))
            stored.append(Message.objects.count())
            if number in (STEADY, DAYS):
                own = calls.hot_calls().items()
                readings[number] = {name: plans.read_by(call) for name, call in own}
    assert len(set(counts[STEADY - 1 :])) == 1
    # the live ones of a day stay for SENT_AFTER days, and for MESSAGE_DAYS from then on
    assert stored[-1] == (MESSAGE_DAYS) * COUNT + (SENT_AFTER) * (days.LIVE + days.HELD)
    for name, late in readings[DAYS].items():
        steady = readings[STEADY][name]
        assert late.partitions <= steady.partitions, name
        assert late.blocks <= steady.blocks + steady.blocks // 4 + 40, name
        assert late.nodes == steady.nodes or name in calls.BY_STATISTICS, name
