"""Deliveries that are held with an unknown outcome."""

from typing import Any

from django.db import connection

from messaging.delivery import sweeper
from messaging.models import Category, Delivery
from messaging.policy import organization_policy
from tests import factories
from tests.rest import Api, work

NEWS = "NEWS"


def hold(api: Api, count: int = 1) -> list[Delivery]:
    """Send messages of which no answer comes, and let the time for receipts pass."""
    Category.objects.get_or_create(
        organization=api.org, name=NEWS, regime="OPT_OUT", on_unknown="HOLD"
    )
    organization_policy.forget(api.org.pk)
    known = set(Delivery.objects.values_list("pk", flat=True))
    people = factories.contacts(api.org, count)
    for person in people:
        person.email = "unknown@simulator.rme.test"
    type(people[0]).objects.bulk_update(people, ["email"])
    bodies: list[Any] = [
        {
            "channel": "EMAIL",
            "category": NEWS,
            "to": [{"contactId": str(person.pk)}],
            "content": {"subject": "News", "text": "News"},
        }
        for person in people
    ]
    assert api.bulk(bodies).json()["accepted"] == count
    work()
    with connection.cursor() as cursor:
        cursor.execute("UPDATE messaging_delivery SET due_at = now() WHERE status = 'UNKNOWN'")
    sweeper.resolve_unknown()
    rows = list(Delivery.objects.exclude(pk__in=known).order_by("pk"))
    assert [(row.status, row.due_at) for row in rows] == [("UNKNOWN", None)] * count
    return rows
