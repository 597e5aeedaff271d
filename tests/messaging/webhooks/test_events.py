"""Whom events are noted for: with the events themselves, and at no statement more."""

import re
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from structlog.testing import capture_logs

from messaging.delivery import claims, deliver, sweeper
from messaging.feedback import receipts
from messaging.feedback.receipts import Receipt
from messaging.models import Attempt, Delivery, Event, WebhookDelivery, WebhookEndpoint
from messaging.models.endpoints import TYPES
from messaging.models.statuses import EventType
from messaging.webhooks import endpoints
from rme.core.db import clock
from rme.transport import Transport
from tests import factories
from tests.messaging.webhooks.hooks_scene import endpoint
from tests.rest import message, work

pytestmark = pytest.mark.django_db
URL = "https://hooks.example.com/"


def noted(row):
    """Give the types that were noted for an endpoint, in the order of the events."""
    rows = WebhookDelivery.objects.filter(endpoint_id=row.pk).order_by("event_id")
    return [kind.removeprefix("message.") for kind in rows.values_list("type", flat=True)]


def test_only_one_module_writes_events():
    """Who writes them elsewhere tells no endpoint."""
    root = Path(receipts.__file__).parents[1]
    writes = re.compile(
        r"\bEvent: |inserting\(\s*Event\b|Event\.objects\.(bulk_)?create|INTO \{Event"
    )
    found = {path.name for path in root.rglob("*.py") if writes.search(path.read_text())}
    assert found == {"events.py"}


def test_every_event_of_a_message_is_noted(api, org):
    row = endpoint(org, URL)
    api.send(message(factories.contact(org)))
    assert noted(row) == ["accepted"]
    work()
    assert noted(row) == ["accepted", "sent", "delivered"]
    assert list(
        WebhookDelivery.objects.values_list("event_id", "organization_id", "status", "tries")
    ) == [
        (event_id, "acme", "PENDING", 0)
        for event_id in Event.objects.order_by("id").values_list("id", flat=True)
    ]


def test_a_delivery_that_somebody_else_holds_gets_no_event_and_nobody_is_told(api, org):
    """Beside one that moves, by the same statement; of both the attempt's outcome is written."""
    row = endpoint(org, URL)
    for person in factories.contacts(org, 2):
        api.send(message(person))
    claim = claims.claim(org.pk, "EMAIL", 0)
    held, moved = claim.deliveries
    Delivery.objects.filter(pk=held.id).update(fence=held.fence + 1)
    left: list[Receipt] = []  # with the simulator, whose confirmations would be told of, too
    with capture_logs() as logs:
        deliver.deliver([claim], Transport(), left.extend)
    assert [each for each in logs if each["event"] == "deliver.fenced"] == [
        {"event": "deliver.fenced", "log_level": "warning", "count": 1, "channel": "EMAIL"}
    ]
    sent = Event.objects.get(type="sent")
    assert str(sent.delivery_id) == moved.id
    assert noted(row) == ["accepted", "accepted", "sent"]
    assert WebhookDelivery.objects.get(type="message.sent").event_id == sent.pk
    assert Delivery.objects.get(pk=held.id).status == "SENDING"
    assert list(Attempt.objects.values_list("outcome", flat=True)) == ["Accepted", "Accepted"]


def test_an_endpoint_is_told_of_what_it_asked_for(api, org):
    some = endpoint(org, URL, "message.delivered", "message.accepted")
    other = endpoint(org, URL, "message.bounced")
    off = endpoint(org, URL, enabled=False)
    api.send(message(factories.contact(org)))
    work()
    assert [noted(row) for row in (some, other, off)] == [["accepted", "delivered"], [], []]


def test_another_organizations_endpoint_is_told_of_nothing(api, org):
    theirs = endpoint(factories.organization("other"), URL)
    api.send(message(factories.contact(org)))
    assert (noted(theirs), WebhookDelivery.objects.count()) == ([], 0)


def _late(api, person):
    later = {"mode": "AT", "at": (clock.now() + timedelta(days=30)).isoformat()}
    return api.send(message(person, schedule=later)).json()["messageId"]


def test_a_cancelled_one_is_noted(api, org):
    row = endpoint(org, URL)
    message_id = _late(api, factories.contact(org))
    api.call("DELETE", f"/messages/{message_id}")
    assert noted(row) == ["accepted", "scheduled", "cancelled"]


def test_what_time_brings_is_noted(api, org):
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
    assert noted(row) == ["expired", "fallback", "failed"]


def test_receipts_are_noted_whoever_they_belong_to(api, org):
    from tests.rest import Api

    other = factories.organization("other")
    factories.template(other)
    rows = [endpoint(owner, URL, "message.complained") for owner in (org, other)]
    for each in (api, Api(other)):
        each.send(message(factories.contact(each.org)))
    work()
    known = list(Delivery.objects.values_list("id", flat=True))
    receipts.apply([Receipt(key, EventType.COMPLAINED) for key in known])
    assert [noted(row) for row in rows] == [["complained"], ["complained"]]


def test_a_transaction_that_fails_notes_nothing(api, org):
    row = endpoint(org, URL)
    api.send(message(factories.contact(org)))
    before = noted(row)
    (delivery_id,) = Delivery.objects.values_list("id", flat=True)
    with pytest.raises(RuntimeError), transaction.atomic():
        receipts.apply([Receipt(delivery_id, EventType.OPEN)])
        assert len(noted(row)) > len(before)
        raise RuntimeError
    assert noted(row) == before


@pytest.mark.parametrize("count", [1, 100])
def test_statements_of_an_accept_do_not_grow_with_endpoints_or_messages(api, org, count):
    """Nor with there being any: both runs take as many as the one without endpoints."""
    people = factories.contacts(org, count)
    took = []
    for number in (0, 1, 3):
        for _ in range(number):
            endpoint(org, URL)
        api.bulk([message(people[0])])  # from now on all is cached
        endpoints.subscriptions([org.pk])
        with CaptureQueriesContext(connection) as captured:
            api.bulk([message(person) for person in people])
        took.append(len(captured))
    assert len(set(took)) == 1
    assert WebhookDelivery.objects.count() == (1 + count) + (1 + count) * 4


def test_subscriptions_are_read_once_for_all_and_felt_when_changed(org, api):
    other = factories.organization("other")
    row = endpoint(org, URL)
    with CaptureQueriesContext(connection) as captured:
        for _ in range(3):
            found = endpoints.subscriptions({org.pk, other.pk})
    assert (len(captured), {name: len(each) for name, each in found.items()}) == (
        1,
        {"acme": 1, "other": 0},
    )
    endpoints.disable(row, "by hand")
    assert endpoints.subscriptions({org.pk}) == {"acme": ()}
    row.refresh_from_db()
    assert (row.enabled, row.disabled_reason) == (False, "by hand")
    endpoints.enable(WebhookEndpoint.objects.get())
    assert len(endpoints.subscriptions({org.pk})["acme"]) == 1


def test_no_events_ask_nothing(org):
    from messaging.webhooks.events import write_events

    with CaptureQueriesContext(connection) as captured:
        write_events([])
    assert len(captured) == 0


def test_the_types_are_those_of_events():
    assert ("message.*", *(f"message.{kind}" for kind in EventType)) == TYPES
