"""The consent ledger: an append-only chain of decisions, one chain for each organization.

Every entry holds the digest of the organization's entry before it. The digest covers an entry in
two parts: the personal part (the contact and the evidence) enters as a digest of its own, the seal.
Erasing a person leaves the seal in place of that part, so the chain can still be verified.

`messaging.store.gates.current_consent` reads what the entries permit.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import orjson
from django.db import transaction

from messaging.consent import gate_lock
from messaging.domain.channels import ALL
from messaging.domain.gates import AddressLevel
from messaging.models import AddressOptOut, ConsentEntry, ConsentEntryInTest
from messaging.models.endpoints import ChangeType
from messaging.webhooks import changes
from rme.core import ids
from rme.core.db import clock, sql

OPTED_IN, OPTED_OUT = "OPTED_IN", "OPTED_OUT"


@dataclass(frozen=True, slots=True)
class ConsentDecision:
    """One person's decision, to be recorded."""

    contact_id: str
    channel: str
    category: str
    status: str
    source: str
    occurred_at: datetime | None
    """None: now."""
    evidence: Mapping[str, str] = field(default_factory=dict)
    """How the decision is known."""
    recorded_by: str = ""
    addresses: Mapping[str, str] = field(default_factory=dict)
    """The addresses, by channel, that the objection covers, with all their contacts."""


_COLUMNS = [column.attname for column in ConsentEntry._meta.concrete_fields]
_ERASED = "erased"
"""The evidence of an erased entry has this one key. Its value is the seal of what was erased."""


def _seal(contact_id: str, evidence: object) -> str:
    """Return the digest of an entry's personal part."""
    return hashlib.sha256(orjson.dumps([contact_id, _canonical(evidence)])).hexdigest()


def _canonical(evidence: object) -> object:
    """Return evidence in a form that JSON keeps unchanged: sorted pairs of texts."""
    if isinstance(evidence, Mapping):
        return sorted([str(name), str(value)] for name, value in evidence.items())
    return str(evidence)


def _digest(entry: ConsentEntry, seal: str) -> str:
    """Return the digest of an entry and the one before it (SHA-256)."""
    line = {
        "id": str(entry.pk),
        "organization_id": entry.organization_id,
        "channel": entry.channel,
        "category": entry.category,
        "status": entry.status,
        "source": entry.source,
        "occurred_at": entry.occurred_at.astimezone(UTC),
        "recorded_at": entry.recorded_at.astimezone(UTC),
        "recorded_by": entry.recorded_by,
        "seal": seal,
    }
    text = orjson.dumps(line, option=orjson.OPT_SORT_KEYS | orjson.OPT_UTC_Z)
    return hashlib.sha256(entry.previous.encode() + text).hexdigest()


def record(organization_id: str, decisions: Sequence[ConsentDecision]) -> list[ConsentEntry]:
    """Append decisions to the ledger, in order, with their webhook deliveries; return the entries.

    A lock for each organization keeps the chain of digests single; the number of statements does
    not depend on the number of decisions. No entry occurs after it was recorded: a time in the
    future becomes the present, since a later objection would otherwise not count.
    """
    if not decisions:
        return []
    with transaction.atomic():
        now = gate_lock.take_chain(organization_id)
        newest = ConsentEntry.objects.filter(organization_id=organization_id).order_by("-id")
        last, previous = newest.values_list("id", "digest").first() or (UUID(int=0), "")
        entries: list[ConsentEntry] = []
        for decision in decisions:
            # The order of ids is the order of the chain, even if the machines' clocks differ.
            last = UUID(int=max(ids.new_id().int, last.int + 1))
            entry = ConsentEntry(
                id=last, previous=previous, **_columns(organization_id, decision, now)
            )
            entry.digest = previous = _digest(entry, _seal(entry.contact_id, entry.evidence))
            entries.append(entry)
        rows = [{name: getattr(entry, name) for name in _COLUMNS} for entry in entries]
        queueing = changes.queueing_step([_change(entry) for entry in entries])
        sql.insert({ConsentEntry: rows}, {"webhook_deliveries": queueing})
        _store_address_opt_outs(zip(decisions, entries, strict=True))
    return entries


def _columns(organization_id: str, decision: ConsentDecision, now: datetime) -> dict[str, Any]:
    """Return what an entry of either layer stores of a decision."""
    return {
        "organization_id": organization_id,
        "contact_id": decision.contact_id,
        "channel": decision.channel,
        "category": decision.category,
        "status": decision.status,
        "source": decision.source,
        "evidence": {str(name): str(value) for name, value in decision.evidence.items()},
        "occurred_at": min(decision.occurred_at or now, now).astimezone(UTC),
        "recorded_at": now,
        "recorded_by": decision.recorded_by,
    }


def _store_address_opt_outs(decided: Iterable[tuple[ConsentDecision, ConsentEntry]]) -> None:
    """Store the objections by address; a later one replaces an earlier one."""
    objections = {
        (address, channel, entry.category): entry
        for decision, entry in decided
        if decision.status == OPTED_OUT
        for channel, address in decision.addresses.items()
        if address and decision.channel in (channel, ALL)
    }
    if not objections:
        return
    AddressOptOut.objects.bulk_create(
        [
            AddressOptOut(
                organization_id=entry.organization_id,
                address=address,
                channel=channel,
                category=category,
                occurred_at=entry.occurred_at,
                entry=entry.pk,
            )
            for (address, channel, category), entry in objections.items()
        ],
        update_conflicts=True,
        unique_fields=["organization", "address", "channel", "category"],
        update_fields=["occurred_at", "entry"],
    )


