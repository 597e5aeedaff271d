"""The outbox of webhook deliveries: claiming what is due, and recording results.

A worker claims an endpoint's queue as a whole, by compare-and-set with a lease: no other worker
sends to that endpoint meanwhile, and what a dead worker had in flight is sent again after its
lease. After a failure the whole queue waits.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import groupby
from time import monotonic
from typing import Any, NamedTuple, TypedDict
from uuid import UUID

import orjson
import structlog
from django.db import connection

from messaging.models import WebhookDelivery, WebhookEndpoint
from messaging.telemetry import spans
from messaging.webhooks import payloads
from messaging.webhooks.payloads import PayloadColumns
from rme.core.db import sql
from rme.tenants import cells

log = structlog.get_logger(__name__)

PAGE = 100
"""The most deliveries claimed with an endpoint; then it is released, for any worker to claim."""
STEPS = 1000
"""A claim looks at no more endpoints on either side of its start."""
CANDIDATES = 4
"""It looks for so many times the endpoints that it needs: others may claim some of them first."""
LEASE_SECONDS = 60.0
"""After this a worker is thought dead; a request and the run that it is made in take less."""
GIVE_UP = timedelta(days=4)
"""A delivery this old is not tried again: its attempts take a little more than three days."""
DISABLE_AFTER = timedelta(days=5)
"""An endpoint that has failed for this time, without a success, is disabled."""

_N, _W = WebhookDelivery._meta.db_table, WebhookEndpoint._meta.db_table
_PENDING = f"SELECT endpoint_id FROM {_N} WHERE due_at IS NOT NULL"
"""Endpoints with deliveries that are not finished. The index is notice_due: each step of what
follows is one look into it, however many deliveries an endpoint has."""


def _next(where: str, order: str = "") -> str:
    """Return the query for the first such endpoint that meets a condition."""
    return f"{_PENDING} AND endpoint_id {where} ORDER BY endpoint_id {order} LIMIT 1"


def _walk(name: str, first: str) -> str:
    """Return the table `name` for WITH RECURSIVE: such endpoints in the order of their ids."""
    return f"""{name} AS (
  SELECT first.endpoint_id, 1 AS step FROM start, LATERAL ({_next(first)}) first
  UNION ALL
  SELECT following.endpoint_id, step + 1 FROM start, {name}, LATERAL (
    {_next(f"> {name}.endpoint_id AND endpoint_id {first}")}) following
  WHERE step < {STEPS})"""


# The ids of each cell are a range of their own, and an organization that moves keeps its ids. So a
# range is drawn first, and then an id between the least and the greatest in it. (With ORDER BY
# random() PostgreSQL would take the value that a row was sorted by for the other random() too.)
_START = f"""ranges AS (
  SELECT least.endpoint_id AS least, greatest.endpoint_id AS greatest
  FROM ({_PENDING} ORDER BY endpoint_id LIMIT 1) least, LATERAL (
    {_next(f"< (least.endpoint_id / {cells.KEY_RANGE} + 1) * {cells.KEY_RANGE}", "DESC")}) greatest
  UNION ALL
  SELECT least.endpoint_id, greatest.endpoint_id
  FROM ranges, LATERAL ({_next("> ranges.greatest")}) least, LATERAL (
    {_next(f"< (least.endpoint_id / {cells.KEY_RANGE} + 1) * {cells.KEY_RANGE}", "DESC")}) greatest
), start AS MATERIALIZED (
  SELECT least + floor(random() * (greatest - least + 1))::bigint AS id
  FROM ranges LIMIT 1 OFFSET floor(random() * (SELECT count(*) FROM ranges))::bigint
)"""
# Workers side by side start at different endpoints, so that all are served, and claim them in the
# order of the walks (OFFSET 0 keeps the planner from another). A claim costs the same however many
# wait: the walks are read no further than to the limit. They are an array before any row is locked,
# since PostgreSQL repeats the joins of a row that another worker has just changed, and with a
# recursive query among them that does not end. `:trace` is a message's trace context.
_CLAIM = f"""
WITH RECURSIVE {_START}, {_walk("after", ">= start.id")}, {_walk("before", "< start.id")},
picked AS (
  SELECT w.id FROM unnest(ARRAY(
    SELECT free.id
    FROM (SELECT endpoint_id FROM after UNION ALL SELECT endpoint_id FROM before) step, LATERAL (
      SELECT id FROM {_W} w
      WHERE {sql.by_key("w.id", "step.endpoint_id")} AND w.enabled
        AND w.free_at <= statement_timestamp() AND {cells.here("w.organization_id")} AND EXISTS (
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
SELECT claimed.id, claimed.fence, n.id, n.tries, n.attempts,
  n.noted_at <= statement_timestamp() - make_interval(secs => %(give_up)s), :trace,
  {payloads.COLUMNS}
FROM claimed CROSS JOIN LATERAL (
  SELECT * FROM {_N} WHERE endpoint_id = claimed.id AND due_at <= statement_timestamp()
  ORDER BY due_at LIMIT {PAGE}
) n {payloads.JOINS}
ORDER BY claimed.id, n.due_at, n.id
"""


class AttemptEntry(TypedDict):
    """One attempt of a webhook delivery, as `WebhookDelivery.attempts` stores it."""

    at: str | None
    status: int | None
    ms: int
    error: str | None
    answer: str | None


class _ClaimedRow(NamedTuple):
    """A row of the claim."""

    endpoint_id: int
    fence: int
    id: int
    tries: int
    attempts: str | None
    is_last_attempt: bool
    traceparent: str | None
    payload: PayloadColumns

    @classmethod
    def of(cls, row: Sequence[Any]) -> "_ClaimedRow":
        """Build it from the columns of the statement."""
        payload = PayloadColumns(*row[_OWN_COLUMNS:])
        return cls._make([*row[:_OWN_COLUMNS], payload])


_OWN_COLUMNS = len(_ClaimedRow._fields) - 1


@dataclass(frozen=True, slots=True)
class DueWebhookDelivery:
    """A claimed webhook delivery. `event_id` is its webhook-id, `body` None if the event is gone.

    `is_last_attempt`: it is given up if this attempt fails.
    """

    id: int
    event_id: UUID
    tries: int
    attempts: tuple[AttemptEntry, ...]
    is_last_attempt: bool
    body: bytes | None
    traceparent: str = ""


@dataclass(frozen=True, slots=True)
class ClaimedEndpoint:
    """An endpoint whose queue is claimed until the lease ends, and the first of its deliveries."""

    endpoint: WebhookEndpoint
    fence: int
    due: Sequence[DueWebhookDelivery]
    until: float
    """When the lease ends, or a little before (monotonic)."""


def claim(limit: int) -> list[ClaimedEndpoint]:
    """Claim the queues of at most `limit` endpoints, in two statements."""
    age = GIVE_UP.total_seconds()
    parameters: dict[str, float] = {"limit": limit, "lease": LEASE_SECONDS, "give_up": age}
    until = monotonic() + LEASE_SECONDS
    with connection.cursor() as cursor:
        cursor.execute(_CLAIM.replace(":trace", spans.context_of("m.id")), parameters)
        rows = [_ClaimedRow.of(row) for row in cursor.fetchall()]
    if not rows:
        return []
    endpoints = WebhookEndpoint.objects.in_bulk({row.endpoint_id for row in rows})
    return [
        ClaimedEndpoint(endpoints[endpoint_id], fence, [_due_delivery(row) for row in group], until)
        for (endpoint_id, fence), group in groupby(rows, lambda row: (row.endpoint_id, row.fence))
        if endpoint_id in endpoints
    ]


def _due_delivery(row: _ClaimedRow) -> DueWebhookDelivery:
    attempts = tuple(orjson.loads(row.attempts)) if row.attempts else ()
    body = payloads.build(row.payload)
    event_id = row.payload.event_id
    return DueWebhookDelivery(
        row.id, event_id, row.tries, attempts, row.is_last_attempt, body, row.traceparent or ""
    )


@dataclass(frozen=True, slots=True)
class DeliveryResult:
    """The result of one attempt. `wait`: seconds until the next one, if the status is PENDING."""

    id: int
    status: WebhookDelivery.Status
    wait: float
    attempts: Sequence[AttemptEntry]


@dataclass(frozen=True, slots=True)
class EndpointResult:
    """The end of an endpoint's claim. `wait`: seconds until it may be claimed again.

    `failures` counts consecutive failures; `gone`: the endpoint wants no more events (410).
    """

    claim: ClaimedEndpoint
    wait: float
    failures: int
    succeeded: bool
    gone: bool


_FAILED_TOO_LONG = (
    "(r.failures > 0 AND NOT r.succeeded AND w.failing_since IS NOT NULL AND "
    f"w.failing_since <= statement_timestamp() - interval '{DISABLE_AFTER.days} days')"
)
_RECORD = f"""
WITH attempted AS (
  UPDATE {_N} n SET status = r.status, tries = n.tries + 1, attempts = r.attempts,
    tried_at = statement_timestamp(),
    due_at = CASE r.status WHEN 'PENDING' THEN
      statement_timestamp() + make_interval(secs => r.wait) END
  FROM json_to_recordset(%(deliveries)s) r(id bigint, status varchar, wait float8, attempts jsonb)
  WHERE n.id = r.id AND (n.status = 'PENDING' OR r.status = 'DELIVERED')
    AND {cells.here("n.organization_id", leaving=True)}
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


def record(delivered: Sequence[DeliveryResult], released: Sequence[EndpointResult] = ()) -> None:
    """Record results of deliveries, and release endpoints, by one statement.

    A late worker may record results, but not release the endpoint. During the pause of a move and
    after it neither is recorded: the cell that the organization is in sends these deliveries again.
    """
    if not delivered and not released:
        return
    deliveries: list[sql.Row] = [
        {"id": each.id, "status": each.status, "wait": each.wait, "attempts": each.attempts}
        for each in delivered
    ]
    claimed: list[sql.Row] = [
        {
            "id": each.claim.endpoint.pk,
            "fence": each.claim.fence,
            "wait": each.wait,
            "failures": each.failures,
            "succeeded": each.succeeded,
            "gone": each.gone,
        }
        for each in released
    ]
    parameters = {"deliveries": sql.as_json(deliveries), "endpoints": sql.as_json(claimed)}
    with connection.cursor() as cursor:
        cursor.execute(_RECORD, parameters)
        for endpoint_id, organization_id, enabled in cursor.fetchall():
            if not enabled:
                log.warning(
                    "endpoint.disabled", endpoint_id=endpoint_id, organization_id=organization_id
                )
