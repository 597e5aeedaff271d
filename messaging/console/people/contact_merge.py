"""Merging two contacts of the embedded platform into one.

Messages, devices, suppressions and records follow to the contact that stays, and its empty fields
take the other's values. What the merged contact must not receive is what either of the two had
objected to. The consent ledger is never edited: what changes for the contact that stays is
recorded as new entries.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext

from messaging.consent import gate_lock, ledger, suppressions
from messaging.domain.channels import ALL, Channel
from messaging.models import ConsentEntry, Delivery, Suppression
from messaging.policy import organization_policy
from messaging.store.lookups import of_contact
from messaging.webhooks import device_events
from push import devices
from push.models import Device
from rme.core.db import clock
from rme.crm.models import Case, Contact, EventRegistration, Exhibitor, Speaker
from rme.tenants import audit
from rme.tenants.audit import Action, Actor

FILLED = ("first_name", "email", "phone", "mobile", "language", "zone", "account_id")
"""Fields that take the other contact's value where they are empty."""
RECORDS: tuple[type[Case | EventRegistration | Speaker | Exhibitor], ...] = (
    Case,
    EventRegistration,
    Speaker,
    Exhibitor,
)

IN, OUT = ledger.OPTED_IN, ledger.OPTED_OUT
Pair = tuple[str, str]
"""Channel and category; either may be ALL."""
Newest = dict[Pair, tuple[datetime, str]]
"""The time and the status of a contact's newest decision on each pair."""


@dataclass(frozen=True, slots=True)
class MergePreview:
    """What a merge would do."""

    counts: Mapping[str, int]
    """Rows that follow, by kind."""
    filled: Mapping[str, str]
    """Values that the contact that stays takes from the other."""
    consent: list[tuple[str, str, str]]
    """Decisions that are recorded: channel, category, status."""


def preview(stays: Contact, goes: Contact) -> MergePreview:
    """Return what a merge would do; changes nothing."""
    of_contact_fields = {"organization_id": stays.organization_id, "contact_id": str(goes.pk)}
    records = {model: model._default_manager.filter(contact=goes).count() for model in RECORDS}
    return MergePreview(
        counts={
            gettext("messages"): _deliveries(goes).count(),
            gettext("devices"): Device.objects.filter(**of_contact_fields).count(),
            gettext("suppressions"): Suppression.objects.filter(**of_contact_fields).count(),
            **{str(model._meta.verbose_name_plural): count for model, count in records.items()},
        },
        filled={name: str(value) for name, value in _filled(stays, goes).items()},
        consent=[(*pair, status) for pair, status, _ in _decisions(stays, goes, clock.now())],
    )


def merge(stays: Contact, goes: Contact, *, actor: Actor, reason: str) -> None:
    """Merge a contact into another of its organization. The statements do not grow with rows."""
    organization_id = stays.organization_id
    if goes.organization_id != organization_id or goes.pk == stays.pk:
        raise ValueError(gettext("Choose two contacts of one organization."))
    of_contact_fields = {"organization_id": organization_id, "contact_id": str(goes.pk)}
    with transaction.atomic():
        gate_lock.take_exclusive([organization_id])
        _record_consent(stays, goes, actor.name, reason)
        _move_suppressions(stays, goes)
        _deliveries(goes).update(contact_id=str(stays.pk))
        devices.move(Device.objects.filter(**of_contact_fields), str(stays.pk), device_events.write)
        for model in RECORDS:
            model._default_manager.filter(contact=goes).update(contact=stays)
        filled = _filled(stays, goes)
        Contact.objects.filter(pk=stays.pk).update(**filled)
        values = {name: [str(getattr(stays, name) or ""), str(filled[name])] for name in filled}
        text = f"with {goes.pk}"
        entry = audit.about(stays, Action.MERGED, text=text, changes=values, reason=reason)
        audit.record(actor, [entry])
        goes.delete()


def _deliveries(contact: Contact) -> QuerySet[Delivery]:
    condition = of_contact(str(contact.pk))
    return Delivery.objects.filter(condition, organization_id=contact.organization_id)


def _filled(stays: Contact, goes: Contact) -> dict[str, object]:
    return {
        name: getattr(goes, name)
        for name in FILLED
        if getattr(goes, name) and not getattr(stays, name)
    }


