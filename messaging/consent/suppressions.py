"""The suppression list: addresses and contacts that must not be written to on a channel.

An entry that has expired counts as absent. `messaging.store.gates` reads the list for a send.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.utils.translation import gettext, gettext_noop

from messaging.consent import gate_lock
from messaging.consent.suppression_changes import ChangedSuppression, write_changes
from messaging.domain.channels import ALL, Channel
from messaging.models import Suppression
from messaging.models.endpoints import ChangeType
from messaging.store.gates import suppression_list as store
from messaging.store.gates.suppression_list import LAYERS, STRENGTH
from rme.core import addresses, errors, ids
from rme.core.addresses import Digits
from rme.core.db import keyset
from rme.crm.contacts import get_contacts

_UNKNOWN = gettext_noop("This suppression doesn't exist.")

PROTECTED = frozenset({"COMPLAINT", "STOP"})
"""Decided by the recipient: the API never lifts these, an admin only with a reason."""


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
    test: bool = False
    """Whether it belongs to the TEST layer."""

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
    named_ids = {each for each in contact_ids if each}
    return named_ids - get_contacts(organization_id, list(named_ids)).keys() if named_ids else set()


def normalize_address(
    channel: str, address: str, region: str | None, digits: Digits = Digits.UNSAID
) -> str | None:
    """Return the normal form of an address on a channel or ALL, or None if it is not valid there.

    PUSH has no addresses, only contacts.
    """
    email = addresses.email(address) if channel in (Channel.EMAIL, ALL) else None
    if email or channel not in (Channel.SMS, ALL):
        return email
    return addresses.phone(address, region, digits)


def address_problem(
    channel: str, address: str, region: str | None, digits: Digits = Digits.UNSAID
) -> str:
    """Return why `normalize_address` rejects a text, as the end of a sentence."""
    if channel in (Channel.SMS, ALL) and addresses.phone_readings(address, region):
        return addresses.phone_problem(address, region, digits)
    return not_an_address(channel)


def not_an_address(channel: str) -> str:
    """Return the problem of a text that is no address on a channel."""
    return gettext("not an address on the channel %(channel)s") % {"channel": channel}


def suppress(entries: Sequence[NewSuppression]) -> Change:
    """Put entries on the list in one statement, and write their webhook deliveries by another.

    The caller holds the gate lock, and took it before any row of a delivery; otherwise use
    `suppress_alone`. The one exception is a worker that learns from a refusal that an address is
    dead, or that its owner sent STOP to the provider. It shares the lock, since two workers that
    both wanted it alone would deadlock. A window that was already checked may then try the address
    once more, which does no harm.

    An entry that is listed stays as it is, except that a stronger reason replaces a weaker one;
    then it lasts as long as the longer of both. Entries with one key are merged in their order.
    Entries of the TEST layer, which are rare, take another statement.
    """
    of_test = [entry for entry in entries if entry.test]
    if not of_test:
        return _suppress(entries, test=False)
    live = _suppress([entry for entry in entries if not entry.test], test=False)
    tested = _suppress(of_test, test=True)
    return Change(live.added | tested.added, live.replaced + tested.replaced)


def _suppress(entries: Sequence[NewSuppression], *, test: bool) -> Change:
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
    with transaction.atomic(savepoint=False):
        rows_written = [ChangedSuppression(*row) for row in store.upsert(rows, test=test)]
        added = frozenset(str(each.id) for each in rows_written).intersection(new)
        created, changed = ChangeType.SUPPRESSION_CREATED, ChangeType.SUPPRESSION_CHANGED
        kinds = (created if str(each.id) in new else changed for each in rows_written)
        write_changes(zip(kinds, rows_written, strict=True), test=test)
    return Change(added, len(rows_written) - len(added))


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
    """Suppress, and return the listed entry for each one. Two statements and a lock.

    All entries are of one layer.
    """
    layer = LAYERS[any(entry.test for entry in entries)]
    by_address = layer._default_manager.filter(
        ~Q(address=""), organization_id=organization_id, address__in=[e.address for e in entries]
    )
    by_contact = layer._default_manager.filter(
        ~Q(contact_id=""),
        organization_id=organization_id,
        contact_id__in=[e.contact_id for e in entries],
    )
    with transaction.atomic():  # the rows that the first statement wrote stay locked until the end
        change = suppress_alone(entries)
        rows_by_key = {
            SuppressionKey(organization_id, row.channel, row.address, row.contact_id): row
            for row in by_address.union(by_contact, all=True)
        }
    rows = [rows_by_key[entry.key] for entry in entries]
    return [ListEntry(row, str(row.pk) in change.added) for row in rows]


def current(organization_id: str, *, test: bool = False) -> QuerySet[Suppression]:
    """Return an organization's entries that haven't expired; `test`: in the TEST layer."""
    lasting = Q(expires_at=None) | Q(expires_at__gt=Now())
    rows = LAYERS[test]._default_manager.all()
    return rows.filter(lasting, organization_id=organization_id)


def about(contact_ids: Collection[str], recipients: Iterable[str | None]) -> Q:
    """Return the condition of entries about contacts or addresses, in any of their spellings."""
    spellings = {each for text in recipients if text for each in addresses.phone_spellings(text)}
    # The partial indexes leave out empty names, and the planner uses them only if a query does too.
    of_contacts = ~Q(contact_id="") & Q(contact_id__in=contact_ids)
    return of_contacts | ~Q(address="") & Q(address__in=spellings)


@dataclass(frozen=True, slots=True)
class SuppressionFilter:
    """Which entries are meant. What is empty or None matches any."""

    id: UUID | None = None
    channel: str | None = None
    address: str | None = None
    """In its normal form."""
    contact_id: str | None = None
    reason: str | None = None
    test: bool = False
    """Whether to use the TEST layer instead of the live list."""


def find(
    organization_id: str, query: SuppressionFilter, *, limit: int, before: UUID | None = None
) -> keyset.Page[Suppression]:
    """Return a page of entries, newest first."""
    return keyset.page(_matching(organization_id, query), limit=limit, before=before)


def lift(organization_id: str, query: SuppressionFilter) -> None:
    """Take the one entry that a filter selects off the list.

    Raises NotFound, and SuppressionProtected for what only the recipient or an admin may lift.
    """
    with transaction.atomic():
        row = _matching(organization_id, query).select_for_update().first()
        if row is None:
            raise errors.NotFound(gettext(_UNKNOWN))
        if row.reason in PROTECTED:
            raise errors.SuppressionProtected
        remove(LAYERS[query.test]._default_manager.filter(pk=row.pk))


def remove(selected: QuerySet[Suppression]) -> list[Suppression]:
    """Take entries off the list, and return them: two statements.

    A third one writes their webhook deliveries.
    """
    with transaction.atomic(savepoint=False):
        rows = list(selected.select_for_update())
        layer: type[Suppression] = selected.model
        layer._default_manager.filter(pk__in=[row.pk for row in rows]).delete()
        lifted = ((ChangeType.SUPPRESSION_LIFTED, ChangedSuppression.of(row)) for row in rows)
        write_changes(lifted, test=layer is LAYERS[True])
    return rows


def extend(selected: QuerySet[Suppression], expires_at: datetime | None) -> None:
    """Let entries expire at a time, or never, and write their webhook deliveries."""
    with transaction.atomic(savepoint=False):
        locked_ids = list(selected.select_for_update().values_list("pk", flat=True))
        rows = Suppression.objects.filter(pk__in=locked_ids)
        rows.update(expires_at=expires_at)
        report_saved(rows, new=False)


def report_saved(saved: QuerySet[Suppression], *, new: bool) -> None:
    """Write the webhook deliveries of entries that were just saved."""
    kind = ChangeType.SUPPRESSION_CREATED if new else ChangeType.SUPPRESSION_CHANGED
    write_changes((kind, ChangedSuppression.of(row)) for row in saved)


def get(organization_id: str, query: SuppressionFilter) -> Suppression:
    """Return the one entry that a filter selects. Raises NotFound."""
    row = _matching(organization_id, query).first()
    if row is None:
        raise errors.NotFound(gettext(_UNKNOWN))
    return row


def _matching(organization_id: str, query: SuppressionFilter) -> QuerySet[Suppression]:
    rows = current(organization_id, test=query.test)
    # The partial indexes leave out empty names, and the planner uses them only if a query does too.
    if query.address:
        spellings = addresses.phone_spellings(query.address)
        rows = rows.filter(~Q(address=""), address__in=spellings)
    if query.contact_id:
        rows = rows.filter(~Q(contact_id=""), contact_id=query.contact_id)
    if query.id:
        rows = rows.filter(pk=query.id)
    if query.channel:
        rows = rows.filter(channel=query.channel)
    if query.reason:
        rows = rows.filter(reason=query.reason)
    return rows
