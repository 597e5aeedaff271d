"""The backlog: deliveries that are ready to be sent and have not gone."""

from typing import Any

from django.db.models import Count, DurationField, ExpressionWrapper, Min, QuerySet
from django.db.models.functions import Now

from messaging.domain.attention import BacklogFacts
from messaging.domain.channels import Channel
from messaging.models import Delivery

_AGE = ExpressionWrapper(Now() - Min("due_at"), DurationField())


def backlog(*groups: str, **conditions: Any) -> QuerySet[Delivery, tuple[Any, ...]]:
    """Return the groups with the number of deliveries, and how long the oldest has been ready.

    The channels and priorities are named so that the index `delivery_ready` serves.
    """
    rows = Delivery.objects.filter(
        status="ACCEPTED", channel__in=Channel, priority__in=(0, 1), due_at__lte=Now(), **conditions
    )
    return rows.values_list(*groups).annotate(ready=Count("pk"), age=_AGE)


def read_backlogs(organization_id: str) -> list[BacklogFacts]:
    """Return an organization's backlogs by channel and priority; one query."""
    rows = backlog("channel", "priority", organization_id=organization_id)
    return [
        BacklogFacts(Channel(channel), priority, ready, age)
        for channel, priority, ready, age in rows
    ]
