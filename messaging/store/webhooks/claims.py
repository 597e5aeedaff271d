"""Claims of endpoints' queues, and the results of attempts.

A worker claims an endpoint's queue as a whole, by compare-and-set with a lease: no other worker
sends to that endpoint meanwhile, and what a dead worker had in flight is sent again after its
lease. After a failure the whole queue waits.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple

import orjson

from messaging.domain.webhooks import (
    DISABLE_AFTER,
    GIVE_UP,
    ClaimedQueue,
    DeliveryResult,
    DueWebhookDelivery,
    EndpointResult,
)
from messaging.models import WebhookDelivery, WebhookEndpoint
from messaging.store import encodings
from messaging.store.webhooks import contents
from rme.core import ids
from rme.core.db import sql
from rme.core.db.due import is_due, is_served

PAGE = 100
"""The most deliveries claimed with an endpoint; then it is released, for any worker to claim."""
STEPS = 1000
"""A claim looks at no more endpoints on either side of its start."""
CANDIDATES = 4
"""It looks for so many times the endpoints that it needs: others may claim some of them first."""

_N, _W = WebhookDelivery._meta.db_table, WebhookEndpoint._meta.db_table
_PENDING = f"SELECT endpoint_id FROM {_N} WHERE due_at IS NOT NULL"
"""Endpoints with deliveries that are not finished. The index is notice_due: each step of what
follows is one look into it, however many deliveries an endpoint has."""


def _next(condition: str, order: str = "") -> str:
    """Return the query for the first such endpoint that meets a condition."""
    return f"{_PENDING} AND endpoint_id {condition} ORDER BY endpoint_id {order} LIMIT 1"


def _walk(name: str, first: str) -> str:
    """Return the table `name` for WITH RECURSIVE: such endpoints in the order of their ids."""
    return f"""{name} AS (
  SELECT first.endpoint_id, 1 AS step FROM start, LATERAL ({_next(first)}) first
  UNION ALL
  SELECT following.endpoint_id, step + 1 FROM start, {name}, LATERAL (
    {_next(f"> {name}.endpoint_id AND endpoint_id {first}")}) following
  WHERE step < {STEPS})"""


# Ids may come from several ranges (`ids.KEY_RANGE`): an organization that moves keeps its ids. So a
# range is drawn first, and then an id between the least and the greatest in it. (With ORDER BY
# random() PostgreSQL would take the value that a row was sorted by for the other random() too.)
_START = f"""ranges AS (
  SELECT least.endpoint_id AS least, greatest.endpoint_id AS greatest
  FROM ({_PENDING} ORDER BY endpoint_id LIMIT 1) least, LATERAL (
    {_next(f"< (least.endpoint_id / {ids.KEY_RANGE} + 1) * {ids.KEY_RANGE}", "DESC")}) greatest
  UNION ALL
  SELECT least.endpoint_id, greatest.endpoint_id
  FROM ranges, LATERAL ({_next("> ranges.greatest")}) least, LATERAL (
    {_next(f"< (least.endpoint_id / {ids.KEY_RANGE} + 1) * {ids.KEY_RANGE}", "DESC")}) greatest
), start AS MATERIALIZED (
  SELECT least + floor(random() * (greatest - least + 1))::bigint AS id
  FROM ranges LIMIT 1 OFFSET floor(random() * (SELECT count(*) FROM ranges))::bigint
)"""
# Workers side by side start at different endpoints, so that all are served, and claim them in the
# order of the walks (OFFSET 0 keeps the planner from another). A claim costs the same however many
# wait: the walks are read no further than to the limit. They are an array before any row is locked,
# since PostgreSQL repeats the joins of a row that another worker has just changed, and with a
# recursive query among them that does not end.
#
# Plan: notice_due and the primary key of endpoints, one step for each.
# Run by: claim, for webhooks.outbox
CLAIM = f"""
WITH RECURSIVE {_START}, {_walk("after", ">= start.id")}, {_walk("before", "< start.id")},
picked AS (
  SELECT w.id FROM unnest(ARRAY(
    SELECT free.id
    FROM (SELECT endpoint_id FROM after UNION ALL SELECT endpoint_id FROM before) step, LATERAL (
      SELECT id FROM {_W} w
      WHERE {sql.by_key("w.id", "step.endpoint_id")} AND w.enabled
        AND {is_due("w", at="free_at")}
        AND EXISTS (
          SELECT FROM {_N} n WHERE n.endpoint_id = w.id AND n.due_at <= statement_timestamp())
      OFFSET 0) free
    LIMIT {CANDIDATES} * %(limit)s)) WITH ORDINALITY candidate(id, place)
  JOIN {_W} w ON {sql.by_key("w.id", "candidate.id")}
  WHERE w.enabled AND w.free_at <= statement_timestamp()
  ORDER BY candidate.place LIMIT %(limit)s FOR UPDATE OF w SKIP LOCKED
), claimed AS (
  UPDATE {_W} w SET fence = w.fence + 1,
    free_at = statement_timestamp() + make_interval(secs => %(lease)s)
  FROM picked WHERE {sql.by_key("w.id", "picked.id")} RETURNING w.id, w.fence
)
SELECT id, fence FROM claimed
"""
# A statement of its own, since it reads messages: docs/architecture.md, "Locks and pruning".
# `:trace` is a message's trace context.
#
# Plan: notice_due, one range for each endpoint, then the primary keys.
# Run by: claim, for webhooks.outbox
READ_DUE = f"""
SELECT claimed.id, claimed.fence, n.id, n.tries, n.attempts,
  n.noted_at <= statement_timestamp() - make_interval(secs => %(give_up)s), :trace,
  {contents.COLUMNS}
