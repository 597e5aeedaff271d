"""Changes of consent, suppressions and devices: the webhook deliveries that they cause.

They are written in the transaction of the change, at most by one statement. Their payload is kept
in the delivery, since no event of a message holds it. Payloads have no addresses and no tokens.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from messaging.models import WebhookDelivery
from messaging.models.endpoints import ChangeType
from messaging.webhooks import endpoints
from rme.core import ids
from rme.core.db import sql


@dataclass(frozen=True, slots=True)
class Change:
    """A change that endpoints may subscribe to. `id` is its webhook-id, whose time is its own."""

    organization_id: str
    type: ChangeType
    data: Mapping[str, object]
    id: str = field(default_factory=ids.new_text_id)


def write_changes(changes: Sequence[Change]) -> None:
    """Write the webhook deliveries of changes, by one statement; none if nobody subscribes."""
    sql.insert({WebhookDelivery: webhook_deliveries(changes)})


def webhook_deliveries(changes: Sequence[Change]) -> list[sql.Row]:
    """Return the webhook deliveries of changes, for `sql.insert`."""
    if not changes:
        return []
    subscribed = endpoints.subscriptions({each.organization_id for each in changes})
    return [
        {
            "organization_id": change.organization_id,
            "endpoint_id": endpoint.endpoint_id,
            "event_id": change.id,
            "type": str(change.type),
            "data": change.data,
        }
        for change in changes
        for endpoint in subscribed[change.organization_id]
        if endpoint.includes(change.type)
    ]
