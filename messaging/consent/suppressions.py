"""The suppression list: addresses and contacts that must not be written to on a channel.

An entry that has expired counts as absent. `gates.active_suppressions` reads the list for a send;
`suppress` is on the same hot path (bounces and complaints), hence its SQL.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from messaging.consent import gate_lock
from messaging.consent.suppression_changes import ChangedSuppression, write_changes
from messaging.models import Suppression
from messaging.models.endpoints import ChangeType
from rme.core import addresses, errors, ids
from rme.core.channels import ALL, Channel
from rme.core.db import sql
from rme.crm.contacts import get_contacts

_TABLE = Suppression._meta.db_table
_UNKNOWN = "There is no such suppression."

STRENGTH = ["COMPLAINT", "STOP", "HARD_BOUNCE"]
"""Reasons that replace a weaker one, strongest first."""
PROTECTED = frozenset({"COMPLAINT", "STOP"})
"""Decided by the recipient: the API never lifts these, an admin only with a reason."""

_COLUMNS = "id, organization_id, channel, address, contact_id, reason, note, source, expires_at"
_EXPIRED = "t.expires_at <= now()"
_STRENGTH = f"coalesce(array_position(ARRAY{STRENGTH}, {{}}.reason::text), 99)"
# There are two unique indexes, and ON CONFLICT can name only one: so one statement has two inserts.
_INSERT = f"""
INSERT INTO {_TABLE} AS t ({_COLUMNS}) SELECT {_COLUMNS} FROM input WHERE NOT ({{name}} = '')
ON CONFLICT (organization_id, {{name}}, channel) WHERE NOT ({{name}} = '') DO UPDATE SET
  id = CASE WHEN {_EXPIRED} THEN excluded.id ELSE t.id END,
  created_at = CASE WHEN {_EXPIRED} THEN excluded.created_at ELSE t.created_at END,
  reason = excluded.reason, source = excluded.source,
  note = CASE WHEN {_EXPIRED} OR NOT (excluded.note = '') THEN excluded.note ELSE t.note END,
  expires_at = CASE WHEN {_EXPIRED} THEN excluded.expires_at
    WHEN t.expires_at IS NULL OR excluded.expires_at IS NULL THEN NULL
    ELSE greatest(t.expires_at, excluded.expires_at) END
WHERE {_EXPIRED} OR {_STRENGTH.format("excluded")} < {_STRENGTH.format("t")}
RETURNING id, organization_id, channel, contact_id, reason, source, created_at, expires_at
"""
_UPSERT = f"""
WITH input AS MATERIALIZED (SELECT {_COLUMNS} FROM json_populate_recordset(NULL::{_TABLE}, %s)),
by_address AS ({_INSERT.format(name="address")}),
by_contact AS ({_INSERT.format(name="contact_id")})
SELECT * FROM by_address UNION ALL SELECT * FROM by_contact
"""


class SuppressionKey(NamedTuple):
    """What an entry is about. The list has one entry for each key."""

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
    def key(self) -> SuppressionKey:
        """Return what the entry is about."""
        return SuppressionKey(self.organization_id, self.channel, self.address, self.contact_id)


@dataclass(frozen=True, slots=True)
class Change:
    """What a write changed. Entries that were listed and as strong are in neither."""

    added: frozenset[str]
    """The ids of the new entries."""
    replaced: int
    """The number of entries that took a stronger reason."""


def missing_contacts(organization_id: str, contact_ids: Iterable[str]) -> set[str]:
    """Return which contacts an organization does not have; one query for all.

    An entry with a mistyped contact id would have no effect. Raises Unavailable if a remote
    platform fails. Must not be called within a transaction.
    """
    wanted = {each for each in contact_ids if each}
    return wanted - get_contacts(organization_id, list(wanted)).keys() if wanted else set()


def normalize_address(channel: str, address: str, region: str | None) -> str | None:
    """Return the normal form of an address on a channel or ALL, or None if it is not valid there.

    PUSH has no addresses, only contacts.
    """
    email = addresses.email(address) if channel in (Channel.EMAIL, ALL) else None
    return email or (addresses.phone(address, region) if channel in (Channel.SMS, ALL) else None)


def suppress(entries: Sequence[NewSuppression]) -> Change:
    """Put entries on the list in one statement, and write their webhook deliveries by another.

    The caller holds the gate lock, and took it before any row of a delivery; otherwise use
    `suppress_alone`. The one exception is the worker that finds an address dead: it shares the
    lock, and two workers that both wanted it alone would deadlock. No person decided there, so it
    does no harm that a window that was already checked may try the dead address once more.

    An entry that is listed stays as it is, except that a stronger reason replaces a weaker one;
    then it lasts as long as the longer of both. Entries with one key are merged in their order.
    """
    rows = [
        {
            "id": ids.new_text_id(),
            **key._asdict(),
            "reason": entry.reason,
            "note": entry.note,
            "source": entry.source,
            "expires_at": entry.expires_at,
        }
        for key, entry in _merged(entries)
    ]
    if not rows:
        return Change(frozenset(), 0)
    new = {row["id"] for row in rows}
    with transaction.atomic(savepoint=False), connection.cursor() as cursor:
        cursor.execute(_UPSERT, [sql.as_json(rows)])
        written = [ChangedSuppression(*row) for row in cursor.fetchall()]
        added = frozenset(str(each.id) for each in written).intersection(new)
        created, changed = ChangeType.SUPPRESSION_CREATED, ChangeType.SUPPRESSION_CHANGED
        write_changes((created if str(each.id) in new else changed, each) for each in written)
    return Change(added, len(written) - len(added))


def suppress_alone(entries: Sequence[NewSuppression]) -> Change:
    """Take the gate lock alone and put entries on the list. Must be called within a transaction."""
    gate_lock.take_exclusive(entry.organization_id for entry in entries)
    return suppress(entries)


def _merged(entries: Iterable[NewSuppression]) -> list[tuple[SuppressionKey, NewSuppression]]:
    """Return one entry for each key, in one order everywhere, so that two calls cannot deadlock."""
    merged: dict[SuppressionKey, NewSuppression] = {}
    for entry in entries:
        earlier = merged.get(entry.key)
        merged[entry.key] = entry if earlier is None else _stronger(earlier, entry)
    return sorted(merged.items(), key=lambda pair: pair[0])


def _stronger(earlier: NewSuppression, later: NewSuppression) -> NewSuppression:
    """Return the entry with the stronger reason, with the later expiry of both."""
    if _strength(later.reason) >= _strength(earlier.reason):
        return earlier
    expires_at = None
    if earlier.expires_at and later.expires_at:
        expires_at = max(earlier.expires_at, later.expires_at)
    return replace(later, note=later.note or earlier.note, expires_at=expires_at)


def _strength(reason: str) -> int:
    return STRENGTH.index(reason) if reason in STRENGTH else len(STRENGTH)


class ListEntry(NamedTuple):
    """An entry as it is on the list now, and whether it is new."""

    row: Suppression
    new: bool


def add(organization_id: str, entries: Sequence[NewSuppression]) -> list[ListEntry]:
    """Suppress, and return for each entry what is on the list now. Two statements and a lock."""
    by_address = Suppression.objects.filter(
        ~Q(address=""), organization_id=organization_id, address__in=[e.address for e in entries]
    )
    by_contact = Suppression.objects.filter(
        ~Q(contact_id=""),
        organization_id=organization_id,
        contact_id__in=[e.contact_id for e in entries],
    )
    with transaction.atomic():  # the rows that the first statement wrote stay locked until the end
        change = suppress_alone(entries)
        found = {
            SuppressionKey(organization_id, row.channel, row.address, row.contact_id): row
            for row in by_address.union(by_contact, all=True)
        }
    rows = [found[entry.key] for entry in entries]
    return [ListEntry(row, str(row.pk) in change.added) for row in rows]


def current(organization_id: str) -> QuerySet[Suppression]:
    """Return an organization's entries that have not expired."""
    lasting = Q(expires_at=None) | Q(expires_at__gt=Now())
    return Suppression.objects.filter(lasting, organization_id=organization_id)


