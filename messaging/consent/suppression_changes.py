"""The webhook events of suppressions that were created, changed or lifted."""

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple, Self
from uuid import UUID

from messaging.models import Suppression
from messaging.models.endpoints import ChangeType
from messaging.webhooks import changes
from rme.core.db import clock


class ChangedSuppression(NamedTuple):
    """The columns of an entry that its webhook event shows. Its address is not among them."""

    id: UUID
    organization_id: str
    channel: str
    contact_id: str
    reason: str
    source: str
    created_at: datetime
    expires_at: datetime | None

    @classmethod
    def of(cls, row: Suppression) -> Self:
        """Return the columns of a stored entry."""
        return cls(*(getattr(row, name) for name in cls._fields))


def write_changes(
    changed: Iterable[tuple[ChangeType, ChangedSuppression]], *, test: bool = False
) -> None:
    """Write the webhook deliveries of changes, in the transaction of the change.

    `test`: the changes belong to the TEST layer.
    """
    changes.write_changes(
        [
            changes.ChangeEvent(each.organization_id, kind, _data(each), test=test)
            for kind, each in changed
        ]
    )


def _data(suppression: ChangedSuppression) -> dict[str, object]:
    return {
        "id": str(suppression.id),
        "channel": suppression.channel,
        "contactId": suppression.contact_id or None,
        "reason": suppression.reason,
        "source": suppression.source,
        "createdAt": clock.iso(suppression.created_at),
        "expiresAt": clock.iso(suppression.expires_at),
    }
