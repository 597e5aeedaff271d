"""What a service reports that a person wants no more: it is written into the consent ledger.

A list header, or a link of the service's own, was used: of the message's category, on its channel.
"""

from collections import defaultdict
from collections.abc import Collection
from uuid import UUID

from messaging.consent import ledger
from messaging.models import ConsentEntry, Delivery

RECORDED_BY = "recipient"


def record(delivery_ids: Collection[UUID]) -> None:
    """Record that the recipients of deliveries opted out; once, however often it is reported.

    The number of statements grows with the organizations, not with the deliveries.
    """
    if not delivery_ids:
        return
    found: defaultdict[str, list[Delivery]] = defaultdict(list)
    for delivery in Delivery.objects.filter(pk__in=delivery_ids).order_by("id"):
        found[delivery.organization_id].append(delivery)
    for organization_id, deliveries in sorted(found.items()):
        ledger.record(organization_id, _news(organization_id, deliveries))


def _news(organization_id: str, deliveries: list[Delivery]) -> list[ledger.ConsentDecision]:
    present = ledger.present(
        organization_id,
        {each.contact_id for each in deliveries},
        {each.channel for each in deliveries},
        {each.category for each in deliveries},
    )
    wanted = {(each.contact_id, each.channel, each.category): each for each in deliveries}
    return [
        _decision(each)
        for level, each in wanted.items()
        if (state := present.states.get(level)) is None or state.status != ledger.OPTED_OUT
    ]


def _decision(each: Delivery) -> ledger.ConsentDecision:
    return ledger.ConsentDecision(
        contact_id=each.contact_id,
        channel=each.channel,
        category=each.category,
        status=ledger.OPTED_OUT,
        source=ConsentEntry.Source.ONE_CLICK,
        occurred_at=None,
        evidence={"provider": each.provider or "", "delivery": str(each.pk)},
        recorded_by=RECORDED_BY,
    )
