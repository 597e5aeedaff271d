"""Prometheus metrics that are read from the database, for the whole deployment.

They name no organization. PostgreSQL knows the exact backlog of all processes, while a counter in
each process would have to be summed and would be lost with it.

SQL, because each count has a limit and is read in the order of an index: what a scrape reads does
not grow with the backlog, nor with the messages of the past.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from prometheus_client.core import Metric

from messaging.models import Attempt, Delivery
from messaging.models.statuses import PRIORITIES, Status
from messaging.reports import lags
from messaging.reports.lags import COUNTED, Values, gauge
from rme.core import ids
from rme.core.channels import Channel
from rme.core.db import sql

PERIOD = timedelta(minutes=5)
OVERDUE = "interval '10 seconds'"
SWEPT = (Status.SENDING, Status.UNKNOWN, Status.SENT)
"""The statuses whose `due_at` the sweeper looks at, by the index `delivery_due`."""

_D = Delivery._meta.db_table
_NOW = "statement_timestamp()"
_CHANNELS = ", ".join(f"('{channel}')" for channel in Channel)
_PRIORITIES = ", ".join(f"({priority})" for priority in PRIORITIES)
_LINES = f"(VALUES {_CHANNELS}) wanted(channel), (VALUES {_PRIORITIES}) of(priority)"


def _first(
    columns: str, status: Status, condition: str = "true", priority: str = "of.priority"
) -> str:
    """Return the query of the first due deliveries of a channel and priority; the index is
    delivery_waiting.
    """
    return f"""SELECT {columns} FROM {_D} d
  WHERE d.status = '{status}' AND d.channel = wanted.channel AND d.priority = {priority}
    AND d.due_at IS NOT NULL AND {condition}
  ORDER BY d.due_at NULLS FIRST LIMIT {COUNTED}"""


_READY = f"""SELECT wanted.channel, of.priority, ready.rows, coalesce(ready.age, 0) AS age
FROM {_LINES}, LATERAL (
  SELECT count(*) AS rows, extract(epoch FROM {_NOW} - min(due_at))::float8 AS age
  FROM ({_first("d.due_at", Status.ACCEPTED, f"d.due_at <= {_NOW}")}) r) ready"""
# What waits for another try or its rate is due later than now, again and again, so the age is that
# since acceptance. A pause and a fallback are set by people.
_UNSENT = f"""SELECT wanted.channel, coalesce(unsent.age, 0) AS age
FROM (VALUES {_CHANNELS}) wanted(channel), LATERAL (
  SELECT extract(epoch FROM {_NOW} - min(coalesce(scheduled_for, accepted_at)))::float8 AS age
  FROM ({
    _first("scheduled_for, accepted_at, waiting, accepted_channel", Status.ACCEPTED, priority="0")
}) r WHERE waiting IS DISTINCT FROM 'PAUSED' AND accepted_channel IS NULL) unsent"""
_RELEASED_LATE = f"""SELECT count(*) AS rows FROM (SELECT FROM {_LINES}, LATERAL (
  {_first("", Status.SCHEDULED, f"d.due_at < {_NOW} - {OVERDUE}")}) r LIMIT {COUNTED}) late"""
_SWEPT_LATE = f"""SELECT swept.status, late.rows
FROM (VALUES {", ".join(f"('{each}')" for each in SWEPT)}) swept(status), LATERAL (
  SELECT count(*) AS rows FROM (SELECT FROM {_D} d
    WHERE d.status = swept.status AND d.due_at < {_NOW} - {OVERDUE} AND d.due_at IS NOT NULL
      AND NOT (d.status IN ('ACCEPTED', 'SCHEDULED'))
    ORDER BY d.due_at LIMIT {COUNTED}) r) late"""
_ATTEMPTS = f"""SELECT channel, coalesce(outcome, '') AS outcome, count(*) AS rows
FROM (SELECT channel, outcome FROM {Attempt._meta.db_table} WHERE id >= %s::uuid
  ORDER BY id DESC LIMIT {COUNTED}) r GROUP BY channel, outcome"""


def collect() -> Iterator[Metric]:
    """Return the gauges, by four statements. Raises django.db.Error."""
    since = ids.at_least(datetime.now(UTC) - PERIOD)
    ready, unsent, released, swept, attempts = sql.read(
        [
            sql.Step(_READY, [], sql.BY_INDEX),
            sql.Step(_UNSENT, []),
            sql.Step(_RELEASED_LATE, []),
            sql.Step(_SWEPT_LATE, []),
            sql.Step(_ATTEMPTS, [str(since)]),
        ]
    )
    yield from _ready(ready)
    yield gauge(
        "rme_transactional_oldest_seconds",
        "How long ago the oldest TRANSACTIONAL delivery was accepted that has not gone, of those "
        f"that no pause covers and that did not fall back; of the first {COUNTED}.",
        {(channel,): age for channel, age in unsent},
        "channel",
    )
    late: Values = {(Status.SCHEDULED.value,): released[0][0]}
    late |= {(status,): rows for status, rows in swept}
    yield gauge(
        "rme_deliveries_overdue",
        "Deliveries that the sweep should have looked after more than ten seconds ago, "
        f"up to {COUNTED} of a status.",
        late,
        "status",
    )
    yield gauge(
        "rme_recent_attempts",
        f"The newest {COUNTED} attempts of the last five minutes, by their outcome; "
        "none: not known yet.",
        {(channel, outcome): rows for channel, outcome, rows in attempts},
        "channel",
        "outcome",
    )
    yield from lags.collect()


def _ready(rows: sql.Rows) -> Iterator[Metric]:
    """Return the backlog of every channel and priority, also if it is 0: alerts need the data."""
    labels = ("channel", "priority")
    text = f"Deliveries that are ready and have not gone, up to {COUNTED}."
    counts: Values = {(channel, str(priority)): count for channel, priority, count, _ in rows}
    yield gauge("rme_deliveries_ready", text, counts, *labels)
    ages: Values = {(channel, str(priority)): age for channel, priority, _, age in rows}
    text = "How long the oldest has been ready."
    yield gauge("rme_deliveries_ready_oldest_seconds", text, ages, *labels)
