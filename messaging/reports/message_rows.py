"""The rows of messages, deliveries and events that reports show. One statement for each list."""

from collections import defaultdict
from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from messaging.models import Delivery, Event, Message
from rme.core import ids


class MessageRow(NamedTuple):
    """A message, without its content."""

    id: UUID
    category: str
    template: str
    language: str | None
    metadata: dict[str, str] | None
    test: bool
    created_at: datetime


class DeliveryRow(NamedTuple):
    """A delivery: one recipient of a message, and the channel that was chosen."""

    id: UUID
    message_id: UUID
    contact_id: str
    status: str
    channel: str | None
    provider: str | None
    reason: str | None
    detail: str | None
    waiting: str | None
    scheduled_for: datetime | None


class StoredEvent(NamedTuple):
    """An event of a delivery."""

    delivery_id: UUID
    type: str
    at: datetime
    channel: str | None
    provider: str | None
    detail: dict[str, object] | None


def read_messages(organization_id: str, message_ids: Collection[UUID]) -> list[MessageRow]:
    """Return an organization's messages, newest first."""
    rows = Message.objects.filter(organization_id=organization_id, pk__in=message_ids)
    return [MessageRow(*row) for row in rows.order_by("-id").values_list(*MessageRow._fields)]


def read_deliveries(message_ids: Collection[UUID]) -> dict[UUID, list[DeliveryRow]]:
    """Return the deliveries of messages, in the order of the recipients."""
    rows = Delivery.objects.filter(message_id__in=message_ids).order_by("message_id", "position")
    found: defaultdict[UUID, list[DeliveryRow]] = defaultdict(list)
    for row in rows.values_list(*DeliveryRow._fields):
        delivery = DeliveryRow(*row)
        found[delivery.message_id].append(delivery)
    return found


def read_events(message_id: UUID) -> list[StoredEvent]:
    """Return the events of a message in their order. The bound of the id spares partitions."""
    rows = Event.objects.filter(message_id=message_id, id__gte=ids.earliest_beside(message_id))
    return [
        StoredEvent(*row) for row in rows.order_by("at", "id").values_list(*StoredEvent._fields)
    ]
