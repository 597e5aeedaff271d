"""Cancelling a scheduled message. Of a cancel and the message's release, only one ever wins."""

from uuid import UUID

from django.db import transaction

from messaging.models import Delivery
from messaging.models.statuses import EventType, Status
from messaging.models.transitions import Transition, apply_transitions
from messaging.webhooks.events import EventRow, write_events
from rme.core import errors, ids
from rme.core.db import clock


def cancel(organization_id: str, message_id: str) -> UUID:
    """Cancel the scheduled deliveries of a message, and return its id.

    A message that was cancelled before is no error. Raises NotFound, and NotCancellable for a
    message without a scheduled delivery.
    """
    found = ids.parse(message_id)
    if found is None:
        raise errors.NotFound("There is no such message.")
    deliveries = Delivery.objects.filter(organization_id=organization_id, message_id=found)
    # Only scheduled deliveries are locked, so that no worker waits for a cancel. The second of two
    # concurrent cancels waits here, and finds the deliveries no longer scheduled.
    scheduled = deliveries.filter(status=Status.SCHEDULED).order_by("pk").select_for_update()
    with transaction.atomic():
        rows = list(scheduled.values_list("pk", "channel"))
        if not rows:  # read after the lock, so that another cancel's result is seen
            _require_cancelled(message_id, set(deliveries.values_list("status", flat=True)))
            return found
        now = clock.now()
        cancelled = apply_transitions(
            [
                Transition(id=delivery_id, status=Status.CANCELLED, due_at=None)
                for delivery_id, _ in rows
            ]
        )
        write_events(
            [
                EventRow(
                    organization_id, found, delivery_id, EventType.CANCELLED, now, channel=channel
                )
                for delivery_id, channel in rows
                if delivery_id in cancelled
            ]
        )
    return found


def _require_cancelled(message_id: str, statuses: set[str]) -> None:
    """Raise unless a message without a scheduled delivery has been cancelled."""
    if not statuses:
        raise errors.NotFound("There is no such message.")
    if Status.CANCELLED not in statuses:
        raise errors.NotCancellable(message_id=message_id)
