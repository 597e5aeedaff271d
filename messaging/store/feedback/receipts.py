"""What receipts are about: the attempts that they name, the deliveries with the events that they
have so far, and addresses that keep bouncing.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from messaging.domain.progress.receipts import SeenEvent, SentDelivery
from messaging.domain.statuses import EventType
from messaging.models import Attempt, Delivery, Event, Message
from messaging.store import locks
from messaging.store.encodings import fallback_seconds, trace_context
from messaging.store.lookups import is_to_contact
from rme.core import ids
from rme.core.db import sql

_D = Delivery._meta.db_table
_A = Attempt._meta.db_table
# Plan (BY_INDEX): the primary key of attempts, in the partitions that the bounds of the keys name.
# Run by: read_and_lock, for feedback.receipts
READ_DELIVERIES = f"SELECT DISTINCT delivery_id::text FROM {_A} WHERE {sql.among('id', 'attempts')}"
# A failure counts for the last attempt only, if the provider may have accepted that one. A later
# claim may have ended without an attempt.
#
# Plan (BY_INDEX): the primary keys of both, and attempt_of_delivery in all partitions once for
# each.
# Run by: read_and_lock, for feedback.receipts
READ_ATTEMPTS = f"""
WITH named AS MATERIALIZED (
  SELECT id, account_id, delivery_id, channel, provider, fence, outcome
  FROM {_A} WHERE {sql.among("id", "attempts")} ORDER BY id
)
SELECT a.id, a.account_id, a.delivery_id, a.channel, a.provider, d.status,
  coalesce(a.outcome, 'Unknown') IN ('Accepted', 'Unknown') AND (a.fence = d.fence OR NOT EXISTS (
    SELECT FROM {_A} later
    WHERE {sql.by_key("later.delivery_id", "d.id")} AND later.fence > a.fence))
FROM named a JOIN {Delivery._meta.db_table} d ON {sql.by_key("d.id", "a.delivery_id")}
ORDER BY a.delivery_id
"""


class ReportedAttempt(NamedTuple):
    """The attempt of a receipt, and the state of its delivery."""

    id: UUID
    account_id: int | None
    delivery_id: UUID
    channel: str
    provider: str | None
    status: str
    """The delivery's."""
    is_last: bool
    """It is the delivery's last attempt, and may have been accepted."""


def read_and_lock(attempt_ids: Collection[UUID]) -> Mapping[UUID, ReportedAttempt]:
    """Lock the deliveries of attempts, and read both: three statements, and none if there are none.

    They are read after they are locked, so each as it is now.
    """
    if not attempt_ids:
        return {}
    keys = sql.keys("attempts", attempt_ids)
    deliveries = sql.read_in_order(READ_DELIVERIES, keys)
    locks.lock([delivery_id for (delivery_id,) in deliveries])
    return {row[0]: ReportedAttempt(*row) for row in sql.read_in_order(READ_ATTEMPTS, keys)}


# --- deliveries -----------------------------------------------------------------------------------

# A delivery that is SENT or DELIVERED, and has had one channel, was sent on it: its attempts, which
# stand for that event, need not be looked up.
_ON_ONE_CHANNEL = "d.status IN ('SENT', 'DELIVERED') AND d.accepted_channel IS NULL"
# Plan (BY_INDEX): the primary key of deliveries; event_of_message, attempt_of_delivery and the
# primary key of messages once for each. `:trace` stands for the context of the message's trace.
# Run by: read_sent, for feedback.receipts
READ_SENT = f"""
SELECT d.id, d.organization_id, d.message_id, d.channel, d.address, d.provider, d.status,
  CASE WHEN d.channels IS NULL OR d.channels = '{{}}' THEN NULL
    WHEN d.status = 'SENT' AND d.due_at IS NOT NULL THEN 0
    WHEN d.status = 'UNKNOWN' THEN (
      SELECT {fallback_seconds("m")} FROM {Message._meta.db_table} m
      WHERE m.id = d.message_id AND m.strategy = 'FIRST_DELIVERED') END,
  (SELECT json_agg(json_build_array(channel, type, machine)) FROM (
    SELECT coalesce(e.channel, d.channel) AS channel, e.type,
      coalesce(e.detail->'machine' = 'true', false) AS machine
    FROM {Event._meta.db_table} e WHERE e.message_id = d.message_id AND e.delivery_id = d.id
    UNION ALL SELECT d.channel, '{EventType.SENT}', false WHERE {_ON_ONE_CHANNEL}
    UNION ALL SELECT a.channel, '{EventType.SENT}', false FROM {Attempt._meta.db_table} a
    WHERE a.delivery_id = d.id AND a.sent_at IS NOT NULL AND ({_ON_ONE_CHANNEL}) IS NOT TRUE) seen),
  d.test, :trace
FROM {_D} d WHERE {sql.among("d.id", "deliveries")} ORDER BY d.id
"""
# Plan (BY_INDEX): the primary key of deliveries, in the partitions that the bounds of the keys
# name.
# Run by: organizations_of, for feedback.receipts
READ_ORGANIZATIONS = (
    f"SELECT DISTINCT organization_id FROM {_D} WHERE {sql.among('id', 'deliveries')}"
)


