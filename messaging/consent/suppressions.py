"""Addresses and contacts that must not be written to: asking, adding, finding and lifting.

An entry that has expired counts nowhere as being there.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from messaging.consent import gate_lock
from messaging.models import Suppression
from rme.core import addresses, errors, ids
from rme.core.channels import ALL, Channel
from rme.core.db import sql
from rme.core.db.clock import iso
from rme.crm.contacts import get_contacts

_T = Suppression._meta.db_table

STRENGTH = ["COMPLAINT", "STOP", "HARD_BOUNCE"]
"""Reasons that take the place of a weaker one, the strongest first."""
PROTECTED = frozenset({"COMPLAINT", "STOP"})
"""The recipient's own word: the API lifts it never, an admin only with a reason."""

_COLUMNS = (
    "id, organization_id, channel, address, contact_id, reason, note, source, expires_at"  # given
)
_GONE = "t.expires_at <= now()"
_STRENGTH = f"coalesce(array_position(ARRAY{STRENGTH}, {{}}.reason::text), 99)"
# The unique indexes are two, and a statement may name one: so there are two inserts in one.
_INSERT = f"""
INSERT INTO {_T} AS t ({_COLUMNS}) SELECT {_COLUMNS} FROM given WHERE NOT ({{name}} = '')
ON CONFLICT (organization_id, {{name}}, channel) WHERE NOT ({{name}} = '') DO UPDATE SET
  id = CASE WHEN {_GONE} THEN excluded.id ELSE t.id END,
  created_at = CASE WHEN {_GONE} THEN excluded.created_at ELSE t.created_at END,
  reason = excluded.reason, source = excluded.source,
  note = CASE WHEN {_GONE} OR NOT (excluded.note = '') THEN excluded.note ELSE t.note END,
  expires_at = CASE WHEN {_GONE} THEN excluded.expires_at
    WHEN t.expires_at IS NULL OR excluded.expires_at IS NULL THEN NULL
    ELSE greatest(t.expires_at, excluded.expires_at) END
WHERE {_GONE} OR {_STRENGTH.format("excluded")} < {_STRENGTH.format("t")}
RETURNING id::text
"""
_PUT = f"""
WITH given AS MATERIALIZED (SELECT {_COLUMNS} FROM json_populate_recordset(NULL::{_T}, %s)),
by_address AS ({_INSERT.format(name="address")}),
by_contact AS ({_INSERT.format(name="contact_id")})
SELECT id FROM by_address UNION ALL SELECT id FROM by_contact
"""
_NAMED = f"""
SELECT * FROM {_T} WHERE organization_id = %s AND address = ANY(%s) AND NOT (address = '')
UNION ALL
SELECT * FROM {_T} WHERE organization_id = %s AND contact_id = ANY(%s) AND NOT (contact_id = '')
"""


class SuppressionKey(NamedTuple):
    """What an entry is about, which is there once."""

    organization_id: str
    channel: str
    address: str
    contact_id: str


@dataclass(frozen=True, slots=True)
class NewSuppression:
    """An address (in its normal form) or a contact to suppress, and why."""

    organization_id: str
    channel: str
    address: str
    reason: str
    source: str
    contact_id: str = ""
    note: str = ""
    expires_at: datetime | None = None

    @property
    def name(self) -> SuppressionKey:
        return SuppressionKey(self.organization_id, self.channel, self.address, self.contact_id)


@dataclass(frozen=True, slots=True)
class Change:
    """What was done to the list. Entries that were there and as strong are in neither."""

    added: frozenset[str]
    """The ids of the new entries."""
    replaced: int
    """Entries that took a stronger reason."""


def missing_contacts(organization_id: str, contact_ids: Iterable[str]) -> set[str]:
    """Return which contacts an organization does not have; one query for all.

    An entry of a mistyped contact would look like protection. Raises Unavailable where a remote
    platform fails. No transaction is open.
    """
    wanted = {each for each in contact_ids if each}
    return wanted - get_contacts(organization_id, list(wanted)).keys() if wanted else set()


def normalize_address(channel: str, address: str, region: str | None) -> str | None:
    """Give the normal form of an address on a channel, or ALL; None if it is none of that channel.

    Devices have no address that anybody could write down, so PUSH takes contacts alone.
    """
    mail = addresses.email(address) if channel in (Channel.EMAIL, ALL) else None
    return mail or (addresses.phone(address, region) if channel in (Channel.SMS, ALL) else None)


