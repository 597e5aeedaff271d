"""Replays of failed deliveries and of a period."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from messaging.models import Event, WebhookDelivery
from messaging.webhooks import outbox, replays
from rme.core import ids
from tests import factories
from tests.messaging.webhooks.webhook_scene import count, end, endpoint
from tests.rest import message, work

pytestmark = pytest.mark.django_db
URL = "https://hooks.example.com/"
S = WebhookDelivery.Status


def test_failed_deliveries_are_replayed_from_the_first_attempt(api, org):
    row, other = endpoint(org, URL), endpoint(org, URL)
    api.send(message(factories.contact(org)))
    work()
    end(S.FAILED, days=20)
    WebhookDelivery.objects.filter(type="message.sent").update(status=S.DELIVERED)
    before = set(
        WebhookDelivery.objects.filter(endpoint_id=row.pk).values_list("event_id", flat=True)
    )
    assert replays.replay_failed(row) == 2
    (claim,) = outbox.claim(10)
    assert (claim.endpoint, len(claim.due)) == (row, 2)
    assert {due.event.id for due in claim.due} < before  # the same webhook-ids
    assert [(due.tries, due.is_last_attempt) for due in claim.due] == [(0, False)] * 2
    assert count(endpoint_id=other.pk, status=S.PENDING) == 0
    assert replays.replay_failed(row) == 0


def _events(org, kinds, hours):
    """Store one event of each type, at the given hours ago."""
    rows = [
        Event(
            id=ids.at_least(datetime.now(UTC) - timedelta(hours=ago)),
            organization_id=org.pk,
            message_id=ids.new_id(),
            delivery_id=ids.new_id(),
            type=kind,
        )
        for kind, ago in zip(kinds, hours, strict=True)
    ]
    Event.objects.bulk_create(rows)
    return [row.pk for row in rows]


def test_a_period_is_replayed_whether_delivered_or_not(org):
    row = endpoint(org, URL, "message.sent", "message.open")
    _, delivered, never, waiting, _, _ = _events(
        org, ["sent", "sent", "open", "sent", "click", "sent"], [9, 5, 4, 3, 2.5, 1]
    )
    theirs = endpoint(factories.organization("other"), URL)
    Event.objects.bulk_create([Event(
        id=ids.at_least(datetime.now(UTC) - timedelta(hours=4, minutes=1)), organization_id="other",
        message_id=ids.new_id(), delivery_id=ids.new_id(), type="sent",
    )])  # fmt: skip
    for event_id in (delivered, waiting):
        WebhookDelivery.objects.create(
            organization_id=org.pk, endpoint_id=row.pk, event_id=event_id, type="message.sent"
        )
    WebhookDelivery.objects.filter(event_id=delivered).update(
        status=S.DELIVERED, due_at=None, tries=3
    )
    WebhookDelivery.objects.filter(event_id=waiting).update(tries=2)
    now = datetime.now(UTC)
    assert replays.replay(row, now - timedelta(hours=6), now - timedelta(hours=2)) == 2
    rows = WebhookDelivery.objects.order_by("event_id").values_list(
        "event_id", "type", "status", "tries"
    )
    assert list(rows) == [
        (delivered, "message.sent", "PENDING", 0),
        (never, "message.open", "PENDING", 0),
        (waiting, "message.sent", "PENDING", 2),
    ]
    assert count(endpoint_id=theirs.pk) == 0


@pytest.mark.parametrize("many", [1, 500])
def test_a_replay_is_one_statement(org, many):
    row = endpoint(org, URL)
    _events(org, ["sent"] * many, [1 + n / 1000 for n in range(many)])
    now = datetime.now(UTC)
    with CaptureQueriesContext(connection) as captured:
        assert replays.replay(row, now - timedelta(hours=3), now) == many
    end(S.FAILED)
    with CaptureQueriesContext(connection) as again:
        assert replays.replay_failed(row) == many
    assert (len(captured), len(again)) == (1, 1)
