"""Opt-outs that a provider reports: they are written into the consent ledger.

The recipient used a list header or a link that the provider added. The opt-out is for the
message's category on its channel.
"""

from collections import defaultdict
from collections.abc import Collection
from typing import NamedTuple
from uuid import UUID

from messaging.consent import ledger
from messaging.domain.gates import AddressLevel
from messaging.models import ConsentEntry, Delivery
from messaging.store.gates import current_consent

RECORDED_BY = "recipient"


class _Reports(NamedTuple):
    """Reports on an organization's deliveries, by what they change."""

    new: list[ledger.ConsentDecision]
    """The opt-outs that the ledger does not hold yet."""
    repeated: dict[AddressLevel, str]
    """The objections that are repeated, with their entries of the ledger."""


def record(delivery_ids: Collection[UUID]) -> None:
    """Record that the recipients of deliveries opted out.

    A repeated report adds no entry to the ledger, but the objection by address counts from now.
    The number of statements grows with the organizations, not with the deliveries.
    """
    if not delivery_ids:
        return
    by_layer: defaultdict[tuple[str, bool], list[Delivery]] = defaultdict(list)
    for delivery in Delivery.objects.filter(pk__in=delivery_ids).order_by("id"):
        by_layer[delivery.organization_id, delivery.test].append(delivery)
    for (organization_id, is_test), deliveries in sorted(by_layer.items()):
        reports = _sorted_reports(organization_id, deliveries, test=is_test)
        if is_test:
            ledger.record_in_test(organization_id, reports.new)
        else:
            ledger.repeat_objections(organization_id, reports.repeated)
            ledger.record(organization_id, reports.new)


def _sorted_reports(organization_id: str, deliveries: list[Delivery], *, test: bool) -> _Reports:
    """Return what the reports change, once for each contact, category and address."""
    consent = current_consent.read(
        organization_id,
        {each.contact_id for each in deliveries},
        {each.channel for each in deliveries},
        {each.category for each in deliveries},
        () if test else {each.address for each in deliveries if each.address},
        test=test,
    )
    by_level = {
        (each.contact_id, each.channel, each.category, each.address): each for each in deliveries
    }
    reports = _Reports([], {})
    for (*level, address), delivery in by_level.items():
        if not consent.opted_out(*level, address=None if test else address):
            reports.new.append(_decision(delivery))
        elif address and not test:
            objected = AddressLevel(address, delivery.channel, delivery.category)
            reports.repeated[objected] = consent.objections[objected].entry
    return reports


def _decision(delivery: Delivery) -> ledger.ConsentDecision:
    return ledger.ConsentDecision(
        contact_id=delivery.contact_id,
        channel=delivery.channel,
        category=delivery.category,
        status=ledger.OPTED_OUT,
        source=ConsentEntry.Source.ONE_CLICK,
        occurred_at=None,
        evidence={"provider": delivery.provider or "", "delivery": str(delivery.pk)},
        recorded_by=RECORDED_BY,
        addresses={delivery.channel: delivery.address or ""},
    )
