"""Contents go with the partitions of their day; those that are still needed are carried over."""

from datetime import timedelta
from time import monotonic

import pytest

from messaging.models import Delivery, MessageContent
from messaging.store import retention
from messaging.store.retention import job, live_contents
from rme.core import ids
from rme.core.db import partitions
from tests.messaging.store.retention.retention_scene import (
    CONTENTS,
    NOW,
    at,
    days,
    kept,
    names_of_contents,
    query,
    store,
)

pytestmark = pytest.mark.django_db(transaction=True)


def test_day_of_contents_is_dropped_and_needed_ones_are_carried_over():
    """NOW is 15 June, so that contents of 15 May have 30 days behind them, and of 16 May not."""
    days(at(2031, 5, 14), at(2031, 5, 15), at(2031, 5, 16))
    for hour in range(3):
        store(at(2031, 5, 14) + timedelta(hours=hour))
        store(at(2031, 5, 15) + timedelta(hours=hour))
    live = store(at(2031, 5, 14), "SCHEDULED", due_at=at(2031, 9, 1), number=1)
    changed = store(at(2031, 5, 15), moved=NOW - timedelta(days=3), number=1)
    fresh = store(at(2031, 5, 16))
    contents = dict(MessageContent.objects.values_list("pk", "body"))
    retention.apply(now=NOW)
    assert dict(MessageContent.objects.values_list("pk", "body")) == {
        key: contents[key] for key in (live, changed, fresh)
    }
    assert names_of_contents() == ["20310516"]
    assert set(query(f"SELECT id FROM {CONTENTS}_kept")) == {(live,), (changed,)}
    Delivery.objects.filter(message_id=live).update(status="SENT", due_at=None)
    retention.apply(now=NOW + timedelta(hours=1))
    assert kept(MessageContent) == {changed, fresh}
    retention.apply(now=NOW + timedelta(days=40))
    assert kept(MessageContent) == set()
    assert query("SELECT relname FROM pg_class WHERE relname ~ '_live$'") == []


def test_search_out_of_time_is_continued():
    days(at(2031, 5, 14))
    store(at(2031, 5, 14))
    live = store(at(2031, 5, 14), "SCHEDULED", due_at=at(2031, 9, 1), number=1)
    past = partitions.past([CONTENTS], before=NOW)  # others may have those of weeks to come
    (part,) = [each for each in past if f"{each.start:%Y%m%d}" == "20310514"]
    condition, values = job._RETAINED, job._retained(NOW)
    assert live_contents.find(part, condition, values, until=0.0) is None
    start = ids.at_least(part.start + timedelta(hours=18))  # as if a run had ended there
    query(f"INSERT INTO {part.name}_live VALUES (%s, %s)", start, live)
    Delivery.objects.all().delete()
    later = monotonic() + 60
    assert live_contents.find(part, condition, values, later) == [live]
    live_contents.clear(part)


def test_partition_with_too_many_needed_contents_is_kept(monkeypatch):
    monkeypatch.setattr(live_contents, "LIMIT", 1)
    days(at(2031, 5, 14))
    ended = store(at(2031, 5, 14))
    live = {
        store(at(2031, 5, 14), "SCHEDULED", due_at=at(2031, 9, 1), number=number)
        for number in (1, 2)
    }
    retention.apply(now=NOW)
    assert (kept(MessageContent), ended in live) == (live, False)
    assert names_of_contents() == ["20310514"]
