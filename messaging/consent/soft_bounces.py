"""Soft bounces: one is temporary, many in a row mean that the address is dead.

An address is suppressed as INVALID_ADDRESS for 90 days if the contact's last five sends to it on
the channel within 30 days all ended in a soft bounce, the first and the last at least three days
apart. A send that arrived in between, or any other failure, restarts the count.
"""

from collections.abc import Collection
from datetime import datetime, timedelta
from uuid import UUID

from messaging.consent.suppressions import NewSuppression
from messaging.store.feedback import receipts

IN_A_ROW = 5
WITHIN = timedelta(days=30)
SPREAD = timedelta(days=3)
"""A phone that is off for a day, or a carrier's outage, must not count five times."""
SUPPRESSED_FOR = timedelta(days=90)


def find_dead_addresses(delivery_ids: Collection[UUID], now: datetime) -> list[NewSuppression]:
    """Return what to suppress after soft bounces of deliveries; one query."""
    if not delivery_ids:
        return []
    return [
        NewSuppression(
            bounced.organization_id,
            bounced.channel,
            bounced.address,
            "INVALID_ADDRESS",
            "PROVIDER",
            note=f"{IN_A_ROW} soft bounces in a row",
            expires_at=now + SUPPRESSED_FOR,
            test=bounced.test,
        )
        for bounced in receipts.read_bounced(delivery_ids, now - WITHIN, IN_A_ROW)
        if bounced.last_at - bounced.first_at >= SPREAD
    ]
