"""Claims: deliveries that are ready become SENDING, under a lease and a fencing token.

Two workers never hold the same delivery, and a worker whose lease has ended cannot write any more.
"""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
import structlog

from messaging.domain.deliveries import ClaimedDelivery
from messaging.models import Delivery, Message, MessageContent
from messaging.store import encodings
from messaging.store.transitions import claim_update
from rme.core.db import clock, prepared_statements, sql
from rme.core.db.due import is_served

log = structlog.get_logger(__name__)

CLAIM_BYTES = 32 * 2**20
"""A claim ends with the message whose content takes it to this size."""

_D = Delivery._meta.db_table
_CONTENT = MessageContent._meta.db_table
_NOW = "statement_timestamp()"
_LEASE = f"{_NOW} + make_interval(secs => %(lease)s)"

_COLUMNS = {
    "organization_id": "d.organization_id",
    "id": "d.id",
    "message_id": "d.message_id",
    "contact_id": "d.contact_id",
    "category": "d.category",
    "channels": encodings.remaining_channels("d"),
    "channel": "d.channel",
    "address": "d.address",
    "template_version_id": "d.template_version_id",
    "fence": "d.fence",
    "tries": "d.tries",
    "expires_at": "extract(epoch FROM d.expires_at)::float8",
    "test": "d.test",
    "previous_account_id": "CASE WHEN d.fence > 1 THEN d.account_id END",
    "ready_since": "extract(epoch FROM coalesce(d.scheduled_for, d.accepted_at))::float8",
}
"""The SQL of each field of a `ClaimedDelivery` but those that its message has, the last ones."""
_SELECTED = ", ".join(_COLUMNS[name] for name in ClaimedDelivery._fields if name in _COLUMNS)
_EXPIRES_AT = ClaimedDelivery._fields.index("expires_at")
_FENCE = ClaimedDelivery._fields.index("fence")

# Two statements, one transaction. The first locks, and the second is given the ids of what it
# locked, so that it knows the partitions beforehand: docs/architecture.md, "Locks and pruning".
# Each answers with one row: PostgreSQL sends rows as it makes them, and the process would wake for
# every few.
#
# Plan (BY_GENERIC_PLAN): delivery_ready in all partitions, one range for each organization, in the
# order of due_at.
# Run by: claim, for delivery.claims
LOCK_READY = f"""
SELECT array_agg(id)::text, array_agg(message_id)::text FROM (
  SELECT d.id, d.message_id
  FROM (
    SELECT * FROM unnest(%(organizations)s::text[], %(limits)s::int[]) given(organization_id, most)
    WHERE {is_served("given.organization_id")} OFFSET 0) wanted, LATERAL (
    SELECT d.id, d.message_id FROM {_D} d
    WHERE d.status = 'ACCEPTED' AND d.channel = %(channel)s AND d.priority = %(priority)s
      AND d.organization_id = wanted.organization_id AND d.due_at <= {_NOW}
    ORDER BY d.due_at LIMIT wanted.most FOR UPDATE SKIP LOCKED) d
  LIMIT %(limit)s) locked
"""
# A message is read once, however many of its recipients are claimed. `beyond` are those whose
# contents no longer belong to the claim: the newest ones.
#
# Plan (BY_GENERIC_PLAN): the primary keys of three tables, in the partitions that the bounds of the
# keys name.
# Run by: claim, for delivery.claims
CLAIM_LOCKED = f"""
WITH beyond AS MATERIALIZED (
  SELECT id FROM (
    SELECT id, sum(coalesce(c.size, octet_length(c.body::text))) OVER earlier AS before
    FROM {_CONTENT} c WHERE {sql.among("c.id", "messages")}
    WINDOW earlier AS (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)) sized
  WHERE before >= {CLAIM_BYTES}
), claimed AS (
  {
    claim_update(
        _LEASE,
        sql.among("t.id", "deliveries"),
        "t.message_id <> ALL(ARRAY(SELECT id FROM beyond))",
    )
}
)
SELECT (
  SELECT json_agg(json_build_array({_SELECTED}) ORDER BY d.id)::text
  FROM claimed d
), (
  SELECT json_agg(json_build_array(m.id, m.template,
    CASE m.strategy WHEN 'FIRST_DELIVERED' THEN {encodings.fallback_seconds("m")} END))::text
  FROM (  -- in the order of the primary key, so that no other index is read
    SELECT * FROM {Message._meta.db_table} m WHERE {sql.among("m.id", "messages")}
    ORDER BY m.id OFFSET 0) m
), (
  SELECT json_agg(json_build_array(c.id, c.body))::text FROM {_CONTENT} c
  WHERE {sql.among("c.id", "messages")} AND c.id <> ALL(ARRAY(SELECT id FROM beyond))
), EXISTS (SELECT FROM beyond)
"""