def read_sent(delivery_ids: Collection[UUID]) -> list[SentDelivery]:
    """Return deliveries, which the caller has locked, in the order of their ids."""
    text = READ_SENT.replace(":trace", trace_context("d.message_id"))
    rows = sql.read_in_order(text, sql.keys("deliveries", delivery_ids))
    return [_sent(row) for row in rows]


def _sent(row: Sequence[Any]) -> SentDelivery:
    *delivery, fallback_after, events, test, traceparent = row
    key, organization_id, message_id, channel, address, provider, status = delivery
    return SentDelivery(
        key,
        organization_id,
        message_id,
        channel,
        address,
        provider,
        status,
        fallback_after,
        frozenset(SeenEvent(*event) for event in events or ()),
        test,
        traceparent,
    )


def organizations_of(delivery_ids: Collection[UUID]) -> list[str]:
    """Return the organizations of deliveries."""
    rows = sql.read_in_order(READ_ORGANIZATIONS, sql.keys("deliveries", delivery_ids))
    return [organization_id for (organization_id,) in rows]


# --- bounces --------------------------------------------------------------------------------------

# Plan: the primary key of deliveries; for each of them delivery_by_contact in all partitions, and
# event_of_message.
# Run by: read_bounced, for consent.soft_bounces
READ_BOUNCED = f"""
SELECT d.organization_id, d.channel, d.address, (array_agg(l.message_id ORDER BY l.message_id))[1],
  (array_agg(l.message_id ORDER BY l.message_id DESC))[1], d.test
FROM {_D} d, LATERAL (
  SELECT o.id, o.message_id, o.channel, o.status FROM {_D} o
  WHERE o.organization_id = d.organization_id AND {is_to_contact("o", "d.contact_id")}
    AND o.message_id >= %(since)s AND o.channel = d.channel AND o.address = d.address
    AND o.test = d.test AND o.status IN ('DELIVERED', 'FAILED')
  ORDER BY o.message_id DESC LIMIT %(count)s) l
WHERE d.id = ANY(%(deliveries)s) AND d.address IS NOT NULL
GROUP BY d.id, d.organization_id, d.channel, d.address, d.test
HAVING count(*) = %(count)s AND bool_and(l.status = 'FAILED' AND EXISTS (
  SELECT FROM {Event._meta.db_table} e WHERE e.message_id = l.message_id AND e.delivery_id = l.id
    AND e.channel = l.channel AND e.detail @> '{{"soft": true}}'))
"""


class BouncedAddress(NamedTuple):
    """An address whose last sends bounced, the first and the last of them at these times."""

    organization_id: str
    channel: str
    address: str
    first_at: datetime
    last_at: datetime
    test: bool


def read_bounced(
    delivery_ids: Collection[UUID], since: datetime, count: int
) -> list[BouncedAddress]:
    """Return the addresses of deliveries whose last `count` sends since a time all bounced."""
    values = {
        "since": ids.at_least(since),
        "deliveries": list(set(delivery_ids)),
        "count": count,
    }
    return [
        BouncedAddress(organization_id, channel, address, ids.moment(first), ids.moment(last), test)
        for organization_id, channel, address, first, last, test in sql.fetch(READ_BOUNCED, values)
    ]
