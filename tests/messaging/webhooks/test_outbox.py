"""Claims of the outbox."""

from datetime import UTC, datetime, timedelta

import pytest

from messaging.models import WebhookDelivery
from messaging.webhooks import outbox, replays
from tests.messaging.webhooks.webhook_scene import endpoint

pytestmark = pytest.mark.django_db
URL = "https://hooks.example.com/"
S = WebhookDelivery.Status


def test_endpoints_are_claimed_at_random_up_to_the_limit(org):
    for n in range(5):
        replays.queue_test(endpoint(org, f"{URL}{n}"))
    first = outbox.claim(2)
    second = outbox.claim(10)
    taken = [claim.endpoint.pk for claim in (*first, *second)]
    assert (len(first), len(second), len(set(taken))) == (2, 3, 5)
    assert outbox.claim(10) == []


def test_a_claim_holds_the_oldest_due_deliveries(org):
    row = endpoint(org, URL)
    queued = [replays.queue_test(row) for _ in range(outbox.PAGE + 5)]
    WebhookDelivery.objects.filter(event_id=queued[0]).update(
        due_at=datetime.now(UTC) + timedelta(seconds=60)
    )
    (claim,) = outbox.claim(1)
    assert [due.event_id for due in claim.due] == queued[1 : outbox.PAGE + 1]
