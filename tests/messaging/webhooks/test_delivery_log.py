"""Purging webhook deliveries, and deleting those of an endpoint."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from messaging.models import WebhookDelivery
from messaging.webhooks import delivery_log, outbox, replays
from tests.messaging.webhooks.webhook_scene import count, end, endpoint, pass_time

pytestmark = pytest.mark.django_db
URL = "https://hooks.example.com/"
S = WebhookDelivery.Status


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
def test_old_deliveries_are_purged(org, status, days, left):
    replays.queue_test(endpoint(org, URL))
    WebhookDelivery.objects.update(
        status=status, queued_at=datetime.now(UTC) - timedelta(days=days),
        **({} if status is S.PENDING else {"due_at": None}),
    )  # fmt: skip
    delivery_log.purge()
    waits = left is S.PENDING
    found = [(row.status, row.due_at is not None) for row in WebhookDelivery.objects.all()]
    assert found == ([(left, waits)] if left else [])


def test_a_purge_is_a_statement_per_status(org):
    row = endpoint(org, URL)
    for _ in range(3):
        replays.queue_test(row)
    end(S.DELIVERED, days=8)
    with CaptureQueriesContext(connection) as captured:
        delivery_log.purge()
    assert (count(), len(captured)) == (0, 4)


def test_a_delivery_without_its_endpoint_is_not_claimed_and_is_purged(org):
    row = endpoint(org, URL)
    replays.queue_test(row)
    row.delete()
    assert outbox.claim(10) == []
    pass_time(days=5)
    delivery_log.purge()
    assert list(WebhookDelivery.objects.values_list("status", flat=True)) == ["FAILED"]


def test_all_deliveries_of_an_endpoint_can_be_deleted(org):
    row, other = endpoint(org, URL), endpoint(org, URL)
    for each in (row, other):
        replays.queue_test(each)
    delivery_log.delete_deliveries(row.pk)
    assert list(WebhookDelivery.objects.values_list("endpoint_id", flat=True)) == [other.pk]
