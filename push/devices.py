"""Devices of contacts and users: registering, finding, replacing and removing them.

Within an organization a token belongs to the contact or user that registered it last.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as replace_fields
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from push import device_tokens
from push.device_changes import DeviceChange, Report, What
from push.device_tokens import DeviceToken
from push.models import Device
from rme.core import errors, ids
from rme.core.db import clock, prepared_statements, sql
from rme.crm.contacts import get_contacts
from rme.tenants.models import Organization

_T = Device._meta.db_table

# SQL, because every accept and every claim runs it.
_ACTIVE = f"""
SELECT id::text, contact_id, platform, app, environment, token,
  extract(epoch FROM registered_at)::float8
FROM {_T} WHERE organization_id = %s AND contact_id = ANY(%s::text[]) AND active ORDER BY id
"""
# LATERAL with OFFSET looks each contact up by the index, whatever the statistics say.
_ACTIVE_OF_MANY = f"""
SELECT wanted.organization_id, d.*
FROM unnest(%s::text[], %s::text[]) wanted(organization_id, contact_id), LATERAL (
  SELECT id::text, contact_id, platform, app, environment, token,
    extract(epoch FROM registered_at)::float8
  FROM {_T} WHERE organization_id = wanted.organization_id AND active
    AND {sql.by_key("contact_id", "wanted.contact_id")}
  ORDER BY id OFFSET 0) d
"""

HISTORY = "jsonb_path_query_array({} || {}, '$[last-49 to last]')"
"""SQL that adds entries to a device's history and keeps the latest fifty."""


class DeviceRecord(NamedTuple):
    """A device as sending needs it. Its repr leaves out the token."""

    id: str
    contact_id: str
    platform: str
    app: str
    environment: str
    token: str
    registered_at: datetime | None = None

    def __repr__(self) -> str:
        return f"DeviceRecord({self.id}, {self.platform})"


def active_devices(
    organization_id: str, contact_ids: Sequence[str]
) -> dict[str, list[DeviceRecord]]:
    """Return the active devices by contact, oldest first, by one query.

    Contacts without a device are left out.
    """
    rows = prepared_statements.execute(_ACTIVE, [organization_id, sql.array(contact_ids)])
    return _by_contact(rows)


def active_devices_of_many(
    wanted: Mapping[str, Sequence[str]],
) -> dict[str, dict[str, list[DeviceRecord]]]:
    """Return the active devices by organization and contact, oldest first, by one query.

    `wanted` holds the contacts of each organization.
    """
    pairs = [(each, contact_id) for each, some in wanted.items() for contact_id in some]
    columns = [sql.array([pair[0] for pair in pairs]), sql.array([pair[1] for pair in pairs])]
    rows: dict[str, list[tuple[Any, ...]]] = {each: [] for each in wanted}
    for organization_id, *row in prepared_statements.execute(_ACTIVE_OF_MANY, columns):
        rows[organization_id].append(tuple(row))
    return {each: _by_contact(some) for each, some in rows.items()}


def _by_contact(rows: Iterable[tuple[Any, ...]]) -> dict[str, list[DeviceRecord]]:
    found: dict[str, list[DeviceRecord]] = {}
    for *row, registered in rows:
        record = DeviceRecord._make((*row, clock.of_epoch(registered)))
        found.setdefault(record.contact_id, []).append(record)
    return found


def with_browsers(organization_ids: Sequence[str]) -> set[str]:
    """Return the organizations that have browsers among their active devices, by one query."""
    browsers = Device.objects.filter(organization_id=OuterRef("pk"), active=True, platform="WEB")
    own = Organization.objects.filter(Exists(browsers), pk__in=organization_ids)
    return set(own.values_list("pk", flat=True))


