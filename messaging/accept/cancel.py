"""Cancelling a scheduled message. Of a cancel and the message's release, only one ever wins."""

from collections.abc import Collection
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet

from messaging.domain.progress.transitions import Transition
from messaging.domain.statuses import EventType, Status
from messaging.models import Delivery
from messaging.store.archived import archive
from messaging.store.events import EventRow, write_events
from messaging.store.lookups import of_message
from messaging.store.transitions import apply_transitions
from rme.core import errors, ids
from rme.core.db import clock
from rme.tenants.oauth.authentication import Caller


def cancel(organization_id: str, message_id: str, by: Caller | None = None) -> UUID:
    """Cancel the scheduled deliveries of a message, and return its id.

    A TEST application only finds TEST messages. Cancelling twice is no error. Raises NotFound,
    Forbidden if the application may not send the message's category, and NotCancellable for a
    message without a scheduled delivery.
    """
    found = ids.parse(message_id)
    if found is None:
        raise errors.NotFound("This message doesn't exist.")
    deliveries = Delivery.objects.filter(of_message(found), organization_id=organization_id)
    if by is not None:
        _require_own(deliveries, by)
    with transaction.atomic():
        if not _cancel(organization_id, deliveries):
            # read after the lock, so that another cancel's result is seen
            statuses = set(deliveries.values_list("status", flat=True))
            _require_cancelled(message_id, statuses or _archived(organization_id, found))
    return found


def _require_own(deliveries: QuerySet[Delivery], by: Caller) -> None:
    """Raise NotFound or Forbidden, unless the caller may cancel the message."""
    first = deliveries.values_list("category", "test").first()
    if first is None:  # archived, so it was cancelled or sent
        if by.test:
            raise errors.NotFound("This message doesn't exist.")
        return
    category, is_test = first
    if by.test and not is_test:
        raise errors.NotFound("This message doesn't exist.")
    by.grants.require_send(category)


def cancel_deliveries(organization_id: str, delivery_ids: Collection[UUID]) -> set[UUID]:
    """Cancel those deliveries that are scheduled, and return their ids; three statements."""
    deliveries = Delivery.objects.filter(organization_id=organization_id, pk__in=delivery_ids)
    with transaction.atomic():
        return _cancel(organization_id, deliveries)


def _cancel(organization_id: str, deliveries: QuerySet[Delivery]) -> set[UUID]:
    """Cancel the scheduled ones of deliveries, and return their ids."""
    # Only scheduled deliveries are locked, so that no worker waits for a cancel. The second of two
    # concurrent cancels waits here, and finds the deliveries no longer scheduled.
    scheduled = deliveries.filter(status=Status.SCHEDULED).order_by("pk").select_for_update()
    rows = list(scheduled.values_list("pk", "message_id", "channel", "test"))
    now = clock.now()
    cancelled = apply_transitions(
        [Transition(id=key, status=Status.CANCELLED, due_at=None) for key, *_ in rows]
    )
    write_events(
        [
            EventRow(
                organization_id,
                message_id,
                key,
                EventType.CANCELLED,
                now,
                channel=channel,
                test=is_test,
            )
            for key, message_id, channel, is_test in rows
            if key in cancelled
        ]
    )
    return cancelled


def _archived(organization_id: str, message_id: UUID) -> set[str]:
    """Return the statuses of an archived message; empty if there is none."""
    archived = archive().find(Q(organization_id=organization_id), message_id)
    return {row.status for row in archived.deliveries} if archived else set()


def _require_cancelled(message_id: str, statuses: set[str]) -> None:
    """Raise unless a message without a scheduled delivery has been cancelled."""
    if not statuses:
        raise errors.NotFound("This message doesn't exist.")
    if Status.CANCELLED not in statuses:
        raise errors.NotCancellable(message_id=message_id)
