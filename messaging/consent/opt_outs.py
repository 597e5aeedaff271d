"""Opt-outs that a provider reports: they are written into the consent ledger.

The recipient used a list header or a link that the provider added. The opt-out is for the
message's category on its channel.
"""

from collections import defaultdict
from collections.abc import Collection
from uuid import UUID

from messaging.consent import ledger
from messaging.consent.gates import current_consent
from messaging.models import ConsentEntry, Delivery

RECORDED_BY = "recipient"


def record(delivery_ids: Collection[UUID]) -> None:
    """Record that the recipients of deliveries opted out; repeated reports add nothing.

    The number of statements grows with the organizations, not with the deliveries.
    """
    if not delivery_ids:
        return
    by_organization: defaultdict[str, list[Delivery]] = defaultdict(list)
    for delivery in Delivery.objects.filter(pk__in=delivery_ids).order_by("id"):
        by_organization[delivery.organization_id].append(delivery)
    for organization_id, deliveries in sorted(by_organization.items()):
        ledger.record(organization_id, _new_decisions(organization_id, deliveries))


def _new_decisions(
    organization_id: str, deliveries: list[Delivery]
) -> list[ledger.ConsentDecision]:
    """Return the opt-outs that the ledger does not hold yet, one for each contact and category."""
    consent = current_consent.read(
        organization_id,
        {each.contact_id for each in deliveries},
        {each.channel for each in deliveries},
        {each.category for each in deliveries},
    )
    by_level = {(each.contact_id, each.channel, each.category): each for each in deliveries}
    return [_decision(each) for level, each in by_level.items() if not consent.opted_out(*level)]


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
    )
