"""Random histories in the database: each delivery is in one figure, and in the list behind it."""

import random
from collections import Counter
from datetime import timedelta
from typing import Any, NamedTuple

import pytest

from messaging.domain.figures import STATUSES, Figure
from messaging.domain.statuses import Status
from messaging.models import Attempt, Delivery, Event, Message
from messaging.reports import delivery_list
from messaging.statistics import figures, minutes
from messaging.store.reports.deliveries import DeliveryFilter
from rme.core.db import sql
from tests.messaging.domain.test_figures import HISTORIES, history
from tests.messaging.statistics.scene import (
    NOW,
    attempt_row,
    begin,
    delivery_rows,
    event_row,
    run,
)

pytestmark = pytest.mark.django_db
UNTIL = NOW.replace(second=0)
ROUNDS, ROUND = 3, timedelta(minutes=40)
START = UNTIL - ROUNDS * ROUND
CHANNELS = ("EMAIL", "SMS")
EVENTS = {
    Status.SENT: "sent",
    Status.DELIVERED: "delivered",
    Status.FAILED: "failed",
    Status.BLOCKED: "blocked",
    Status.EXPIRED: "expired",
    Status.CANCELLED: "cancelled",
}
"""The event of each change. One to ACCEPTED has one after SENT: the fallback; others have none."""


class Change(NamedTuple):
    """A delivery gets a status; its first one when its message is accepted."""

    at: Any
    row: dict[str, Any]
    status: Status
    message: dict[str, Any] | None = None


def changes_of(chance, count):
    """Return the changes of random histories of deliveries, in order of time."""
    changes = []
    for _ in range(count):
        at = START + chance.random() * (UNTIL - START)
        channel, is_test = chance.choice(CHANNELS), chance.random() < 0.05
        message, row = delivery_rows(at, channel=channel, test=is_test)
        for place, status in enumerate(history(chance)):
            at += chance.random() * (UNTIL - at) if place else timedelta()
            changes.append(Change(at, row, status, None if place else message))
    return sorted(changes, key=lambda change: change.at)


def store(changes, chance):
    """Store what accept, workers and callbacks would have stored of changes."""
    new, old, events, attempts = {}, {}, [], []
    for at, row, status, message in changes:
        is_fallback = not message and (row["status"], status) == (Status.SENT, Status.ACCEPTED)
        kind = "fallback" if is_fallback else EVENTS.get(status)
        row["status"] = status
        if message:
            new[row["id"]] = message, row
        elif row["id"] not in new:
            old[row["id"]] = status
        if status == Status.SENT and chance.random() < 0.5:
            attempts.append(attempt_row(row, "Accepted", at, sent_at=at))
        elif kind:
            events.append(event_row(row, kind, at))
    messages, rows = zip(*new.values(), strict=True)
    sql.insert({Message: messages, Delivery: rows})
    sql.insert({Event: events, Attempt: attempts})
    for status in Status:
        keys = [key for key, following in old.items() if following == status]
        Delivery.objects.filter(pk__in=keys).update(status=status)
    return rows


def listed(span, figure):
    """Return all rows of the list behind a figure, page by page."""
    query = DeliveryFilter(since=span.start, until=span.end, test=False, statuses=STATUSES[figure])
    page = delivery_list.find("acme", query, limit=1000)
    rows = list(page.rows)
    while page.following:
        page = delivery_list.find("acme", query, limit=1000, cursor=page.following)
        rows += page.rows
    return rows


def test_each_of_10000_histories_is_in_one_figure_and_in_its_list():
    chance = random.Random(35)
    changes = changes_of(chance, HISTORIES)
    begin(START)
    accepted = []
    for number in range(1, ROUNDS + 1):
        end = START + number * ROUND
        stored = [change for change in changes if end - ROUND <= change.at < end]
        accepted += [row for row in store(stored, chance) if not row["test"]]
        run(end + minutes.GRACE)
        statistics = figures.read("acme", test=False)
        lists = {figure: listed(statistics.span, figure) for figure in Figure}
        assert Counter(row.id for rows in lists.values() for row in rows) == Counter(
            row["id"] for row in accepted
        )
        assert {name: shown.counts for name, shown in statistics.current.channels.items()} == {
            name: {
                figure: sum(row.channel == name for row in rows) for figure, rows in lists.items()
            }
            for name in CHANNELS
        }
    assert {row["status"] for row in accepted} == set(Status)
