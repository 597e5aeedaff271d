"""Opens and clicks of tracked emails: stored as they happen, and applied in batches.

Storing is one statement, so the person who clicked does not wait for the rest. An email that is
opened a thousand times is one row.
"""

from collections.abc import Collection
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db import transaction

from messaging.domain.channels import Channel
from messaging.domain.progress.receipts import Receipt
from messaging.domain.statuses import Status
from messaging.feedback import receipts
from messaging.models import Delivery, Hit
from messaging.store import locks
from messaging.store.feedback import hits
from rme.core import ids
from rme.core.db import clock
from rme.tenants import organizations

STORED_DAYS = 7
AT_ONCE = timedelta(seconds=2)
"""An open this soon after the email left was made by a scanner, not by a person."""


def store(delivery_id: UUID, kind: str, *, machine: bool) -> bool:
    """Store an open or a click by one statement; return whether it is new.

    Raise what `organizations.require_served` raises: while organizations move, that takes a query.
    """
    if not organizations.all_served():
        rows = Delivery.objects.filter(pk=delivery_id)
        for organization_id in rows.values_list("organization_id", flat=True):
            organizations.require_served(organization_id)
    since = clock.now() - AT_ONCE
    return hits.store(delivery_id, kind, machine=machine, machine_since=since)


def is_recent(delivery_id: UUID) -> bool:
    """Return whether a delivery is recent enough for its links to redirect."""
    age = clock.now() - ids.moment(delivery_id)
    return age < timedelta(days=settings.MESSAGE_RETENTION_DAYS)


def apply_due() -> int:
    """Apply one batch and return its size. Several workers may run this at once.

    An open that comes before the worker has recorded the outcome of the attempt is tried later, and
    so is one whose delivery another transaction has locked.
    """
    with transaction.atomic():
        due = hits.lock_due()
        if not due:
            return 0
        locked = locks.lock_free({hit.delivery_id for hit in due})
        ready = locked - _sending(locked)
        receipts.apply(
            [
                Receipt(hit.delivery_id, hit.kind, channel=Channel.EMAIL, machine=hit.machine)
                for hit in due
                if hit.delivery_id in ready
            ]
        )
        hits.finish(due, [hit.id for hit in due if hit.delivery_id not in ready])
    return len(due)


def _sending(delivery_ids: Collection[UUID]) -> set[UUID]:
    """Return those of some deliveries that a worker has at this moment."""
    rows = Delivery.objects.filter(pk__in=delivery_ids, status=Status.SENDING)
    return set(rows.values_list("pk", flat=True))


def purge() -> None:
    """Delete opens and clicks that are some days old, applied or not."""
    Hit.objects.filter(at__lt=clock.now() - timedelta(days=STORED_DAYS)).delete()
