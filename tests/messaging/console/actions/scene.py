"""Scheduled deliveries, and an action on them of which nothing is done yet."""

from datetime import UTC, datetime, timedelta

from messaging.models import BulkAction, Delivery, Message
from rme.core import ids
from tests import factories
from tests.rest import Api, instant, message

LATER = {"mode": "AT", "at": instant(datetime.now(UTC) + timedelta(days=1))}


def send(org, count, **fields):
    api = Api(org)
    for each in factories.contacts(org, count):
        api.send(message(each, **fields))


def scheduled(org, count):
    """Schedule a message to each of so many people: one is accepted, the others are its copies."""
    send(org, 1, schedule=LATER)
    sent, row = Message.objects.get(), Delivery.objects.get()
    keys = [(ids.new_id(), ids.new_id()) for _ in range(count - 1)]
    Message.objects.bulk_create(copied(sent, pk=key) for key, _ in keys)
    Delivery.objects.bulk_create(copied(row, pk=own, message_id=key) for key, own in keys)


def copied(row, **fields):
    values = {field.attname: getattr(row, field.attname) for field in row._meta.concrete_fields}
    del values["id"]
    return type(row)(**{**values, **fields})


def start(org, count):
    """Start a cancel of so many scheduled deliveries, of which nothing is done yet."""
    scheduled(org, count)
    targets = list(Delivery.objects.order_by("pk").values_list("pk", flat=True))
    return BulkAction.objects.create(
        organization=org, kind="CANCEL", scope="all", reason="off", targets=targets,
        total=len(targets), started_by="root", user_id=1,
    )  # fmt: skip
