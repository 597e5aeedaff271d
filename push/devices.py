"""Devices of contacts and users: registering, listing, replacing and removing them.

Within an organization a token belongs to the contact or user that registered it last.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace as replace_fields
from typing import Any, NamedTuple
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from push import device_tokens
from push.device_changes import HISTORY, DeviceChange, Report, What
from push.device_tokens import DeviceToken
from push.models import Device
from rme.core import errors, ids
from rme.core.db import keyset, sql
from rme.crm.contacts import get_contacts

_T = Device._meta.db_table


@dataclass(frozen=True, slots=True)
class Registration:
    """The properties of a device to register. Missing texts are empty."""

    platform: str
    token: DeviceToken
    contact_id: str = ""
    user_id: str = ""
    app: str = ""
    environment: str = "PRODUCTION"
    locale: str = ""
    zone: str = ""
    name: str = ""
    test: bool = False

    def in_test(self) -> "Registration":
        """Return the registration for a TEST application."""
        return replace_fields(self, token=self.token.in_test(), test=True)

    def row(self, organization_id: str) -> sql.Row:
        """Return the columns of a new device."""
        return {
            "id": ids.new_text_id(),
            "organization_id": organization_id,
            "contact_id": self.contact_id,
            "user_id": self.user_id,
            "platform": self.platform,
            "app": self.app,
            "token": self.token.text,
            "token_digest": self.token.digest,
            "environment": self.environment,
            "name": self.name,
            "test": self.test,
            "locale": self.locale,
            "zone": self.zone,
            "active": True,
            "inactive_reason": "",
        }


_GIVEN = (
    "contact_id",
    "user_id",
    "platform",
    "app",
    "token",
    "environment",
    "name",
    "locale",
    "zone",
)
_COLUMNS = f"id, organization_id, token_digest, test, active, inactive_reason, {', '.join(_GIVEN)}"
_ENTRY = (
    "jsonb_build_array(jsonb_build_object('at', statement_timestamp(), 'what', {}, 'reason', ''))"
)
_MOVED = "(t.contact_id, t.user_id) <> (excluded.contact_id, excluded.user_id)"
_WHAT = f"CASE WHEN {_MOVED} THEN 'MOVED' ELSE 'ACTIVATED' END"
_REGISTER = f"""
INSERT INTO {_T} AS t ({_COLUMNS}, history)
SELECT {_COLUMNS}, {_ENTRY.format("'REGISTERED'")} FROM json_populate_recordset(NULL::{_T}, %s)
ON CONFLICT (organization_id, token_digest) DO UPDATE SET
  {", ".join(f"{name} = excluded.{name}" for name in _GIVEN)},
  active = true, inactive_reason = '', inactive_since = NULL,
  registered_at = statement_timestamp(), last_seen_at = statement_timestamp(),
  history = CASE WHEN t.active AND NOT {_MOVED} THEN t.history
    ELSE {HISTORY.format("t.history", _ENTRY.format(_WHAT))} END
RETURNING t.*, xmax = 0 AS is_new,
  CASE WHEN (t.history -> -1 ->> 'at')::timestamptz = statement_timestamp()
    THEN t.history -> -1 ->> 'what' END AS what
