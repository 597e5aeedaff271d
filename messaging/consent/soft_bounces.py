"""Soft bounces: one is temporary, many in a row mean that the address is dead.

An address is suppressed as INVALID_ADDRESS for 90 days if the contact's last five sends to it on
the channel within 30 days all ended in a soft bounce, the first and the last at least three days
apart. A send that arrived in between, or any other failure, restarts the count.

SQL, because it runs for every batch of receipts: one statement for all of them.
"""

from collections.abc import Collection
from datetime import datetime, timedelta
from uuid import UUID

from django.db import connection

from messaging.consent.suppressions import NewSuppression
from messaging.models import Delivery, Event
from messaging.models.delivery_lookup import is_to_contact
from rme.core import ids

IN_A_ROW = 5
WITHIN = timedelta(days=30)
SPREAD = timedelta(days=3)
"""A phone that is off for a day, or a carrier's outage, must not count five times."""
SUPPRESSED_FOR = timedelta(days=90)

_DELIVERIES = Delivery._meta.db_table
_BOUNCED = f"""
SELECT d.organization_id, d.channel, d.address, (array_agg(l.message_id ORDER BY l.message_id))[1],
  (array_agg(l.message_id ORDER BY l.message_id DESC))[1]
FROM {_DELIVERIES} d, LATERAL (
  SELECT o.id, o.message_id, o.channel FROM {_DELIVERIES} o
  WHERE o.organization_id = d.organization_id AND {is_to_contact("o", "d.contact_id")}
    AND o.message_id >= %s AND o.channel = d.channel AND o.address = d.address
    AND o.status IN ('DELIVERED', 'FAILED')
  ORDER BY o.message_id DESC LIMIT {IN_A_ROW}) l
WHERE d.id = ANY(%s) AND d.address IS NOT NULL
GROUP BY d.id, d.organization_id, d.channel, d.address
HAVING count(*) = {IN_A_ROW} AND bool_and(EXISTS (
  SELECT FROM {Event._meta.db_table} e WHERE e.message_id = l.message_id AND e.delivery_id = l.id
    AND e.channel = l.channel AND e.detail @> '{{"soft": true}}'))
"""


def find_dead_addresses(delivery_ids: Collection[UUID], now: datetime) -> list[NewSuppression]:
    """Return what to suppress after soft bounces of deliveries; one query."""
    if not delivery_ids:
        return []
    with connection.cursor() as cursor:
        cursor.execute(_BOUNCED, [ids.at_least(now - WITHIN), list(set(delivery_ids))])
        rows = cursor.fetchall()
    return [
        NewSuppression(
            organization_id,
            channel,
            address,
            "INVALID_ADDRESS",
            "PROVIDER",
            note=f"{IN_A_ROW} soft bounces in a row",
            expires_at=now + SUPPRESSED_FOR,
        )
        for organization_id, channel, address, first, last in rows
        if _far_apart(first, last)
    ]


def _far_apart(first: UUID, last: UUID) -> bool:
    return ids.moment(last) - ids.moment(first) >= SPREAD