def suppress(entries: Sequence[NewSuppression]) -> Change:
    """Put entries on the list in one statement.

    Who calls this holds the gate lock, and took it before any row of a delivery (where there is
    none: `suppress_alone`). Only the worker that finds an address dead does without, since it
    shares the lock, and two that wanted it alone would wait for each other. Nobody has decided
    anything there: a window that has looked already may try the dead address once more.

    One that is there stays as it is, save that a stronger reason replaces a weaker one; then it
    lasts as long as the longer of both. Entries of one name count in their order.
    """
    rows = [
        {
            "id": ids.new_text_id(),
            **name._asdict(),
            "reason": entry.reason,
            "note": entry.note,
            "source": entry.source,
            "expires_at": entry.expires_at,
        }
        for name, entry in _by_name(entries)
    ]
    if not rows:
        return Change(frozenset(), 0)
    with connection.cursor() as cursor:
        cursor.execute(_PUT, [sql.as_json(rows)])
        written = {identifier for (identifier,) in cursor.fetchall()}
    added = written.intersection(str(row["id"]) for row in rows)
    return Change(frozenset(added), len(written) - len(added))


def suppress_alone(entries: Sequence[NewSuppression]) -> Change:
    """Put entries on the list while nobody looks at it. Belongs into a transaction."""
    gate_lock.take_exclusive(entry.organization_id for entry in entries)
    return suppress(entries)


def _by_name(entries: Iterable[NewSuppression]) -> list[tuple[SuppressionKey, NewSuppression]]:
    """Give what entries come to, in one order everywhere: two calls cannot deadlock."""
    found: dict[SuppressionKey, NewSuppression] = {}
    for entry in entries:
        name = entry.name
        kept = found.get(name)
        found[name] = entry if kept is None else _together(kept, entry)
    return sorted(found.items(), key=lambda pair: pair[0])


def _together(kept: NewSuppression, entry: NewSuppression) -> NewSuppression:
    if _strength(entry.reason) >= _strength(kept.reason):
        return kept
    both = kept.expires_at and entry.expires_at
    return replace(
        entry,
        note=entry.note or kept.note,
        expires_at=max(kept.expires_at, entry.expires_at) if both else None,  # type: ignore[type-var]
    )


def _strength(reason: str) -> int:
    return STRENGTH.index(reason) if reason in STRENGTH else len(STRENGTH)


def add(organization_id: str, entries: Sequence[NewSuppression]) -> list[tuple[Suppression, bool]]:
    """Suppress, and give for each entry what is on the list now and whether it is new."""
    named, contacts = [e.address for e in entries], [e.contact_id for e in entries]
    with transaction.atomic():  # what the first statement found there is locked until the second
        change = suppress_alone(entries)
        rows = Suppression.objects.raw(_NAMED, [organization_id, named, organization_id, contacts])
        found = {
            SuppressionKey(organization_id, row.channel, row.address, row.contact_id): row
            for row in rows
        }
    stored = [found[entry.name] for entry in entries]
    return [(row, str(row.pk) in change.added) for row in stored]


def current(organization_id: str) -> QuerySet[Suppression]:
    """Give an organization's entries that have not expired."""
    lasting = Q(expires_at=None) | Q(expires_at__gt=Now())
    return Suppression.objects.filter(lasting, organization_id=organization_id)


def find(
    organization_id: str, *, limit: int, before: UUID | None = None, **wanted: str | None
) -> tuple[list[Suppression], UUID | None]:
    """Give a page of entries, newest first, and the id after which the next page begins.

    `wanted` names columns (channel, address, contact_id, reason) and what they must hold.
    """
    rows = _having(organization_id, wanted)
    if before:
        rows = rows.filter(pk__lt=before)
    page = list(rows.order_by("-pk")[: limit + 1])
    return page[:limit], page[limit - 1].pk if len(page) > limit else None


def lift(organization_id: str, **wanted: str | UUID | None) -> None:
    """Take the one entry off the list that the columns name.

    Raises NotFound, and SuppressionProtected for what only the recipient or an admin may lift.
    """
    with transaction.atomic():
        row = _having(organization_id, wanted).select_for_update().first()
        if row is None:
            raise errors.NotFound("There is no such suppression.")
        if row.reason in PROTECTED:
            raise errors.SuppressionProtected
        row.delete()


def _having(organization_id: str, wanted: Any) -> QuerySet[Suppression]:
    given = {column: value for column, value in wanted.items() if value}
    # The indexes on names hold only rows that have one, and the planner has to be told.
    named = (~Q(**{column: ""}) for column in ("address", "contact_id") if column in given)
    return current(organization_id).filter(*named, **given)


def shown(row: Suppression) -> dict[str, Any]:
    """Give an entry as the API shows it."""
    return {
        "id": str(row.pk),
        "channel": row.channel,
        "address": row.address or None,
        "contactId": row.contact_id or None,
        "reason": row.reason,
        "note": row.note or None,
        "source": row.source,
        "createdAt": iso(row.created_at),
        "expiresAt": iso(row.expires_at),
    }