# --- consent --------------------------------------------------------------------------------------
def _newest(contact: Contact) -> Newest:
    rows = ConsentEntry.objects.filter(
        organization_id=contact.organization_id, contact_id=str(contact.pk)
    )
    # Of entries of one instant OPTED_OUT counts, and it sorts last.
    entries = rows.order_by("occurred_at", "status").values_list(
        "channel", "category", "occurred_at", "status"
    )
    return {(channel, category): (at, status) for channel, category, at, status in entries}


def _effective(newest: Newest, channel: str, category: str) -> str | None:
    """Return what a contact decided for a pair, by the rule of the gates; None: nothing."""
    levels = ([(channel, category)], [(channel, ALL), (ALL, category)], [(ALL, ALL)])
    decisions = [[newest[pair] for pair in level if pair in newest] for level in levels]
    deciding = next((level for level in decisions if level), None)
    if deciding is None:
        return None
    at, status = max(deciding)
    objected = any(each[1] == OUT and each[0] > at for level in decisions for each in level)
    return OUT if objected else status


def _stricter(first: str | None, second: str | None) -> str | None:
    return OUT if OUT in (first, second) else first or second


def _decisions(stays: Contact, goes: Contact, now: datetime) -> list[tuple[Pair, str, datetime]]:
    """Return the decisions to record for the contact that stays: pair, status and time.

    Those with a wildcard come first and a moment earlier, so that those on one channel and one
    category decide.
    """
    kept_decisions, merged_decisions = _newest(stays), _newest(goes)
    if not merged_decisions:
        return []
    wild = sorted(pair for pair in {*kept_decisions, *merged_decisions} if ALL in pair)
    general: list[tuple[Pair, str]] = []
    for pair in wild:
        current = kept_decisions[pair][1] if pair in kept_decisions else None
        stricter = _stricter(
            current, merged_decisions[pair][1] if pair in merged_decisions else None
        )
        # what the other contact decided is always recorded, so that an erasure finds its entries
        if stricter and (stricter != current or pair in merged_decisions):
            general.append((pair, stricter))
    categories = {
        *organization_policy.of(stays.organization_id).categories,
        *(category for _, category in (*kept_decisions, *merged_decisions) if category != ALL),
    }
    earlier = now - timedelta(milliseconds=1)
    after_general = kept_decisions | {pair: (earlier, status) for pair, status in general}
    exact: list[tuple[Pair, str]] = []
    for channel in Channel:
        for category in sorted(categories):
            pair = (str(channel), category)
            strictest = _stricter(
                _effective(kept_decisions, *pair), _effective(merged_decisions, *pair)
            )
            if strictest and (
                strictest != _effective(after_general, *pair) or pair in merged_decisions
            ):
                exact.append((pair, strictest))
    return [
        *((pair, status, earlier) for pair, status in general),
        *((pair, status, now) for pair, status in exact),
    ]


def _record_consent(stays: Contact, goes: Contact, username: str, reason: str) -> None:
    ledger.record(
        stays.organization_id,
        [
            ledger.ConsentDecision(
                contact_id=str(stays.pk),
                channel=channel,
                category=category,
                status=status,
                source=ConsentEntry.Source.ADMIN,
                occurred_at=at,
                evidence={ledger.MERGED_FROM: str(goes.pk), "reason": reason},
                recorded_by=username,
            )
            for (channel, category), status, at in _decisions(stays, goes, clock.now())
        ],
    )


# --- suppressions ---------------------------------------------------------------------------------
def _move_suppressions(stays: Contact, goes: Contact) -> None:
    """Move suppressions of the contact; of two on one channel the stronger and longer stays.

    A contact has at most one on each channel, so the statements are bounded.
    """
    organization_id, key = stays.organization_id, str(stays.pk)
    rows = Suppression.objects.filter(organization_id=organization_id)
    moved = suppressions.remove(rows.filter(contact_id=str(goes.pk)))
    suppressions.suppress(
        [
            suppressions.NewSuppression(
                organization_id=organization_id,
                channel=row.channel,
                address="",
                contact_id=key,
                reason=row.reason,
                note=row.note,
                source=row.source,
                expires_at=row.expires_at,
            )
            for row in moved
        ]
    )
    for row in moved:
        shorter = rows.filter(contact_id=key, channel=row.channel, expires_at__isnull=False)
        if row.expires_at is not None:
            shorter = shorter.filter(expires_at__lt=row.expires_at)
        suppressions.extend(shorter, row.expires_at)
