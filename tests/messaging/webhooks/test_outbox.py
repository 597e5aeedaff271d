"""Claims of the outbox."""

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from messaging.domain.webhooks import DeliveryResult, EndpointResult
from messaging.models import WebhookDelivery, WebhookEndpoint
from messaging.store.webhooks import claims as store
from messaging.webhooks import outbox, replays
from rme.core.ids import KEY_RANGE
from rme.tenants.models import Placement
from tests.messaging.webhooks.webhook_scene import endpoint, pass_time

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
    queued = [replays.queue_test(row) for _ in range(store.PAGE + 5)]
    WebhookDelivery.objects.filter(event_id=queued[0]).update(
        due_at=datetime.now(UTC) + timedelta(seconds=60)
    )
    (claim,) = outbox.claim(1)
    assert [due.event.id for due in claim.due] == queued[1 : store.PAGE + 1]


def test_claims_reach_every_endpoint_in_all_ranges_of_ids(org):
    """Endpoints of organizations that came from other cells keep their ids."""
    keys = [first + n for first in (1, 7 * KEY_RANGE, 4095 * KEY_RANGE) for n in range(8)]
    for key in keys:
        replays.queue_test(endpoint(org, f"{URL}{key}", id=key))
    seen = Counter()
    while len(seen) < len(keys) and seen.total() < 600:
        (claim,) = outbox.claim(1)
        seen[claim.endpoint.pk] += 1
        pass_time(seconds=outbox.LEASE_SECONDS + 1)
    assert sorted(seen) == keys


def test_endpoint_behind_many_waiting_ones_is_claimed(org):
    """A claim looks at STEPS endpoints, and the deliveries of those with the lowest ids wait."""
    keys = range(3 * KEY_RANGE, 3 * KEY_RANGE + 2 * store.STEPS)
    WebhookEndpoint.objects.bulk_create(
        WebhookEndpoint(id=key, organization=org, url=URL, types=[], secret="s") for key in keys
    )
    replays.queue_test(WebhookEndpoint.objects.get(pk=keys[-1]))
    delivery = WebhookDelivery.objects.get()
    fields = {field.attname: getattr(delivery, field.attname) for field in delivery._meta.fields}
    fields["due_at"] = datetime.now(UTC) + timedelta(hours=1)
    WebhookDelivery.objects.bulk_create(
        WebhookDelivery(**fields | {"id": None, "endpoint_id": key}) for key in keys[:-1]
    )
    claims = (claim for _ in range(50) for claim in outbox.claim(1))
    assert next(claims).endpoint.pk == keys[-1]


@pytest.mark.parametrize("phase", [*Placement.Phase])
def test_result_during_a_move_is_recorded_until_its_pause(org, phase):
    """Later it would be on one side of the move alone."""
    replays.queue_test(endpoint(org, URL))
    (claim,) = outbox.claim(1)
    Placement.objects.create(organization_id=org.pk, phase=phase, cell="us")
    result = DeliveryResult(claim.due[0].id, S.DELIVERED, 0.0, [])
    outbox.record([result], [EndpointResult(claim.endpoint.pk, claim.fence, 0.0, 0, True, False)])
    recorded = WebhookDelivery.objects.get().status == S.DELIVERED
    assert recorded == (phase == Placement.Phase.LEAVING)
