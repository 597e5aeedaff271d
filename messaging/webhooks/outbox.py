"""What endpoints are to be told: taking it, writing down what came of it, and letting it go.

A worker takes an endpoint's queue as a whole, by compare-and-set with a lease: nobody else tells
that endpoint anything meanwhile, and what a dead worker had in hand is told again when its lease
ends. After a failure the queue waits as a whole.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from time import monotonic
from typing import Any
from uuid import UUID

import orjson
import structlog
from django.db import connection

from messaging.models import Delivery, Event, Message, WebhookDelivery, WebhookEndpoint
from messaging.webhooks import endpoints
from rme.core.db import clock, sql

log = structlog.get_logger(__name__)

PAGE = 100
"""At most so many are in a worker's hand for one endpoint, and told again when it dies."""
LEASE_SECONDS = 60.0
"""After this a worker is thought dead; a request and the turn that it is made in take less."""
GIVE_UP = timedelta(days=4)
"""A notice this old is not tried again: its tries take a little more than three days."""
HOPELESS = timedelta(days=5)
"""An endpoint that has failed for so long, without a success, is switched off."""
DELIVERED_KEPT, FAILED_KEPT = timedelta(days=7), timedelta(days=30)
PURGE_BATCH = 1000
PURGE_SECONDS = 10.0

_N, _W = WebhookDelivery._meta.db_table, WebhookEndpoint._meta.db_table
_E, _D, _M = (model._meta.db_table for model in (Event, Delivery, Message))

# The index is notice_due: one step an endpoint, however much each is to be told. Among endpoints
# the order is random, so that all have their turn.
_STEP = sql.loose_scan(WebhookDelivery, ["endpoint_id"], "due_at IS NOT NULL")
_CLAIM = f"""
WITH RECURSIVE {_STEP}, picked AS (
  SELECT w.id FROM step JOIN {_W} w ON w.id = step.endpoint_id
  WHERE w.enabled AND w.free_at <= statement_timestamp() AND EXISTS (
    SELECT FROM {_N} n WHERE n.endpoint_id = w.id AND n.due_at <= statement_timestamp())
  ORDER BY random() LIMIT %(limit)s FOR UPDATE OF w SKIP LOCKED
), held AS (
  UPDATE {_W} w SET fence = w.fence + 1,
    free_at = statement_timestamp() + make_interval(secs => %(lease)s)
  FROM picked WHERE {sql.by_key("w.id", "picked.id")} RETURNING w.id, w.fence
)
SELECT held.id, held.fence, n.id, n.event_id, n.type, n.tries, n.attempts,
  n.noted_at <= statement_timestamp() - make_interval(secs => %(give_up)s),
  coalesce(e.at, n.noted_at), n.data, e.id, m.id, d.contact_id, e.channel, d.category, d.status,
  e.provider, m.test, m.metadata, e.detail
FROM held CROSS JOIN LATERAL (
  SELECT * FROM {_N} WHERE endpoint_id = held.id AND due_at <= statement_timestamp()
  ORDER BY due_at LIMIT {PAGE}
) n
LEFT JOIN {_E} e ON e.id = n.event_id AND e.organization_id = n.organization_id
LEFT JOIN {_D} d ON d.id = e.delivery_id
LEFT JOIN {_M} m ON m.id = e.message_id AND m.organization_id = e.organization_id
ORDER BY held.id, n.due_at, n.id
"""


@dataclass(frozen=True, slots=True)
class DueDelivery:
    """One notice in hand. `event_id` is its webhook-id; no body: there is nothing to tell any more.

    `last` says that it is not tried again.
    """

    id: int
    event_id: UUID
    tries: int
    attempts: tuple[dict[str, Any], ...]
    last: bool
    body: bytes | None


@dataclass(frozen=True, slots=True)
class ClaimedEndpoint:
    """An endpoint's queue in hand, until the lease ends, and the first of what is due."""

    endpoint: WebhookEndpoint
    fence: int
    due: Sequence[DueDelivery]


def claim(limit: int) -> list[ClaimedEndpoint]:
    """Take the queues of at most so many endpoints; two statements."""
    age = GIVE_UP.total_seconds()
    parameters: dict[str, float] = {"limit": limit, "lease": LEASE_SECONDS, "give_up": age}
    with connection.cursor() as cursor:
        cursor.execute(_CLAIM, parameters)
        rows = cursor.fetchall()
    if not rows:
        return []
    fences = {row[0]: row[1] for row in rows}
    known = WebhookEndpoint.objects.in_bulk(list(fences))
    return [
        ClaimedEndpoint(known[key], fence, [_due(row[2:]) for row in rows if row[0] == key])
        for key, fence in fences.items()
        if key in known
    ]


def _due(row: Sequence[Any]) -> DueDelivery:
    identifier, event_id, kind, tries, attempts, last, at, data, found, *of_message = row
    told: Any = None
    if data is not None:
        told = orjson.loads(data)
    elif found is not None and None not in of_message[:2]:
        told = _data(of_message)
    body = orjson.dumps({"type": kind, "timestamp": clock.iso(at), "data": told})
    before = tuple(orjson.loads(attempts)) if attempts else ()
    return DueDelivery(
        identifier, event_id, tries, before, last, body if told is not None else None
    )


def _data(of_message: Sequence[Any]) -> dict[str, Any]:
    message, contact, channel, category, status, provider, test, metadata, detail = of_message
    return {
        "messageId": str(message),
        "contactId": contact,
        "channel": channel,
        "category": category,
        "status": status,
        "provider": provider,
        "test": test,
        "metadata": orjson.loads(metadata) if metadata else None,
        "detail": orjson.loads(detail) if detail else None,
    }


