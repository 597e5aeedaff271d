"""Devices of people: which are there to be reached."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from push.models import Device


@dataclass(frozen=True, slots=True)
class DeviceRecord:
    """A device as sending needs it. The token stays out of logs and reprs."""

    id: UUID
    contact_id: str
    platform: str
    app: str
    environment: str
    token: str = field(repr=False)


def active_devices(
    organization_id: str, contact_ids: Sequence[str]
) -> dict[str, list[DeviceRecord]]:
    """Find the active devices of contacts, oldest first, in one query.

    Contacts without a device are not in the answer.
    """
    rows = (
        Device.objects.filter(
            organization_id=organization_id, contact_id__in=contact_ids, active=True
        )
        .order_by("id")
        .values_list("id", "contact_id", "platform", "app", "environment", "token")
    )
    found: dict[str, list[DeviceRecord]] = {}
    for row in rows:
        found.setdefault(row[1], []).append(DeviceRecord(*row))
    return found
