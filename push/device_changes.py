"""What changed about devices: reported in the transaction of the change, to a function.

Webhooks stand above this package, so the code that changes devices passes the function that writes
them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Self
from uuid import UUID

from push.models import Device

HISTORY = "jsonb_path_query_array({} || {}, '$[last-49 to last]')"
"""SQL that adds entries to a device's history and keeps the latest fifty."""


class What(StrEnum):
    """What happened to a device. The last two make it inactive, the others active."""

    REGISTERED = "REGISTERED"
    MOVED = "MOVED"
    ACTIVATED = "ACTIVATED"
    REPLACED = "REPLACED"
    DEACTIVATED = "DEACTIVATED"
    REMOVED = "REMOVED"


@dataclass(frozen=True, slots=True)
class DeviceChange:
    """A change of one device, without its token. `reason`: why it is inactive, else empty."""

    what: What
    id: UUID
    organization_id: str
    contact_id: str
    user_id: str
    platform: str
    app: str
    registered_at: datetime
    reason: str = ""
    test: bool = False

    @classmethod
    def of(cls, row: Device, kind: What) -> Self:
        """Return the change of a stored device."""
        return cls(
            kind,
            row.pk,
            row.organization_id,
            row.contact_id,
            row.user_id,
            row.platform,
            row.app,
            row.registered_at,
            row.inactive_reason if kind is What.DEACTIVATED else "",
            row.test,
        )


Report = Callable[[Sequence[DeviceChange]], None]
"""A function that is called within the transaction of the changes."""
