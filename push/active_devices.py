"""Active devices, as sending needs them.

SQL, because every accept and every claim runs it.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import Exists, OuterRef

from push.models import Device
from rme.core.db import clock, prepared_statements, sql
from rme.tenants.models import Organization

_T = Device._meta.db_table

_ACTIVE = f"""
SELECT id::text, contact_id, platform, app, environment, token, test,
  extract(epoch FROM registered_at)::float8
FROM {_T} WHERE organization_id = %s AND contact_id = ANY(%s::text[]) AND active ORDER BY id
"""
# LATERAL with OFFSET looks each contact up by the index, whatever the statistics say.
_ACTIVE_OF_MANY = f"""
SELECT wanted.organization_id, d.*
FROM unnest(%s::text[], %s::text[]) wanted(organization_id, contact_id), LATERAL (
  SELECT id::text, contact_id, platform, app, environment, token, test,
    extract(epoch FROM registered_at)::float8
  FROM {_T} WHERE organization_id = wanted.organization_id AND active
    AND {sql.by_key("contact_id", "wanted.contact_id")}
  ORDER BY id OFFSET 0) d
"""


class DeviceRecord(NamedTuple):
    """A device as sending needs it. Its repr leaves out the token."""

    id: str
    contact_id: str
    platform: str
    app: str
    environment: str
    token: str
    test: bool = False
    registered_at: datetime | None = None

    def __repr__(self) -> str:
        return f"DeviceRecord({self.id}, {self.platform})"


def active_devices(
    organization_id: str, contact_ids: Sequence[str], *, test: bool = False
) -> dict[str, list[DeviceRecord]]:
    """Return the active devices by contact, oldest first, by one query.

    Contacts without a device are left out. `test`: include the devices of TEST applications,
    which also get TEST messages.
    """
    rows = prepared_statements.execute(_ACTIVE, [organization_id, sql.array(contact_ids)])
    by_contact = _by_contact(rows)
    if test:
        return by_contact
    return {
        each: live for each, devices in by_contact.items() if (live := reached(devices, test=False))
    }


def reached(devices: Sequence[DeviceRecord], *, test: bool) -> list[DeviceRecord]:
    """Return the devices that get a message; `test`: a TEST message."""
    return [each for each in devices if test or not each.test]


def active_devices_of_many(
    contacts_by_organization: Mapping[str, Sequence[str]],
) -> dict[str, dict[str, list[DeviceRecord]]]:
    """Return the active devices by organization and contact, oldest first, by one query.

    Those of TEST applications are among them (see `reached`).
    """
    pairs = [
        (each, contact_id)
        for each, contacts in contacts_by_organization.items()
        for contact_id in contacts
    ]
    columns = [sql.array([pair[0] for pair in pairs]), sql.array([pair[1] for pair in pairs])]
    rows: dict[str, list[tuple[Any, ...]]] = {each: [] for each in contacts_by_organization}
    for organization_id, *row in prepared_statements.execute(_ACTIVE_OF_MANY, columns):
        rows[organization_id].append(tuple(row))
    return {each: _by_contact(device_rows) for each, device_rows in rows.items()}


def _by_contact(rows: Iterable[tuple[Any, ...]]) -> dict[str, list[DeviceRecord]]:
    devices: dict[str, list[DeviceRecord]] = {}
    for *row, registered in rows:
        record = DeviceRecord._make((*row, clock.of_epoch(registered)))
        devices.setdefault(record.contact_id, []).append(record)
    return devices


def with_browsers(organization_ids: Sequence[str]) -> set[str]:
    """Return the organizations that have browsers among their active devices, by one query."""
    browsers = Device.objects.filter(organization_id=OuterRef("pk"), active=True, platform="WEB")
    organizations = Organization.objects.filter(Exists(browsers), pk__in=organization_ids)
    return set(organizations.values_list("pk", flat=True))
