"""Whom events are queued for: with the events themselves, and at no statement more."""

import re
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from structlog.testing import capture_logs

from messaging.delivery import claims, deliver, sweeper
from messaging.domain.progress.receipts import Receipt
from messaging.domain.statuses import EventType
from messaging.feedback import receipts
from messaging.models import Attempt, Delivery, WebhookDelivery, WebhookEndpoint
from messaging.models.endpoints import TYPES, ChangeType
from messaging.webhooks import endpoints
from rme.core.db import clock
from rme.transport import Transport
from tests import factories
from tests.messaging.webhooks.webhook_scene import endpoint
from tests.rest import all_events, message, work
from tests.sending import PROCESS

pytestmark = pytest.mark.django_db
URL = "https://hooks.example.com/"


def queued_types(row):
    """Return the event types queued for an endpoint, in the order of the events."""
    rows = WebhookDelivery.objects.filter(endpoint_id=row.pk).order_by("event_id")
    return [kind.removeprefix("message.") for kind in rows.values_list("type", flat=True)]


def test_only_one_module_writes_events():
    """An event written elsewhere would reach no endpoint."""
    root = Path(receipts.__file__).parents[1]
    writes = re.compile(
        r"\bEvent: |insert(ing|_step)\(\s*Event\b|Event\.objects\.(bulk_)?create|INTO \{Event"
    )
    found = {path.name for path in root.rglob("*.py") if writes.search(path.read_text())}
    assert found == {"events.py"}


def test_every_event_of_a_message_is_queued(api, org):
    row = endpoint(org, URL)
    api.send(message(factories.contact(org)))
    assert queued_types(row) == ["accepted"]
    work()
    assert queued_types(row) == ["accepted", "sent", "delivered"]
    queued = WebhookDelivery.objects.order_by("event_id").values_list(
        "event_id", "organization_id", "status", "tries"
    )
    assert list(queued) == [
        (event_id, "acme", "PENDING", 0) for event_id in sorted(each.pk for each in all_events())
    ]


def test_delivery_claimed_by_another_worker_gets_no_event_or_webhook(api, org):
    """Another one moves by the same statement; the outcome of both attempts is recorded."""
    row = endpoint(org, URL)
    for person in factories.contacts(org, 2):
        api.send(message(person))
    claim = claims.claim(org.pk, "EMAIL", 0)
    held, moved = claim.deliveries
    Delivery.objects.filter(pk=held.id).update(fence=held.fence + 1)
    left: list[Receipt] = []  # the simulator's receipts, which would be queued too
    with capture_logs() as logs:
        deliver.deliver([claim], Transport(), PROCESS, left.extend)
    assert [each for each in logs if each["event"] == "deliver.fenced"] == [
        {"event": "deliver.fenced", "log_level": "warning", "count": 1, "channel": "EMAIL"}
    ]
    (sent,) = all_events("sent")
    assert str(sent.delivery_id) == moved.id
    assert queued_types(row) == ["accepted", "accepted", "sent"]
    assert WebhookDelivery.objects.get(type="message.sent").event_id == sent.pk
    assert Delivery.objects.get(pk=held.id).status == "SENDING"
    assert list(Attempt.objects.values_list("outcome", flat=True)) == ["Accepted", "Accepted"]


def test_an_endpoint_gets_the_types_it_subscribes_to(api, org):
    some = endpoint(org, URL, "message.delivered", "message.accepted")
    other = endpoint(org, URL, "message.bounced")
    off = endpoint(org, URL, enabled=False)
    api.send(message(factories.contact(org)))
    work()
    assert [queued_types(row) for row in (some, other, off)] == [["accepted", "delivered"], [], []]


def test_another_organizations_endpoint_gets_nothing(api, org):
    theirs = endpoint(factories.organization("other"), URL)
    api.send(message(factories.contact(org)))
    assert (queued_types(theirs), WebhookDelivery.objects.count()) == ([], 0)


def _late(api, person):
    later = {"mode": "AT", "at": (clock.now() + timedelta(days=30)).isoformat()}
    return api.send(message(person, schedule=later)).json()["messageId"]


def test_a_cancellation_is_queued(api, org):
    row = endpoint(org, URL)
    message_id = _late(api, factories.contact(org))
    api.call("DELETE", f"/messages/{message_id}")
    assert queued_types(row) == ["accepted", "scheduled", "cancelled"]


