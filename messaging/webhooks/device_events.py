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


def _change(each: DeviceChange) -> changes.Change:
    ended = each.what in _ENDS
    data: dict[str, object] = {
        "deviceId": str(each.id),
        "contactId": each.contact_id or None,
        "userId": each.user_id or None,
        "platform": each.platform,
        "app": each.app or None,
        "active": not ended,
        "registeredAt": clock.iso(each.registered_at),
        "change": each.what,
        "reason": each.reason or None,
    }
    kind = ChangeType.DEVICE_DEACTIVATED if ended else ChangeType.DEVICE_REGISTERED
    return changes.Change(each.organization_id, kind, data)