def repeat_objections(organization_id: str, objections: Mapping[AddressLevel, str]) -> None:
    """Let objections count from now, because their recipients repeated them.

    Another contact with the address may have opted in meanwhile. The values are the entries of the
    ledger. One statement and a lock.
    """
    if not objections:
        return
    with transaction.atomic():
        now = gate_lock.take_chain(organization_id)
        AddressOptOut.objects.bulk_create(
            [
                AddressOptOut(
                    organization_id=organization_id,
                    **level._asdict(),
                    occurred_at=now,
                    entry=entry,
                )
                for level, entry in objections.items()
            ],
            update_conflicts=True,
            unique_fields=["organization", "address", "channel", "category"],
            update_fields=["occurred_at"],
        )


def record_in_test(
    organization_id: str, decisions: Sequence[ConsentDecision]
) -> list[ConsentEntryInTest]:
    """Add decisions to the TEST layer, in order, with their webhook deliveries; return them.

    They don't join a chain, and no live send reads them.
    """
    if not decisions:
        return []
    now = clock.now().astimezone(UTC)
    entries = [
        ConsentEntryInTest(**_columns(organization_id, decision, now)) for decision in decisions
    ]
    names = [column.attname for column in ConsentEntryInTest._meta.concrete_fields]
    rows = [{name: getattr(entry, name) for name in names} for entry in entries]
    queueing = changes.queueing_step([_change(entry) for entry in entries])
    sql.insert({ConsentEntryInTest: rows}, {"webhook_deliveries": queueing})
    return entries


def _change(entry: ConsentEntry | ConsentEntryInTest) -> changes.ChangeEvent:
    """Return the webhook event of an entry, whose id is the webhook-id too."""
    data: dict[str, object] = {
        "id": str(entry.pk),
        "contactId": entry.contact_id,
        "channel": entry.channel,
        "category": entry.category,
        "status": entry.status,
        "source": entry.source,
        "occurredAt": clock.iso(entry.occurred_at),
        "recordedAt": clock.iso(entry.recorded_at),
    }
    return changes.ChangeEvent(
        entry.organization_id,
        ChangeType.CONSENT_CHANGED,
        data,
        id=str(entry.pk),
        test=isinstance(entry, ConsentEntryInTest),
    )


MERGED_FROM = "mergedFrom"
"""In the evidence of entries that a merge recorded: the id of the contact that was merged."""


def _own_and_merged(organization_id: str, contact_id: str) -> list[tuple[UUID, str, object]]:
    """Return id, contact and evidence of a contact's entries, and of those merged into it."""
    entries: list[tuple[UUID, str, object]] = []
    contact_ids, added = {contact_id}, {contact_id}
    while added:
        rows = ConsentEntry.objects.filter(
            organization_id=organization_id, contact_id__in=added
        ).values_list("id", "contact_id", "evidence")
        entries += rows
        merged_ids = (each.get(MERGED_FROM) for *_, each in rows if isinstance(each, dict))
        added = {str(each) for each in merged_ids if each} - contact_ids
        contact_ids |= added
    return entries


def erase(organization_id: str, contact_id: str) -> int:
    """Erase the contact and all evidence from a contact's entries; return their number.

    The decision, its time and the seal stay, so `verify` still holds. Entries of contacts that were
    merged into this one are erased, too.
    """
    with transaction.atomic():
        gate_lock.take_chain(organization_id)
        rows = [
            {"id": key, "contact_id": "", "evidence": {_ERASED: _seal(owner, evidence)}}
            for key, owner, evidence in _own_and_merged(organization_id, contact_id)
        ]
        sql.update(ConsentEntry, rows)
    return len(rows)


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of verifying a chain, or its beginning."""

    entries: int = 0
    erased: int = 0
    head: str = ""
    """The digest of the last entry that fits."""
    broken: UUID | None = None
    """The first entry that does not fit."""
    last: UUID | None = field(default=None, compare=False)
    """The last entry that fits."""
    is_complete: bool = field(default=True, compare=False)
    """Whether no entries are left to verify."""


VERIFY_BATCH = 1000


def verify(organization_id: str) -> Verification:
    """Verify an organization's chain, in batches, up to the first entry that does not fit.

    Entries removed from the end cannot be detected here: compare `head` with a copy kept elsewhere.
    """
    verification = verify_batch(organization_id, Verification())
    while not verification.is_complete:
        verification = verify_batch(organization_id, verification)
    return verification


def verify_batch(organization_id: str, progress: Verification) -> Verification:
    """Verify the next entries of a chain, after those that are known to fit; one query."""
    chain = ConsentEntry.objects.filter(organization_id=organization_id).order_by("id")
    count, erased, head, last = progress.entries, progress.erased, progress.head, progress.last
    batch = chain.filter(id__gt=last or UUID(int=0))[:VERIFY_BATCH]
    for entry in batch:
        if entry.previous != head or entry.digest != _expected_digest(entry):
            return Verification(count, erased, head, entry.pk, last)
        count, erased = count + 1, erased + _is_erased(entry)
        head, last = entry.digest, entry.pk
    return Verification(count, erased, head, None, last, is_complete=len(batch) < VERIFY_BATCH)


def _is_erased(entry: ConsentEntry) -> bool:
    evidence = entry.evidence
    return entry.contact_id == "" and isinstance(evidence, dict) and [*evidence] == [_ERASED]


def _expected_digest(entry: ConsentEntry) -> str:
    """Compute the digest that a stored entry must have."""
    seal = (
        str(entry.evidence[_ERASED])
        if _is_erased(entry)
        else _seal(entry.contact_id, entry.evidence)
    )
    return _digest(entry, seal)