def test_events_of_the_sweeper_are_queued(api, org):
    row = endpoint(org, URL, "message.expired", "message.fallback", "message.failed")
    person = factories.contact(org)
    now = clock.now()
    _late(api, person)
    past = now - timedelta(days=1)
    Delivery.objects.update(scheduled_for=past, due_at=past, priority=1)
    sweeper.release()
    api.send(message(person))
    work()
    Delivery.objects.filter(status="DELIVERED").update(status="SENT", due_at=past, channels=["SMS"])
    sweeper.fall_back()
    Delivery.objects.filter(status="ACCEPTED").update(
        status="UNKNOWN", due_at=past, expires_at=past
    )
    sweeper.resolve_unknown()
    assert queued_types(row) == ["expired", "fallback", "failed"]


def test_receipts_of_several_organizations_are_queued(api, org):
    from tests.rest import Api

    other = factories.organization("other")
    factories.template(other)
    rows = [endpoint(owner, URL, "message.complained") for owner in (org, other)]
    for each in (api, Api(other)):
        each.send(message(factories.contact(each.org)))
    work()
    known = list(Delivery.objects.values_list("id", flat=True))
    receipts.apply([Receipt(key, EventType.COMPLAINED) for key in known])
    assert [queued_types(row) for row in rows] == [["complained"], ["complained"]]


def test_failed_transaction_queues_nothing(api, org):
    row = endpoint(org, URL)
    api.send(message(factories.contact(org)))
    before = queued_types(row)
    (delivery_id,) = Delivery.objects.values_list("id", flat=True)
    with pytest.raises(RuntimeError), transaction.atomic():
        receipts.apply([Receipt(delivery_id, EventType.OPEN)])
        assert len(queued_types(row)) > len(before)
        raise RuntimeError
    assert queued_types(row) == before


@pytest.mark.parametrize("count", [1, 100])
def test_statements_of_an_accept_do_not_grow_with_endpoints_or_messages(api, org, count):
    """Both runs take as many statements as one without endpoints."""
    people = factories.contacts(org, count)
    took = []
    for number in (0, 1, 3):
        for _ in range(number):
            endpoint(org, URL)
        api.bulk([message(people[0])])  # from now on the rest is cached
        with CaptureQueriesContext(connection) as captured:
            api.bulk([message(person) for person in people])
        took.append(len(captured))
    assert len(set(took)) == 1
    assert WebhookDelivery.objects.count() == (1 + count) + (1 + count) * 4


def test_subscription_changes_apply_at_once_in_every_process(api, org):
    """The endpoint's row changes as if another process had changed it: this one isn't told."""
    person = factories.contact(org)

    def send_and_decide():
        api.send(message(person))
        work()
        api.call("POST", "/consent", decision)

    decision = {
        "contactId": str(person.pk), "channel": "EMAIL", "category": "MARKETING",
        "status": "OPTED_IN",
    }  # fmt: skip
    changes = (
        {"types": ["message.delivered"]},
        {"types": ["message.*", "consent.changed"]},
        {"enabled": False},
        {"enabled": True},
    )
    send_and_decide()  # and there is no endpoint
    row = endpoint(org, URL, "message.sent")
    found = []
    for fields in ({}, *changes):
        WebhookEndpoint.objects.filter(pk=row.pk).update(**{"description": "", **fields})
        send_and_decide()
        rows = WebhookDelivery.objects.order_by("id")
        found.append(list(rows.values_list("type", flat=True)))
        rows.delete()
    everything = ["message.accepted", "message.sent", "message.delivered", "consent.changed"]
    assert found == [["message.sent"], ["message.delivered"], everything, [], everything]


def test_endpoints_are_disabled_and_enabled(org):
    row = endpoint(org, URL)
    endpoints.disable(row, "by hand")
    row.refresh_from_db()
    assert (row.enabled, row.disabled_reason) == (False, "by hand")
    endpoints.enable(row)
    row.refresh_from_db()
    assert (row.enabled, row.disabled_reason) == (True, "")


def test_no_events_need_no_statement(org):
    from messaging.store.events import write_events

    with CaptureQueriesContext(connection) as captured:
        write_events([])
    assert len(captured) == 0


def test_webhook_types_match_the_event_types():
    assert ("message.*", *(f"message.{kind}" for kind in EventType), *ChangeType) == TYPES