@dataclass(frozen=True, slots=True)
class DeliveryResult:
    """What came of one notice. `wait`: seconds until it is tried again, if it is."""

    id: int
    status: WebhookDelivery.Status
    wait: float
    attempts: Sequence[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class EndpointResult:
    """What came of an endpoint's turn. `wait`: seconds until its queue may be taken again.

    `failures` counts those in a row; `gone` says that it wants nothing more (410).
    """

    claim: ClaimedEndpoint
    told: Sequence[DeliveryResult]
    wait: float
    failures: int
    succeeded: bool
    gone: bool


_HOPELESS = (
    "(r.failures > 0 AND NOT r.succeeded AND w.failing_since IS NOT NULL AND "
    f"w.failing_since <= statement_timestamp() - interval '{HOPELESS.days} days')"
)
_SETTLE = f"""
WITH told AS (
  UPDATE {_N} n SET status = r.status, tries = n.tries + 1, attempts = r.attempts,
    tried_at = statement_timestamp(),
    due_at = CASE r.status WHEN 'PENDING' THEN
      statement_timestamp() + make_interval(secs => r.wait) END
  FROM json_to_recordset(%(told)s) r(id bigint, status varchar, wait float8, attempts jsonb)
  WHERE n.id = r.id AND (n.status = 'PENDING' OR r.status = 'DELIVERED')
)
UPDATE {_W} w SET
  free_at = statement_timestamp() + make_interval(secs => r.wait),
  failures = r.failures,
  failing_since = CASE WHEN r.failures = 0 THEN NULL WHEN r.succeeded THEN statement_timestamp()
    ELSE coalesce(w.failing_since, statement_timestamp()) END,
  last_success_at = CASE WHEN r.succeeded THEN statement_timestamp() ELSE w.last_success_at END,
  enabled = w.enabled AND NOT r.gone AND NOT {_HOPELESS},
  disabled_reason = CASE WHEN NOT w.enabled THEN w.disabled_reason
    WHEN r.gone THEN 'It answered 410: gone.'
    WHEN {_HOPELESS} THEN 'It failed for {HOPELESS.days} days.' ELSE '' END
FROM json_to_recordset(%(turns)s)
  r(id bigint, fence int, wait float8, failures int, succeeded boolean, gone boolean)
WHERE w.id = r.id AND w.fence = r.fence
RETURNING w.id, w.organization_id, w.enabled
"""


def record(turns: Sequence[EndpointResult]) -> None:
    """Write down what came of turns, by one statement, and free the endpoints."""
    if not turns:
        return
    told = [
        {"id": each.id, "status": each.status, "wait": each.wait, "attempts": each.attempts}
        for turn in turns
        for each in turn.told
    ]
    rows = [
        {
            "id": turn.claim.endpoint.pk,
            "fence": turn.claim.fence,
            "wait": turn.wait,
            "failures": turn.failures,
            "succeeded": turn.succeeded,
            "gone": turn.gone,
        }
        for turn in turns
    ]
    with connection.cursor() as cursor:
        cursor.execute(_SETTLE, {"told": sql.as_json(told), "turns": sql.as_json(rows)})
        disabled = [row for row in cursor.fetchall() if not row[2]]
    for endpoint_id, organization_id, _ in disabled:
        log.warning("endpoint.disabled", endpoint_id=endpoint_id, organization_id=organization_id)


def latest_attempted(endpoint: WebhookEndpoint, limit: int = 20) -> list[WebhookDelivery]:
    """Give what an endpoint was told of last, the latest first."""
    rows = WebhookDelivery.objects.filter(endpoint_id=endpoint.pk, tried_at__isnull=False)
    return list(rows.order_by("-tried_at", "-id")[:limit])


def count_pending(endpoint: WebhookEndpoint, limit: int = 1001) -> int:
    """Count what an endpoint is still to be told, up to a limit."""
    return WebhookDelivery.objects.filter(endpoint_id=endpoint.pk, due_at__isnull=False)[
        :limit
    ].count()


def delete_deliveries(endpoint_id: int) -> None:
    """Delete all that an endpoint was told or is to be told."""
    with connection.cursor() as cursor:
        cursor.execute(f"DELETE FROM {_N} WHERE endpoint_id = %s", [endpoint_id])


_GIVEN_UP = f"""
UPDATE {_N} SET status = 'FAILED', due_at = NULL WHERE id IN (SELECT id FROM {_N}
  WHERE status = %s AND noted_at < statement_timestamp() - make_interval(secs => %s)
  LIMIT {PURGE_BATCH})
"""
_GONE = f"""
DELETE FROM {_N} WHERE id IN (SELECT id FROM {_N}
  WHERE status = %s AND noted_at < statement_timestamp() - make_interval(secs => %s)
  LIMIT {PURGE_BATCH})
"""
_PAST = (
    (_GIVEN_UP, WebhookDelivery.Status.PENDING, GIVE_UP),
    (_GONE, WebhookDelivery.Status.DELIVERED, DELIVERED_KEPT),
    (_GONE, WebhookDelivery.Status.FAILED, FAILED_KEPT),
)


def purge() -> None:
    """Give up what waited for too long, and delete what was told or given up long ago."""
    until = monotonic() + PURGE_SECONDS
    with connection.cursor() as cursor:
        for statement, status, age in _PAST:
            cursor.execute(statement, [status, age.total_seconds()])
            while cursor.rowcount == PURGE_BATCH and monotonic() < until:
                cursor.execute(statement, [status, age.total_seconds()])
    endpoints.delete_expired_secrets()