@dataclass(frozen=True, slots=True)
class SuppressionFilter:
    """Which entries are meant. What is empty or None matches any."""

    id: UUID | None = None
    channel: str | None = None
    address: str | None = None
    """In its normal form."""
    contact_id: str | None = None
    reason: str | None = None


def find(
    organization_id: str, wanted: SuppressionFilter, *, limit: int, before: UUID | None = None
) -> tuple[list[Suppression], UUID | None]:
    """Return a page of entries, newest first, and the id after which the next page begins."""
    rows = _matching(organization_id, wanted)
    if before:
        rows = rows.filter(pk__lt=before)
    page = list(rows.order_by("-pk")[: limit + 1])
    return page[:limit], page[limit - 1].pk if len(page) > limit else None


def lift(organization_id: str, wanted: SuppressionFilter) -> None:
    """Take the one entry that a filter selects off the list.

    Raises NotFound, and SuppressionProtected for what only the recipient or an admin may lift.
    """
    with transaction.atomic():
        row = _matching(organization_id, wanted).select_for_update().first()
        if row is None:
            raise errors.NotFound(_UNKNOWN)
        if row.reason in PROTECTED:
            raise errors.SuppressionProtected
        remove(Suppression.objects.filter(pk=row.pk))


def remove(selected: QuerySet[Suppression]) -> list[Suppression]:
    """Take entries off the list, and return them: two statements.

    A third one writes their webhook deliveries.
    """
    with transaction.atomic(savepoint=False):
        rows = list(selected.select_for_update())
        Suppression.objects.filter(pk__in=[row.pk for row in rows]).delete()
        write_changes((ChangeType.SUPPRESSION_LIFTED, ChangedSuppression.of(row)) for row in rows)
    return rows


def extend(selected: QuerySet[Suppression], expires_at: datetime | None) -> None:
    """Let entries expire at a time, or never, and write their webhook deliveries."""
    with transaction.atomic(savepoint=False):
        found = list(selected.select_for_update().values_list("pk", flat=True))
        rows = Suppression.objects.filter(pk__in=found)
        rows.update(expires_at=expires_at)
        report_saved(rows, new=False)


def report_saved(saved: QuerySet[Suppression], *, new: bool) -> None:
    """Write the webhook deliveries of entries that were just saved."""
    kind = ChangeType.SUPPRESSION_CREATED if new else ChangeType.SUPPRESSION_CHANGED
    write_changes((kind, ChangedSuppression.of(row)) for row in saved)


def get(organization_id: str, wanted: SuppressionFilter) -> Suppression:
    """Return the one entry that a filter selects. Raises NotFound."""
    row = _matching(organization_id, wanted).first()
    if row is None:
        raise errors.NotFound(_UNKNOWN)
    return row


def _matching(organization_id: str, wanted: SuppressionFilter) -> QuerySet[Suppression]:
    rows = current(organization_id)
    # The partial indexes leave out empty names, and the planner uses them only if a query does too.
    if wanted.address:
        rows = rows.filter(~Q(address=""), address=wanted.address)
    if wanted.contact_id:
        rows = rows.filter(~Q(contact_id=""), contact_id=wanted.contact_id)
    if wanted.id:
        rows = rows.filter(pk=wanted.id)
    if wanted.channel:
        rows = rows.filter(channel=wanted.channel)
    if wanted.reason:
        rows = rows.filter(reason=wanted.reason)
    return rows
