"""Counts of waiting deliveries. They stop at a limit, so a large backlog costs no more."""

from collections.abc import Sequence

from messaging.models import Delivery, WebhookDelivery
from rme.core.db import sql

_D = Delivery._meta.db_table

HELD_LIMIT = 1000
"""The most that are counted in manual review for an organization."""

WAITING_LIMIT = 1000
"""The most events that are counted as waiting for a webhook endpoint."""

# Plan (BY_INDEX): delivery_ready alone, in all partitions, one range for each priority.
# Run by: count_ready, for delivery.accounts.rates
COUNT_READY = f"""
SELECT count(*) FROM (
  SELECT FROM unnest(%(priorities)s::int[]) before(priority), LATERAL (
    SELECT FROM {_D} d WHERE d.status = 'ACCEPTED' AND d.channel = %(channel)s
      AND d.priority = before.priority AND d.organization_id = %(organization)s
    ORDER BY d.due_at) d
  LIMIT %(limit)s) waiting
"""
# Plan: delivery_held in all partitions; it is nearly always empty.
# Run by: count_held, for reports.configuration
COUNT_HELD = f"""
SELECT o, (SELECT count(*) FROM (
  SELECT FROM {_D} WHERE organization_id = o AND status = 'UNKNOWN'
    AND due_at IS NULL LIMIT {HELD_LIMIT}) held)
FROM unnest(%(organizations)s::text[]) o
"""

# Plan: notice_due, a range for each endpoint.
# Run by: count_waiting_events, for reports.configuration
COUNT_WAITING_EVENTS = f"""
SELECT e, (SELECT count(*) FROM (SELECT FROM {WebhookDelivery._meta.db_table}
  WHERE endpoint_id = e AND due_at IS NOT NULL LIMIT {WAITING_LIMIT}) waiting)
FROM unnest(%(endpoints)s::bigint[]) e
"""


def count_ready(organization_id: str, channel: str, priority: int, limit: int) -> int:
    """Count an organization's deliveries that go before one of a priority, up to a limit."""
    ((count,),) = sql.read_in_order(
        COUNT_READY,
        {
            "priorities": sql.array([str(number) for number in range(priority + 1)]),
            "channel": channel,
            "organization": organization_id,
            "limit": limit,
        },
    )
    return int(count)


def count_held(organization_ids: Sequence[str]) -> dict[str, int]:
    """Count the deliveries that each organization has in manual review, up to HELD_LIMIT."""
    rows = sql.fetch(COUNT_HELD, {"organizations": list(organization_ids)})
    return dict(rows)


def count_waiting_events(endpoint_ids: Sequence[int]) -> dict[int, int]:
    """Count the events that wait for each endpoint, up to WAITING_LIMIT."""
    if not endpoint_ids:
        return {}
    rows = sql.fetch(COUNT_WAITING_EVENTS, {"endpoints": list(endpoint_ids)})
    return dict(rows)
