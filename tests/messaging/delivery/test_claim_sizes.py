"""How many deliveries are claimed at once: by how fast the last ones left."""

from datetime import timedelta

import pytest

from messaging.delivery import claims, deliver, tasks
from messaging.models import Delivery
from rme.core.db import clock
from tests.rest import message

WINDOW, BATCH = claims.WINDOW, claims.BATCH_LIMIT


@pytest.mark.parametrize(
    ("count", "seconds", "size"),
    [
        (WINDOW, 0.5, WINDOW),
        (WINDOW, 0.2, 2 * WINDOW),
        (WINDOW, 0.125, 4 * WINDOW),
        (BATCH, 0.5, BATCH),
        (20 * WINDOW, 0.9, 11 * WINDOW),
        (BATCH, 30.0, WINDOW),
        (WINDOW, 0.001, BATCH),
        (WINDOW, 0.0, BATCH),
        (0, 0.5, WINDOW),
        (1, 0.4, WINDOW),
    ],
)
def test_a_claim_is_as_large_as_leaves_in_half_a_second(count, seconds, size):
    assert claims.next_size(count, seconds) == size


@pytest.mark.django_db
def test_claims_grow_while_what_is_claimed_leaves_at_once(org, api, ada, monkeypatch):
    for _ in range(3):
        api.bulk([message(ada) for _ in range(2 * WINDOW)])
    Delivery.objects.update(due_at=clock.now() - timedelta(seconds=1))
    claimed = []
    monkeypatch.setattr(claims, "CLAIM_SECONDS", 1e6)

    def take(claims, *_):
        counts = {claim.organization_id: len(claim.deliveries) for claim in claims}
        claimed.append(counts[org.pk])
        return counts

    monkeypatch.setattr(deliver, "deliver", take)
    tasks.send_ready("EMAIL")
    assert claimed == [WINDOW, 5 * WINDOW]


@pytest.mark.parametrize(
    ("count", "seconds", "breadth"),
    [
        (4, 0.5, 4),
        (4, 0.1, 20),
        (4, 2.0, 1),
        (64, 0.01, 256),
        (200, 0.5, 200),
        (1, 30.0, 1),
        (0, 0.01, 1),
    ],
)
def test_as_many_organizations_are_claimed_as_leave_in_half_a_second(count, seconds, breadth):
    assert claims.next_organizations(count, seconds) == breadth
