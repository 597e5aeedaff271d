"""What was told again, given up, and let go."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from messaging.models import Event, WebhookDelivery
from messaging.webhooks import outbox, replays
from rme.core import ids
from tests import factories
from tests.messaging.webhooks.hooks_scene import endpoint, pass_time
from tests.rest import message, work

pytestmark = pytest.mark.django_db
URL = "https://hooks.example.com/"
S = WebhookDelivery.Status


def end(status, *, days=0):
    """Let all notices end in a way, some days ago."""
    WebhookDelivery.objects.update(
        status=status, due_at=None, tries=10, queued_at=datetime.now(UTC) - timedelta(days=days)
    )


def count(**by):
    return WebhookDelivery.objects.filter(**by).count()


def test_failed_ones_are_told_again_from_the_beginning(api, org):
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
    assert {due.event_id for due in claim.due} < before  # the same webhook-ids
    assert [(due.tries, due.last) for due in claim.due] == [(0, False)] * 2
    assert count(endpoint_id=other.pk, status=S.PENDING) == 0
    assert replays.replay_failed(row) == 0


def _events(org, kinds, hours):
    """Write events of an hour each, as many as there are kinds."""
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


def test_a_time_is_told_again_whether_it_was_told_or_not(org):
    row = endpoint(org, URL, "message.sent", "message.open")
    _, told, never, waiting, _, _ = _events(
        org, ["sent", "sent", "open", "sent", "click", "sent"], [9, 5, 4, 3, 2.5, 1]
    )
    theirs = endpoint(factories.organization("other"), URL)
    Event.objects.bulk_create([Event(
        id=ids.at_least(datetime.now(UTC) - timedelta(hours=4, minutes=1)), organization_id="other",
        message_id=ids.new_id(), delivery_id=ids.new_id(), type="sent",
    )])  # fmt: skip
    for event_id in (told, waiting):
        WebhookDelivery.objects.create(
            organization_id=org.pk, endpoint_id=row.pk, event_id=event_id, type="message.sent"
        )
    WebhookDelivery.objects.filter(event_id=told).update(status=S.DELIVERED, due_at=None, tries=3)
    WebhookDelivery.objects.filter(event_id=waiting).update(tries=2)
    now = datetime.now(UTC)
    assert replays.replay(row, now - timedelta(hours=6), now - timedelta(hours=2)) == 2
    rows = WebhookDelivery.objects.order_by("event_id").values_list(
        "event_id", "type", "status", "tries"
    )
    assert list(rows) == [
        (told, "message.sent", "PENDING", 0),
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


@pytest.mark.parametrize(
    ("status", "days", "left"),
    [
        (S.PENDING, 3.9, S.PENDING),
        (S.PENDING, 4.1, S.FAILED),
        (S.DELIVERED, 6.9, S.DELIVERED),
        (S.DELIVERED, 7.1, None),
        (S.FAILED, 29.9, S.FAILED),
        (S.FAILED, 30.1, None),
        (S.PENDING, 31, None),
    ],
)
def test_what_is_past_goes(org, status, days, left):
    replays.queue_test(endpoint(org, URL))
    WebhookDelivery.objects.update(
        status=status, queued_at=datetime.now(UTC) - timedelta(days=days),
        **({} if status is S.PENDING else {"due_at": None}),
    )  # fmt: skip
    outbox.purge()
    waits = left is S.PENDING
    found = [(row.status, row.due_at is not None) for row in WebhookDelivery.objects.all()]
    assert found == ([(left, waits)] if left else [])


def test_it_goes_by_a_statement_a_kind(org):
    row = endpoint(org, URL)
    for _ in range(3):
        replays.queue_test(row)
    end(S.DELIVERED, days=8)
    with CaptureQueriesContext(connection) as captured:
        outbox.purge()
    assert (count(), len(captured)) == (0, 4)


def test_what_no_endpoint_stands_behind_is_not_taken_and_goes(org):
    row = endpoint(org, URL)
    replays.queue_test(row)
    row.delete()
    assert outbox.claim(10) == []
    pass_time(days=5)
    outbox.purge()
    assert list(WebhookDelivery.objects.values_list("status", flat=True)) == ["FAILED"]


def test_all_of_an_endpoint_can_be_dropped(org):
    row, other = endpoint(org, URL), endpoint(org, URL)
    for each in (row, other):
        replays.queue_test(each)
    outbox.delete_deliveries(row.pk)
    assert list(WebhookDelivery.objects.values_list("endpoint_id", flat=True)) == [other.pk]


def test_endpoints_are_taken_at_random_and_at_most_as_many_as_asked_for(org):
    for n in range(5):
        replays.queue_test(endpoint(org, f"{URL}{n}"))
    first = outbox.claim(2)
    second = outbox.claim(10)
    taken = [claim.endpoint.pk for claim in (*first, *second)]
    assert (len(first), len(second), len(set(taken))) == (2, 3, 5)
    assert outbox.claim(10) == []


def test_a_page_is_the_oldest_that_is_due(org):
    row = endpoint(org, URL)
    noted = [replays.queue_test(row) for _ in range(outbox.PAGE + 5)]
    WebhookDelivery.objects.filter(event_id=noted[0]).update(
        due_at=datetime.now(UTC) + timedelta(seconds=60)
    )
    (claim,) = outbox.claim(1)
    assert [due.event_id for due in claim.due] == noted[1 : outbox.PAGE + 1]