# --- registering ----------------------------------------------------------------------------------


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
_COLUMNS = f"id, organization_id, token_digest, active, inactive_reason, {', '.join(_GIVEN)}"
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
    organization_id: str, given: Sequence[Registration | errors.ApiError], report: Report
) -> list[RegisteredDevice | errors.ApiError]:
    """Register devices and return a result for each, in order, by one query and one statement.

    A known token is the same device, active again and with its new owner. If a token is given
    twice, the last counts. An error fails its entry alone. What changed is reported in the
    transaction; a token that was registered and active, with the same owner, is no change.
    """
    stated = [each for each in given if isinstance(each, Registration)]
    wanted = {each.contact_id for each in stated if each.contact_id}
    contacts = get_contacts(organization_id, list(wanted))
    unknown = errors.NotFound.at("contactId", "no such contact")
    results = [
        unknown
        if isinstance(each, Registration) and each.contact_id and each.contact_id not in contacts
        else each
        for each in given
    ]
    stated = [each for each in results if isinstance(each, Registration)]
    with transaction.atomic(savepoint=False):
        found = _store(organization_id, stated, report)
    return [
        found[each.token.digest] if isinstance(each, Registration) else each for each in results
    ]


def _store(
    organization_id: str, given: Sequence[Registration], report: Report
) -> dict[str, RegisteredDevice]:
    last = {each.token.digest: each.row(organization_id) for each in given}
    if not last:
        return {}
    # In a fixed order, so that two calls with the same tokens cannot deadlock.
    rows = [last[digest] for digest in sorted(last)]
    stored = list(Device.objects.raw(_REGISTER, [sql.as_json(rows)]))
    changed = [(row, vars(row)["what"]) for row in stored]
    report([DeviceChange.of(row, What(what)) for row, what in changed if what])
    return {row.token_digest: RegisteredDevice(row, vars(row)["is_new"]) for row in stored}


def replace(organization_id: str, device_id: str, given: object, report: Report) -> Device:
    """Store a device's new token, as after a browser's `pushsubscriptionchange`.

    Another device with this token was the same one, and is deleted. Raises NotFound, and
    InvalidPayload for what is not a token of the device's platform.
    """
    with transaction.atomic():
        device = _own(organization_id, device_id).select_for_update().first()
        if device is None:
            raise errors.NotFound(_UNKNOWN)
        token = device_tokens.parse(device.platform, given)
        own = Device.objects.filter(organization_id=organization_id, token_digest=token.digest)
        same = list(own.exclude(pk=device.pk).select_for_update())
        Device.objects.filter(pk__in=[row.pk for row in same]).delete()
        (replaced,) = Device.objects.raw(_REPLACE, [token.text, token.digest, device.pk])
        removed = [DeviceChange.of(row, What.REMOVED) for row in same]
        report([*removed, DeviceChange.of(replaced, What.REPLACED)])
    return replaced


_REPLACE = f"""
UPDATE {_T} t SET token = %s, token_digest = %s, active = true, inactive_reason = '',
  inactive_since = NULL, registered_at = statement_timestamp(),
  last_seen_at = statement_timestamp(),
  history = {HISTORY.format("t.history", _ENTRY.format("'REPLACED'"))}
WHERE t.id = %s RETURNING t.*
"""
_UNKNOWN = "There is no such device."


def remove(organization_id: str, device_id: str, report: Report) -> None:
    """Delete a device. Raises NotFound."""
    with transaction.atomic():
        rows = list(_own(organization_id, device_id).select_for_update())
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


def _own(organization_id: str, device_id: str) -> Any:
    key = ids.parse(device_id)
    rows = Device.objects.filter(organization_id=organization_id)
    return rows.filter(pk=key) if key else rows.none()


# --- reading --------------------------------------------------------------------------------------


def find(
    organization_id: str, *, limit: int, contact_id: str | None = None, before: UUID | None = None
) -> tuple[list[Device], UUID | None]:
    """Return a page of devices, newest first, and the id after which the next page begins."""
    rows = Device.objects.filter(organization_id=organization_id)
    if contact_id:
        rows = rows.filter(contact_id=contact_id)
    if before:
        rows = rows.filter(pk__lt=before)
    page = list(rows.order_by("-pk")[: limit + 1])
    return page[:limit], page[limit - 1].pk if len(page) > limit else None