"""


class RegisteredDevice(NamedTuple):
    """A registered device, and whether it is new."""

    device: Device
    is_new: bool


def register(
    organization_id: str,
    registrations: Sequence[Registration | errors.ApiError],
    report: Report,
    *,
    test: bool = False,
) -> list[RegisteredDevice | errors.ApiError]:
    """Register devices and return a result for each, in order, by one query and one statement.

    A known token is the same device, active again and with its new owner. If a token is given
    twice, the last counts. An error fails its entry alone. What changed is reported in the
    transaction; a token that was registered and active, with the same owner, is no change. `test`:
    for a TEST application, whose devices are separate even with the same token.
    """
    if test:
        registrations = [
            each.in_test() if isinstance(each, Registration) else each for each in registrations
        ]
    stated = [each for each in registrations if isinstance(each, Registration)]
    contact_ids = {each.contact_id for each in stated if each.contact_id}
    contacts = get_contacts(organization_id, list(contact_ids))
    unknown = errors.NotFound.at("contactId", "no such contact")
    results = [
        unknown
        if isinstance(each, Registration) and each.contact_id and each.contact_id not in contacts
        else each
        for each in registrations
    ]
    stated = [each for each in results if isinstance(each, Registration)]
    with transaction.atomic(savepoint=False):
        devices_by_digest = _store(organization_id, stated, report)
    return [
        devices_by_digest[each.token.digest] if isinstance(each, Registration) else each
        for each in results
    ]


def _store(
    organization_id: str, registrations: Sequence[Registration], report: Report
) -> dict[str, RegisteredDevice]:
    last = {each.token.digest: each.row(organization_id) for each in registrations}
    if not last:
        return {}
    # In a fixed order, so that two calls with the same tokens cannot deadlock.
    rows = [last[digest] for digest in sorted(last)]
    devices = list(Device.objects.raw(_REGISTER, [sql.as_json(rows)]))
    changed = [(row, vars(row)["what"]) for row in devices]
    report([DeviceChange.of(row, What(change)) for row, change in changed if change])
    return {row.token_digest: RegisteredDevice(row, vars(row)["is_new"]) for row in devices}


def replace(
    organization_id: str,
    device_id: str,
    token_value: object,
    report: Report,
    *,
    test: bool = False,
) -> Device:
    """Store a device's new token, as after a browser's `pushsubscriptionchange`.

    Another device with this token was the same one, and is deleted. Raises NotFound, and
    InvalidPayload for what is not a token of the device's platform.
    """
    with transaction.atomic():
        device = _own(organization_id, device_id, test=test).select_for_update().first()
        if device is None:
            raise errors.NotFound(_UNKNOWN)
        token = device_tokens.parse(device.platform, token_value)
        token = token.in_test() if test else token
        same_token = Device.objects.filter(
            organization_id=organization_id, token_digest=token.digest
        )
        duplicates = list(same_token.exclude(pk=device.pk).select_for_update())
        Device.objects.filter(pk__in=[row.pk for row in duplicates]).delete()
        (replaced,) = Device.objects.raw(_REPLACE, [token.text, token.digest, device.pk])
        removed = [DeviceChange.of(row, What.REMOVED) for row in duplicates]
        report([*removed, DeviceChange.of(replaced, What.REPLACED)])
    return replaced


_REPLACE = f"""
UPDATE {_T} t SET token = %s, token_digest = %s, active = true, inactive_reason = '',
  inactive_since = NULL, registered_at = statement_timestamp(),
  last_seen_at = statement_timestamp(),
  history = {HISTORY.format("t.history", _ENTRY.format("'REPLACED'"))}
WHERE t.id = %s RETURNING t.*
"""
_UNKNOWN = "This device doesn't exist."


def remove(organization_id: str, device_id: str, report: Report, *, test: bool = False) -> None:
    """Delete a device. Raises NotFound."""
    with transaction.atomic():
        rows = list(_own(organization_id, device_id, test=test).select_for_update())
        if not rows:
            raise errors.NotFound(_UNKNOWN)
        Device.objects.filter(pk__in=[row.pk for row in rows]).delete()
        report([DeviceChange.of(row, What.REMOVED) for row in rows])


def move(moved: QuerySet[Device], contact_id: str, report: Report) -> None:
    """Let devices belong to another contact. Must be called within a transaction."""
    rows = list(moved.select_for_update())
    Device.objects.filter(pk__in=[row.pk for row in rows]).update(contact_id=contact_id)
    changed = [DeviceChange.of(row, What.MOVED) for row in rows]
    report([replace_fields(each, contact_id=contact_id) for each in changed])


def _own(organization_id: str, device_id: str, *, test: bool) -> Any:
    key = ids.parse(device_id)
    rows = Device.objects.filter(organization_id=organization_id, test=test)
    return rows.filter(pk=key) if key else rows.none()


# --- reading --------------------------------------------------------------------------------------


def find(
    organization_id: str,
    *,
    limit: int,
    contact_id: str | None = None,
    before: UUID | None = None,
    test: bool = False,
) -> keyset.Page[Device]:
    """Return a page of devices, newest first.

    `test`: return the devices of TEST applications instead of the live ones.
    """
    rows = Device.objects.filter(organization_id=organization_id, test=test)
    if contact_id:
        rows = rows.filter(contact_id=contact_id)
    return keyset.page(rows, limit=limit, before=before)