@dataclass(frozen=True, slots=True)
class Claim:
    """The deliveries of one transaction, by organization."""

    deliveries: Mapping[str, Sequence[ClaimedDelivery]]
    unreadable: Mapping[str, Sequence[ClaimedDelivery]]
    """Claimed too, but their rows cannot be read: only their ids and fences are set."""
    is_cut: bool = False
    """Contents have taken it to its size in bytes: there is more to claim."""


def claim(
    channel: str, priority: int, limits: Mapping[str, int], limit: int, lease_seconds: float
) -> Claim:
    """Claim the oldest deliveries that are ready of several organizations, by one transaction.

    `limits` has how many to claim of each at most, and `limit` of all together.
    """
    lock = sql.bind(
        LOCK_READY,
        {
            "organizations": sql.array(limits),
            "limits": sql.array([str(count) for count in limits.values()]),
            "channel": channel,
            "priority": priority,
            "limit": limit,
        },
    )
    with prepared_statements.transaction() as batch:
        ((delivery_ids, message_ids),) = batch.send(
            lock.text, lock.parameters, setting=sql.BY_GENERIC_PLAN
        ).rows()
        if delivery_ids is None:
            return Claim({}, {})
        claim_locked = sql.bind(
            CLAIM_LOCKED,
            {
                "lease": lease_seconds,
                **sql.keys("deliveries", _ids(delivery_ids)),
                **sql.keys("messages", set(_ids(message_ids))),
            },
        )
        claiming = batch.send(
            claim_locked.text, claim_locked.parameters, setting=sql.BY_GENERIC_PLAN
        )
    ((rows, messages, contents, is_cut),) = claiming.rows()
    columns_of_message = {message_id: columns for message_id, *columns in _rows(messages)}
    bodies = dict(_rows(contents))
    claimed: dict[str, list[ClaimedDelivery]] = defaultdict(list)
    unreadable: dict[str, list[ClaimedDelivery]] = defaultdict(list)
    for row in _rows(rows):
        organization_id, delivery_id, message_id = row[:3]
        try:
            claimed[organization_id].append(
                _claimed(row, columns_of_message[message_id], bodies.get(message_id))
            )
        except MemoryError:  # of the process, not of this one
            raise
        except Exception:
            log.exception(
                "claim.unreadable", delivery_id=delivery_id, organization_id=organization_id
            )
            unreadable[organization_id].append(_unreadable(row, channel))
    return Claim(claimed, unreadable, is_cut)


def _ids(array: str) -> list[str]:
    """Return the ids in the literal of an array."""
    return array[1:-1].split(",")


def _rows(text: str | None) -> list[list[Any]]:
    """Parse rows. PostgreSQL keeps numbers in JSON that no float holds, and orjson refuses; one
    such number must not make all rows unreadable.
    """
    try:
        rows: list[list[Any]] = orjson.loads(text or "[]")
    except orjson.JSONDecodeError:
        rows = json.loads(text or "[]")
    return rows


def _claimed(row: list[Any], of_message: list[Any], body: object) -> ClaimedDelivery:
    """Return the delivery of a row. Raises where a column is not what it should be."""
    if not isinstance(body, dict):
        raise TypeError("the body of a message is no object")
    row[_EXPIRES_AT] = clock.of_epoch(row[_EXPIRES_AT])
    return ClaimedDelivery._make((*row, *of_message, encodings.body_of(body)))


def _unreadable(row: list[Any], channel: str) -> ClaimedDelivery:
    """Return a delivery whose row cannot be read, so that it can be failed."""
    organization_id, delivery_id, message_id, *_ = row
    return ClaimedDelivery(
        organization_id=organization_id,
        id=delivery_id,
        message_id=message_id,
        contact_id="",
        category="",
        channels=[],
        channel=channel,
        address=None,
        template_version_id=None,
        fence=row[_FENCE],
        tries=0,
        expires_at=clock.now(),
        test=False,
        template=None,
        fallback_after=None,
        previous_account_id=None,
        ready_since=None,
        body={},
    )
