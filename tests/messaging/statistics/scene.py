"""Messages of any minute, stored as accept and the workers would have stored them."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import count as counting
from uuid import UUID

from django.db.models import Sum

from messaging.models import (
    Attempt,
    CountedUntil,
    Delivery,
    Event,
    HourCount,
    Message,
    MinuteCount,
)
from messaging.statistics import minutes
from messaging.store.reports.statistics import NOW as NOW_PREFIX
from rme.core import ids
from rme.core.db import clock, sql

NOW = datetime(2031, 6, 15, 12, 0, 30, tzinfo=UTC)
START = datetime(2031, 6, 15, 11, 0, tzinfo=UTC)
_numbers = counting(1)


def new_id(moment):
    """Return an id of a moment, greater than those before of the same millisecond."""
    return UUID(int=ids.at_least(moment).int + next(_numbers))


def delivery_rows(accepted_at, /, *, status="SENT", organization="acme", test=False, **fields):
    """Return the rows of a message and of a delivery, as dictionaries."""
    message = {
        "id": new_id(accepted_at), "organization_id": organization, "category": "MARKETING",
        "channels": ["EMAIL"], "strategy": "FIRST_REACHABLE", "test": test,
        "created_at": accepted_at,
    }  # fmt: skip
    row = {
        "id": new_id(accepted_at),
        "organization_id": organization,
        "message_id": message["id"],
        "contact_id": "c",
        "position": 0,
        "category": "MARKETING",
        "priority": 1,
        "channels": [],
        "channel": "EMAIL",
        "account_id": None,
        "status": status,
        "scheduled_for": None,
        "expires_at": accepted_at + timedelta(days=1),
        "fence": 0,
        "tries": 0,
        "test": test,
        "updated_at": accepted_at,
        "accepted_at": None,
        "accepted_channel": None,
        **fields,
    }
    return message, row


def delivery(accepted_at, /, **fields):
    """Store a message with one delivery, and return its row as a dictionary."""
    message, row = delivery_rows(accepted_at, **fields)
    sql.insert({Message: [message], Delivery: [row]})
    return row


def event_row(row, kind, at, **detail):
    """Return the row of an event of a delivery."""
    return {
        "id": new_id(at), "organization_id": row["organization_id"],
        "message_id": row["message_id"], "delivery_id": row["id"], "type": kind, "at": at,
        "channel": row["channel"], "detail": detail or None,
    }  # fmt: skip


def event(row, kind, at, **detail):
    """Store an event of a delivery."""
    sql.insert({Event: [event_row(row, kind, at, **detail)]})


def attempt_row(row, outcome, at, account_id=7, sent_at=None):
    """Return the row of an attempt of a delivery."""
    return {
        "id": new_id(at), "organization_id": row["organization_id"],
        "message_id": row["message_id"], "delivery_id": row["id"], "fence": 1,
        "channel": row["channel"], "provider": "p", "account_id": account_id,
        "outcome": outcome, "started_at": at, "sent_at": sent_at,
    }  # fmt: skip


def attempt(row, outcome, at, **fields):
    """Store an attempt of a delivery."""
    sql.insert({Attempt: [attempt_row(row, outcome, at, **fields)]})


def begin(moment=START):
    """Let the job continue at a moment."""
    CountedUntil.objects.update_or_create(
        pk=1, defaults={"first_until": moment, "final_until": moment}
    )


def run(now=NOW):
    """Count until nothing is left; return the number of slices."""
    slices = 0
    while minutes.count_slice(now):
        slices += 1
    return slices


def count():
    """Count all that has happened until now."""
    begin(clock.now().replace(second=0, microsecond=0) - timedelta(minutes=30))
    run(clock.now() + timedelta(minutes=2))


def _happened(model):
    """Return the counts of what happened, without those of statuses."""
    return model.objects.exclude(outcome__startswith=NOW_PREFIX)


def statuses(**where):
    """Return the counts of messages by their status now."""
    rows = HourCount.objects.filter(outcome__startswith=NOW_PREFIX, **where)
    sums = rows.values_list("outcome").annotate(n=Sum("count")).order_by("outcome")
    return {outcome.removeprefix(NOW_PREFIX): count for outcome, count in sums}


def stored(model=MinuteCount):
    """Return all that was counted, by key: how many, and how many of them with a latency."""
    names = ("organization_id", "at", "test", "channel", "account_id", "outcome", "reason")
    return {
        key: (number, sum(latencies or []))
        for *key, number, latencies in _happened(model).values_list(*names, "count", "latencies")
        for key in [tuple(key)]
    }


def totals(model=MinuteCount, **where):
    """Return the counts by outcome."""
    rows = _happened(model).filter(**where).values_list("outcome").annotate(n=Sum("count"))
    return Counter(dict(rows.order_by("outcome")))