FROM unnest(%(endpoints)s::bigint[], %(fences)s::int[]) claimed(id, fence) CROSS JOIN LATERAL (
  SELECT * FROM {_N} WHERE endpoint_id = claimed.id AND due_at <= statement_timestamp()
  ORDER BY due_at LIMIT {PAGE}
) n {contents.JOINS}
ORDER BY claimed.id, n.due_at, n.id
"""
_FAILED_TOO_LONG = (
    "(r.failures > 0 AND NOT r.succeeded AND w.failing_since IS NOT NULL AND "
    f"w.failing_since <= statement_timestamp() - interval '{DISABLE_AFTER.days} days')"
)
# Plan: the primary keys of both.
# Run by: record, for webhooks.outbox
RECORD = f"""
WITH attempted AS (
  UPDATE {_N} n SET status = r.status, tries = n.tries + 1, attempts = r.attempts,
    due_at = CASE r.status WHEN 'PENDING' THEN
      statement_timestamp() + make_interval(secs => r.wait) END
  FROM json_to_recordset(%(deliveries)s) r(id bigint, status varchar, wait float8, attempts jsonb)
  WHERE n.id = r.id AND (n.status = 'PENDING' OR r.status = 'DELIVERED')
    AND {is_served("n.organization_id", leaving=True)}
)
UPDATE {_W} w SET
  free_at = statement_timestamp() + make_interval(secs => r.wait),
  failures = r.failures,
  failing_since = CASE WHEN r.failures = 0 THEN NULL WHEN r.succeeded THEN statement_timestamp()
    ELSE coalesce(w.failing_since, statement_timestamp()) END,
  last_success_at = CASE WHEN r.succeeded THEN statement_timestamp() ELSE w.last_success_at END,
  enabled = w.enabled AND NOT r.gone AND NOT {_FAILED_TOO_LONG},
  disabled_reason = CASE WHEN NOT w.enabled THEN w.disabled_reason
    WHEN r.gone THEN 'It answered 410: gone.'
    WHEN {_FAILED_TOO_LONG} THEN 'It failed for {DISABLE_AFTER.days} days.' ELSE '' END
FROM json_to_recordset(%(endpoints)s)
  r(id bigint, fence int, wait float8, failures int, succeeded boolean, gone boolean)
WHERE w.id = r.id AND w.fence = r.fence
RETURNING w.id, w.organization_id, w.enabled
"""


class ReleasedEndpoint(NamedTuple):
    """An endpoint whose claim has ended."""

    id: int
    organization_id: str
    enabled: bool


def claim(limit: int, lease_seconds: float) -> list[ClaimedQueue]:
    """Claim the queues of at most `limit` endpoints, in two statements. For the dispatcher."""
    claimed = sql.fetch(CLAIM, {"limit": limit, "lease": lease_seconds})
    if not claimed:
        return []
    values = {
        "endpoints": [endpoint_id for endpoint_id, _ in claimed],
        "fences": [fence for _, fence in claimed],
        "give_up": GIVE_UP.total_seconds(),
    }
    rows = sql.fetch(READ_DUE.replace(":trace", encodings.trace_context("m.id")), values)
    return [
        ClaimedQueue(endpoint_id, fence, [_due(*row[2:]) for row in group])
        for (endpoint_id, fence), group in groupby(rows, lambda row: (row[0], row[1]))
    ]


def _due(
    delivery_id: int,
    tries: int,
    attempts: str | None,
    is_last_attempt: bool,
    traceparent: str | None,
    *columns: Any,
) -> DueWebhookDelivery:
    return DueWebhookDelivery(
        delivery_id,
        contents.event_of(columns),
        tries,
        tuple(orjson.loads(attempts)) if attempts else (),
        is_last_attempt,
        traceparent or "",
    )


def record(
    delivered: Sequence[DeliveryResult], released: Sequence[EndpointResult]
) -> list[ReleasedEndpoint]:
    """Record results of deliveries, and release endpoints, by one statement. For the dispatcher.

    A late worker may record results, but not release the endpoint. During the pause of a move and
    after it neither is recorded: these deliveries are sent again where the organization is.
    """
    values = {
        "deliveries": sql.as_json([result._asdict() for result in delivered]),
        "endpoints": sql.as_json([result._asdict() for result in released]),
    }
    return [ReleasedEndpoint(*row) for row in sql.fetch(RECORD, values)]
