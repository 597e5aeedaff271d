"""Gauges of the deployment: backlogs, ages, and what is behind or waits for a person.

Each count has a limit and is read in the order of an index, and ages are by the database's clock:
what a scrape reads does not grow with the backlog, nor with the messages of the past.
"""

from datetime import datetime

from messaging.domain.channels import Channel
from messaging.domain.statuses import PRIORITIES, Status
from messaging.models import (
    PARTITIONED,
    Attempt,
    CountedUntil,
    Delivery,
    PrivacyRequest,
    WebhookDelivery,
    WebhookEndpoint,
)
from rme.core import ids
from rme.core.db import server, sql
from rme.tenants.models import ApiKey

COUNTED = 10_000
"""The most rows that are counted."""
KEY_EXPIRES_DAYS, KEY_USED_DAYS = 14, 7
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


# Plan (BY_INDEX): delivery_waiting in all partitions, a range for each channel and priority.
# Run by: read_queues, for reports.metrics
READ_READY = f"""SELECT wanted.channel, of.priority, ready.rows, coalesce(ready.age, 0) AS age
FROM {_LINES}, LATERAL (
  SELECT count(*) AS rows, extract(epoch FROM {_NOW} - min(due_at))::float8 AS age
  FROM ({_first("d.due_at", Status.ACCEPTED, f"d.due_at <= {_NOW}")}) r) ready"""
# A delivery that waits for a retry or its rate is due later than now, again and again, so the age
# is counted from acceptance. A pause and a fallback are set by people.
# Plan (BY_INDEX): that of READ_READY.
# Run by: read_queues, for reports.metrics
READ_UNSENT = f"""SELECT wanted.channel, coalesce(unsent.age, 0) AS age
FROM (VALUES {_CHANNELS}) wanted(channel), LATERAL (
  SELECT extract(epoch FROM {_NOW} - min(coalesce(scheduled_for, accepted_at)))::float8 AS age
  FROM ({
    _first("scheduled_for, accepted_at, waiting, accepted_channel", Status.ACCEPTED, priority="0")
}) r WHERE waiting IS DISTINCT FROM 'PAUSED' AND accepted_channel IS NULL) unsent"""
# Plan (BY_INDEX): that of READ_READY.
# Run by: read_queues, for reports.metrics
READ_RELEASED_LATE = f"""SELECT count(*) AS rows FROM (SELECT FROM {_LINES}, LATERAL (
  {_first("", Status.SCHEDULED, f"d.due_at < {_NOW} - {OVERDUE}")}) r LIMIT {COUNTED}) late"""
# Plan (BY_INDEX): delivery_due in all partitions, a range for each status.
# Run by: read_queues, for reports.metrics
READ_SWEPT_LATE = f"""SELECT swept.status, late.rows
FROM (VALUES {", ".join(f"('{each}')" for each in SWEPT)}) swept(status), LATERAL (
  SELECT count(*) AS rows FROM (SELECT FROM {_D} d
    WHERE d.status = swept.status AND d.due_at < {_NOW} - {OVERDUE} AND d.due_at IS NOT NULL
      AND NOT (d.status IN ('ACCEPTED', 'SCHEDULED'))
    ORDER BY d.due_at LIMIT {COUNTED}) r) late"""
# Plan (BY_INDEX): the primary key, from its end, in the partitions since then.
# Run by: read_queues, for reports.metrics
READ_ATTEMPTS = f"""SELECT channel, coalesce(outcome, '') AS outcome, count(*) AS rows
FROM (SELECT channel, outcome FROM {Attempt._meta.db_table} WHERE id >= %(since)s::uuid
  ORDER BY id DESC LIMIT {COUNTED}) r GROUP BY channel, outcome"""

# Plan: reads the default partitions, which are empty.
# Run by: read_lags, for reports.lags
READ_DEFAULTS = " UNION ALL ".join(
    f"(SELECT '{model._meta.db_table}' AS name, count(*) AS rows FROM "
    f"(SELECT FROM {model._meta.db_table}_default LIMIT {COUNTED}) r)"
    for model in PARTITIONED
)
# Plan: delivery_held in all partitions; it is nearly always empty.
# Run by: read_lags, for reports.lags
READ_HELD = f"""SELECT count(*) AS rows FROM (SELECT FROM {Delivery._meta.db_table}
  WHERE status = 'UNKNOWN' AND due_at IS NULL LIMIT {COUNTED}) r"""
# Plan: reads a table of one row.
# Run by: read_lags, for reports.lags
READ_COUNTED_UNTIL = f"""SELECT
  extract(epoch FROM statement_timestamp() - first_until)::float8 AS age
  FROM {CountedUntil._meta.db_table}"""
# Plan: notice_due, one step for each endpoint.
# Run by: read_lags, for reports.lags
READ_WEBHOOKS = f"""SELECT
  coalesce(extract(epoch FROM max(statement_timestamp() - n.due_at)), 0)::float8 AS lag
FROM {WebhookEndpoint._meta.db_table} w, LATERAL (
  SELECT due_at FROM {WebhookDelivery._meta.db_table}
  WHERE endpoint_id = w.id AND due_at <= statement_timestamp() ORDER BY due_at LIMIT 1) n
WHERE w.enabled AND w.failures = 0"""
# Plan: reads all API keys, which are few.
# Run by: read_lags, for reports.lags
READ_KEYS = f"""SELECT count(*) AS rows FROM {ApiKey._meta.db_table}
WHERE revoked_at IS NULL AND expires_at > statement_timestamp()
  AND expires_at < statement_timestamp() + interval '{KEY_EXPIRES_DAYS} days'
  AND last_used_at > statement_timestamp() - interval '{KEY_USED_DAYS} days'"""
# Plan: privacy_request_due, which has the unfinished ones alone.
# Run by: read_lags, for reports.lags
READ_PRIVACY = f"""SELECT count(*) AS rows FROM (SELECT FROM {PrivacyRequest._meta.db_table}
  WHERE state IN ('OPEN', 'RUNNING') AND due_at < statement_timestamp() LIMIT {COUNTED}) r"""
# Plan: reads no table.
# Run by: read_lags, for reports.lags
READ_STARTED = f"""SELECT extract(epoch FROM at)::float8 AS at, is_after_crash
FROM ({server.LAST_START}) l"""


def read_queues(since: datetime) -> list[sql.Rows]:
    """Read the backlog, and the attempts since a time, by one statement. For /metrics.

    Return rows of what is ready (channel, priority, count, age of the oldest), unsent (channel,
    age), released late (count), swept late (status, count), and attempts (channel, outcome, count).
    """
    return sql.read(
        [
            sql.Step(READ_READY, [], sql.BY_INDEX),
            *map(sql.Step, (READ_UNSENT, READ_RELEASED_LATE, READ_SWEPT_LATE)),
            sql.bind(READ_ATTEMPTS, {"since": str(ids.at_least(since))}),
        ]
    )


def read_lags() -> list[sql.Rows]:
    """Read what is behind, by one statement.

    Return the rows of each statement, in the order in which they stand above.
    """
    steps = (READ_DEFAULTS, READ_HELD, READ_COUNTED_UNTIL, READ_WEBHOOKS)
    return sql.read([*map(sql.Step, (*steps, READ_KEYS, READ_PRIVACY, READ_STARTED))])
