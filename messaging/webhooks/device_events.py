"""The webhook events of devices that were registered or deactivated."""

from collections.abc import Sequence

from messaging.models.endpoints import ChangeType
from messaging.webhooks import changes
from push.device_changes import DeviceChange, What
from rme.core.db import clock

_ENDS = frozenset({What.DEACTIVATED, What.REMOVED})


def write(changed: Sequence[DeviceChange]) -> None:
    """Write the webhook deliveries of changes, in the transaction of the change."""
    changes.write_changes([_change(each) for each in changed])


def _change(change: DeviceChange) -> changes.ChangeEvent:
    ended = change.what in _ENDS
    data: dict[str, object] = {
        "deviceId": str(change.id),
        "contactId": change.contact_id or None,
        "userId": change.user_id or None,
        "platform": change.platform,
        "app": change.app or None,
        "active": not ended,
        "registeredAt": clock.iso(change.registered_at),
        "change": change.what,
        "reason": change.reason or None,
    }
    kind = ChangeType.DEVICE_DEACTIVATED if ended else ChangeType.DEVICE_REGISTERED
    return changes.ChangeEvent(change.organization_id, kind, data, test=change.test)
